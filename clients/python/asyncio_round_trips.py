"""The same server from asyncio: many tasks, one pool of connections. Empties database 15 first.

    python asyncio_round_trips.py [redis://127.0.0.1:7379/15?protocol=3]
"""

import asyncio
import sys
import traceback

import redis.asyncio as redis

URL = sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:7379/15"


async def tasks_share_a_counter(client):
    await asyncio.gather(*(client.incr("counter") for _ in range(50)))
    assert await client.get("counter") == "50"


async def values_of_every_type(client):
    await client.set("string", "value", ex=100)
    await client.hset("hash", mapping={"field": "value"})
    await client.rpush("list", "a", "b")
    await client.sadd("set", "a", "b")
    await client.zadd("sorted", {"a": 1, "b": 2})
    assert await client.hgetall("hash") == {"field": "value"}
    assert await client.lrange("list", 0, -1) == ["a", "b"]
    assert await client.smembers("set") == {"a", "b"}
    assert await client.zrange("sorted", 0, -1) == ["a", "b"]
    types = [await client.type(key) for key in ("string", "hash", "list", "set", "sorted")]
    assert types == ["string", "hash", "list", "set", "zset"]


async def a_queue_of_jobs(client):
    async def worker():
        done = 0
        while (await client.blpop("jobs", timeout=30))[1] != "stop":
            done += 1
        return done

    workers = [asyncio.create_task(worker()) for _ in range(4)]
    await client.rpush("jobs", *(f"job {number}" for number in range(100)))
    await client.rpush("jobs", *["stop"] * 4)
    assert sum(await asyncio.gather(*workers)) == 100


async def an_optimistic_transaction(client):
    async def withdraw(pipeline):
        balance = int(await pipeline.get("balance"))
        pipeline.multi()
        pipeline.set("balance", balance - 1)

    await client.set("balance", 20)
    await asyncio.gather(*(client.transaction(withdraw, "balance") for _ in range(10)))
    assert await client.get("balance") == "10"


async def messages(client):
    async with client.pubsub() as subscriber:
        await subscriber.psubscribe("weather.*")
        assert (await subscriber.get_message(timeout=30))["type"] == "psubscribe"
        await client.publish("weather.oslo", "snow")
        message = await subscriber.get_message(timeout=30)
        assert (message["channel"], message["data"]) == ("weather.oslo", "snow")


async def a_scan(client):
    await client.mset({f"scan:{number}": number for number in range(500)})
    assert len({key async for key in client.scan_iter("scan:*", count=50)}) == 500


EXAMPLES = [
    tasks_share_a_counter, values_of_every_type, a_queue_of_jobs, an_optimistic_transaction, messages, a_scan,
]  # fmt: skip


async def main():
    failed = 0
    async with redis.from_url(URL, decode_responses=True) as client:
        await client.flushdb()
        for example in EXAMPLES:
            try:
                await asyncio.wait_for(example(client), 60)
            except Exception:
                failed += 1
                print(f"FAILED {example.__name__}\n{traceback.format_exc()}")
    print(f"{len(EXAMPLES) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
