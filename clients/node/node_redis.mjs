// The same server with node-redis, in RESP2 and in RESP3. Empties database 15 first.
//
//   node node_redis.mjs [redis://127.0.0.1:7379/15]

import assert from "node:assert/strict";
import { createClient } from "redis";
import { run } from "./examples.mjs";

const url = process.argv[2] ?? "redis://127.0.0.1:7379/15";

function examples(client) {
  return {
    async strings() {
      assert.equal(await client.set("greeting", "hello", { EX: 100 }), "OK");
      assert.equal(await client.get("greeting"), "hello");
      assert.equal(await client.get("missing"), null);
      assert.equal(await client.incrBy("visits", 42), 42);
    },

    async "durable writes"() {
      assert.equal(await client.sendCommand(["SET", "order", "42", "DURABLE"]), "OK");
      assert.equal(await client.sendCommand(["DURABLE", "INCR", "order"]), 43);
    },

    async "values of every type"() {
      await client.hSet("user", { name: "ada", visits: 1 });
      await client.rPush("queue", ["a", "b"]);
      await client.sAdd("tags", ["x", "y"]);
      await client.zAdd("board", [{ score: 12.5, value: "ada" }, { score: 9, value: "bob" }]);
      assert.deepEqual({ ...(await client.hGetAll("user")) }, { name: "ada", visits: "1" });
      assert.deepEqual(await client.lRange("queue", 0, -1), ["a", "b"]);
      assert.deepEqual([...(await client.sMembers("tags"))].sort(), ["x", "y"]);
      assert.deepEqual(await client.zRangeWithScores("board", 0, -1), [
        { value: "bob", score: 9 },
        { value: "ada", score: 12.5 },
      ]);
    },

    async "time series"() {
      const key = "temperature:hall";
      assert.equal(await client.ts.create(key, { LABELS: { kind: "temperature" }, DUPLICATE_POLICY: "LAST" }), "OK");
      assert.equal(await client.ts.add(key, 1000, 20.5), 1000);
      const points = [2000, 61000].map((timestamp) => ({ key, timestamp, value: 21.5 }));
      assert.deepEqual(await client.ts.mAdd(points), [2000, 61000]);
      assert.deepEqual({ ...(await client.ts.get(key)) }, { timestamp: 61000, value: 21.5 });
      const means = await client.ts.range(key, "-", "+", { AGGREGATION: { type: "AVG", timeBucket: 60_000 } });
      assert.deepEqual(means.map((mean) => ({ ...mean })), [
        { timestamp: 0, value: 21 },
        { timestamp: 60000, value: 21.5 },
      ]);
      assert.deepEqual([...(await client.ts.queryIndex("kind=~temp.*"))], [key]);
    },

    async "a blocking pop waits for a push"() {
      const waiter = await client.duplicate().connect();
      const popped = waiter.blPop("jobs", 30);
      await client.rPush("jobs", "job");
      assert.deepEqual({ ...(await popped) }, { key: "jobs", element: "job" });
      waiter.destroy();
    },

    async "a transaction"() {
      assert.deepEqual(await client.multi().set("x", 1).incr("x").exec(), ["OK", 2]);
    },

    async "commands sent together share a pipeline"() {
      const numbers = await Promise.all(Array.from({ length: 1000 }, () => client.incr("counter")));
      assert.deepEqual(numbers, Array.from({ length: 1000 }, (_, index) => index + 1));
    },

    async "a scan finds every key"() {
      await client.mSet(Object.fromEntries(Array.from({ length: 500 }, (_, number) => [`scan:${number}`, "1"])));
      const found = new Set();
      for await (const keys of client.scanIterator({ MATCH: "scan:*", COUNT: 50 })) {
        keys.forEach((key) => found.add(key));
      }
      assert.equal(found.size, 500);
    },

    async "messages reach patterns"() {
      const subscriber = await client.duplicate().connect();
      let heard;
      const message = new Promise((resolve) => (heard = resolve));
      await subscriber.pSubscribe("weather.*", (text, channel) => heard([channel, text]));
      await client.publish("weather.oslo", "snow");
      assert.deepEqual(await message, ["weather.oslo", "snow"]);
      subscriber.destroy();
    },
  };
}

const all = {};
for (const RESP of [2, 3]) {
  const client = await createClient({ url, RESP }).connect();
  for (const [name, example] of Object.entries(examples(client))) all[`${name} (RESP${RESP})`] = example;
  all[`emptied (RESP${RESP})`] = async () => assert.equal(await client.flushDb(), "OK");
  if (RESP === 2) await client.flushDb();
}
await run(all);
