// Prints "lsn seq value" for GET KEY and each change of it, through broken connections and restarts of the server: none
// twice, none left out. RESP3 by hand: no published client hands on push frames. Usage: node watch.mjs HOST PORT KEY
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const [host, port, key] = process.argv.slice(2);
let last; // name, lsn and seq of the last line
for (let delay = 50; ; delay = Math.min(2 * delay, 5000)) {
  const socket = net.connect({ host, port: Number(port), keepAlive: true });
  try {
    for await (const frame of follow(socket)) {
      console.log(frame.lsn, frame.seq, frame.value);
      delay = 50;
    }
  } catch (error) {
    console.error(error.message);
  }
  socket.destroy();
  // By chance up to half less, so that not all clients of a server come back at one moment.
  await sleep(delay * (0.5 + Math.random() / 2));
}

// What comes on one connection: the answer to HELLO, the one that begins or goes on, then pushes.
async function* follow(socket) {
  const words = last ? ["EMITRECONNECT", key, last.name, `${last.lsn}`] : ["GET.WATCH", key];
  const command = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("");
  socket.write(`*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*${words.length}\r\n${command}`);
  for await (const [kind, name, ...rest] of frames(socket)) {
    if (kind === "sub_id") {
      yield (last = { name, lsn: rest[1], seq: rest[3], value: rest[5] });
    } else if (kind === "emission" && rest[0] > last.lsn) {
      yield (last = { name, lsn: rest[0], seq: rest[1], value: rest[2] });
    } else if (kind === "stale" || /^[A-Z_]+$/.test(kind) && !(kind === "OK" && name === last.seq + 1)) {
      last = undefined; // so that the next connection begins anew
      throw new Error(`emissions may be missing: ${kind}`);
    }
  }
}

// Frames as lists of what is in them, whatever the nesting: no more is needed where values are strings.
async function* frames(socket) {
  let bytes = Buffer.alloc(0);
  let [frame, missing] = [[], 1];
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk]);
    for (let end; (end = bytes.indexOf("\r\n")) > 0; ) {
      const [kind, line] = [String.fromCharCode(bytes[0]), bytes.toString("utf8", 1, end)];
      const size = kind === "$" ? Number(line) + 2 : 0;
      if (bytes.length < end + 2 + size) break;
      if (kind === "-") throw new Error(line);
      if ("*>%".includes(kind)) missing += line * (kind === "%" ? 2 : 1);
      else frame.push(kind === "$" ? bytes.toString("utf8", end + 2, end + size) : kind === ":" ? +line : null);
      bytes = bytes.subarray(end + 2 + size);
      if (--missing > 0) continue;
      yield frame;
      [frame, missing] = [[], 1];
    }
  }
}
