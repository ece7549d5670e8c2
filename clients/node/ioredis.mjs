// Every type of value with ioredis. Empties database 15 first.
//
//   node ioredis.mjs [redis://127.0.0.1:7379/15]

import assert from "node:assert/strict";
import { once } from "node:events";
import { Redis } from "ioredis";
import { run } from "./examples.mjs";

const url = process.argv[2] ?? "redis://127.0.0.1:7379/15";
const client = new Redis(url);
await client.flushdb();

await run({
  async strings() {
    assert.equal(await client.set("greeting", "hello", "EX", 100), "OK");
    assert.equal(await client.get("greeting"), "hello");
    assert.equal(await client.set("greeting", "other", "NX"), null);
    assert.equal(await client.incrby("visits", 42), 42);
    assert.deepEqual(await client.mget("greeting", "missing"), ["hello", null]);
  },

  // Tidemark's own word: these answers wait until the change is on disk.
  async "durable writes"() {
    assert.equal(await client.call("SET", "order", "42", "DURABLE"), "OK");
    assert.equal(await client.call("DURABLE", "INCR", "order"), 43);
  },

  async "bytes are kept"() {
    const value = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    await client.set("bytes", value);
    assert.deepEqual(await client.getBuffer("bytes"), value);
  },

  async hashes() {
    assert.equal(await client.hset("user", { name: "ada", visits: 1 }), 2);
    assert.equal(await client.hincrby("user", "visits", 2), 3);
    assert.deepEqual(await client.hgetall("user"), { name: "ada", visits: "3" });
  },

  async lists() {
    assert.equal(await client.rpush("queue", "a", "b", "c"), 3);
    assert.equal(await client.lmove("queue", "done", "LEFT", "RIGHT"), "a");
    assert.deepEqual(await client.lrange("queue", 0, -1), ["b", "c"]);
  },

  async "a blocking pop waits for a push"() {
    const waiter = client.duplicate();
    const popped = waiter.blpop("jobs", 30);
    await client.rpush("jobs", "job");
    assert.deepEqual(await popped, ["jobs", "job"]);
    waiter.disconnect();
  },

  async sets() {
    await client.sadd("odd", 1, 3, 5);
    await client.sadd("small", 1, 2, 3);
    assert.deepEqual((await client.sinter("odd", "small")).sort(), ["1", "3"]);
  },

  async "sorted sets"() {
    assert.equal(await client.zadd("board", 12.5, "ada", 9, "bob"), 2);
    assert.deepEqual(await client.zrange("board", 0, -1, "WITHSCORES"), ["bob", "9", "ada", "12.5"]);
    assert.equal(await client.zincrby("board", 10, "bob"), "19");
    assert.equal(await client.zrevrank("board", "bob"), 0);
  },

  async "a transaction fails when a watched key has changed"() {
    const other = client.duplicate();
    await client.watch("balance");
    await other.set("balance", 20);
    assert.equal(await client.multi().set("balance", 1).exec(), null);
    assert.equal(await client.get("balance"), "20");
    assert.deepEqual(await client.multi().set("x", 1).incr("x").exec(), [[null, "OK"], [null, 2]]);
    other.disconnect();
  },

  async "a pipeline answers in order"() {
    const pipeline = client.pipeline();
    for (let number = 0; number < 1000; number += 1) pipeline.set("key", number).get("key");
    const answers = await pipeline.exec();
    answers.forEach(([error, answer], index) => {
      assert.equal(error, null);
      assert.equal(answer, index % 2 === 0 ? "OK" : String((index - 1) / 2));
    });
  },

  async "a scan finds every key"() {
    await client.mset(Object.fromEntries(Array.from({ length: 500 }, (_, number) => [`scan:${number}`, number])));
    const found = new Set();
    for await (const keys of client.scanStream({ match: "scan:*", count: 50 })) keys.forEach((key) => found.add(key));
    assert.equal(found.size, 500);
  },

  // ioredis has no methods for them.
  async "time series"() {
    const key = "temperature:hall";
    assert.equal(await client.call("TS.ADD", key, 1000, 20.5, "LABELS", "kind", "temperature"), 1000);
    assert.deepEqual(await client.call("TS.MADD", key, 2000, 21.5, key, 61000, 19), [2000, 61000]);
    assert.deepEqual(await client.call("TS.RANGE", key, "-", "+", "AGGREGATION", "avg", 60000), [
      [0, "21"],
      [60000, "19"],
    ]);
    assert.deepEqual(await client.call("TS.QUERYINDEX", "kind=~temp.*"), [key]);
  },

  async "messages reach channels and patterns"() {
    const subscriber = client.duplicate();
    await subscriber.subscribe("news");
    await subscriber.psubscribe("weather.*");
    const news = once(subscriber, "message");
    const weather = once(subscriber, "pmessage");
    assert.equal(await client.publish("news", "one"), 1);
    assert.equal(await client.publish("weather.oslo", "snow"), 1);
    assert.deepEqual(await news, ["news", "one"]);
    assert.deepEqual(await weather, ["weather.*", "weather.oslo", "snow"]);
    subscriber.disconnect();
  },

  async "an expired key is gone"() {
    await client.set("short", "lived", "PX", 1);
    while (await client.exists("short"));
    assert.equal(await client.ttl("short"), -2);
  },

  async "errors are errors"() {
    await client.set("text", "words");
    await assert.rejects(client.lpush("text", 1), /WRONGTYPE/);
  },
});
