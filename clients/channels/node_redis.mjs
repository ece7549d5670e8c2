import { createClient } from "redis";
import { setTimeout } from "node:timers/promises";

const client = createClient({ url: process.argv[2] });
const subscriber = client.duplicate();
let lsn, seq; // lsn: of the last emission that is done with; store it with what you did
let answered;

function take(line, isAnswer) {
  const emission = JSON.parse(line);
  if (emission.error) throw new Error(emission.error);
  if (isAnswer && !("value" in emission)) {
    seq = emission.seq; // emissions after it follow
  } else if (isAnswer || emission.seq === seq + 1 || emission.reason) {
    ({ lsn, seq } = emission);
    console.log(lsn, seq, emission.value); // what you do with it
  }
}

const onMessage = (line) => answered.then(() => take(line));

async function watch() {
  for (;;) {
    try {
      await subscriber.subscribe("prices", onMessage);
      const resume = lsn ? ["RESUME", String(lsn)] : [];
      return take(await client.sendCommand(["GET.WATCH", "price", "|", "CHANNEL", "prices", ...resume]), true);
    } catch (error) {
      console.error(error.message);
      await setTimeout(100);
    }
  }
}

for (const connection of [client, subscriber]) connection.on("error", (error) => console.error(error.message));
subscriber.on("ready", () => (answered = watch()));
await Promise.all([client.connect(), subscriber.connect()]);
