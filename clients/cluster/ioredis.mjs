// ioredis follows the leader of a cluster: see test.py.
//
//     node ioredis.mjs cluster|sentinel PORT,PORT,PORT
import { Redis } from "ioredis";
import { setTimeout } from "node:timers/promises";

const [mode, ports] = process.argv.slice(2);
const nodes = ports.split(",").map((port) => ({ host: "127.0.0.1", port: Number(port) }));
const client =
  mode === "cluster" ? new Redis.Cluster(nodes) : new Redis({ sentinels: nodes, name: "tidemark", db: 5 });
client.on("error", (error) => console.error(`ioredis:${mode}: ${error}`));

let killed = false;
process.stdin.once("data", () => (killed = true));

async function persist(command) {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      return await command();
    } catch (error) {
      if (Date.now() > end) throw error;
      console.error(`ioredis:${mode}: ${error}`);
      await setTimeout(50);
    }
  }
}

const key = (number) => `ioredis:${mode}:${number}`;
let written = 0;
for (let left = 100; left > 0; written++) {
  const wasKilled = killed;
  await persist(() => client.set(key(written), written));
  left -= wasKilled ? 1 : 0;
  if (written === 100) console.log("ready");
  await setTimeout(2);
}
for (let number = 0; number < written; number++) {
  const found = await persist(() => client.get(key(number)));
  if (found !== String(number)) throw new Error(`${key(number)} is ${found}`);
}
console.log("done");
process.exit(0);
