"""Every type of value with redis-py. Empties database 15 first.

    python round_trips.py [redis://127.0.0.1:7379/15?protocol=3]
"""

import sys
import threading
import time
import traceback

import redis

URL = sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:7379/15"
client = redis.Redis.from_url(URL, decode_responses=True)


def strings():
    assert client.set("greeting", "hello", ex=100)
    assert client.get("greeting") == "hello"
    assert 0 < client.ttl("greeting") <= 100
    assert client.set("greeting", "other", nx=True) is None
    assert client.set("greeting", "bye", get=True) == "hello"
    assert client.append("greeting", "!") == 4
    assert client.incrby("visits", 41) == 41 and client.incr("visits") == 42
    assert client.incrbyfloat("share", 0.5) == 0.5
    assert client.mset({"a": 1, "b": 2}) and client.mget("a", "b", "none") == ["1", "2", None]
    assert client.getdel("a") == "1" and not client.exists("a")


def durable_writes():
    # Tidemark's own word: this answer waits until the change is on disk.
    assert client.execute_command("SET", "order", "42", "DURABLE")
    assert client.execute_command("DURABLE", "INCR", "order") == 43


def bytes_are_kept():
    raw = redis.Redis.from_url(URL)
    value = bytes(range(256))
    raw.set(b"\xff\x00key", value)
    assert raw.get(b"\xff\x00key") == value


def hashes():
    assert client.hset("user", mapping={"name": "ada", "visits": 1}) == 2
    assert client.hincrby("user", "visits", 2) == 3
    assert client.hgetall("user") == {"name": "ada", "visits": "3"}
    assert client.hmget("user", "name", "none") == ["ada", None]
    assert client.hdel("user", "name") == 1 and client.hkeys("user") == ["visits"]


def lists():
    assert client.rpush("queue", "a", "b", "c") == 3
    assert client.lrange("queue", 0, -1) == ["a", "b", "c"]
    assert client.lmove("queue", "done", "LEFT", "RIGHT") == "a"
    assert client.lpop("queue", 2) == ["b", "c"]


def a_blocking_pop_waits_for_a_push():
    def push_once_the_pop_waits():
        while not any("b" in other["flags"] for other in client.client_list()):
            time.sleep(0.001)
        client.rpush("jobs", "job")

    pusher = threading.Thread(target=push_once_the_pop_waits, daemon=True)
    pusher.start()
    assert tuple(client.blpop("jobs", timeout=30)) == ("jobs", "job")
    pusher.join()


def sets():
    assert client.sadd("odd", 1, 3, 5) == 3 and client.sadd("small", 1, 2, 3) == 3
    assert client.sinter("odd", "small") == {"1", "3"}
    assert client.sismember("odd", 5) and client.scard("odd") == 3
    assert client.sunionstore("both", "odd", "small") == 4


def sorted_sets():
    assert client.zadd("board", {"ada": 12.5, "bob": 9}) == 2
    assert client.zincrby("board", 10, "bob") == 19
    ranking = client.zrange("board", 0, -1, desc=True, withscores=True)
    assert [tuple(pair) for pair in ranking] == [("bob", 19.0), ("ada", 12.5)]
    assert client.zrangebyscore("board", 10, "(19") == ["ada"]
    assert client.zrank("board", "ada") == 0


def time_series():
    series = client.ts()
    assert series.create("temperature:hall", labels={"kind": "temperature", "room": "hall"}, duplicate_policy="last")
    assert series.add("temperature:hall", 1000, 20.5) == 1000
    assert series.madd([("temperature:hall", 2000, 21.5), ("temperature:hall", 61000, 19)]) == [2000, 61000]
    assert tuple(series.get("temperature:hall")) == (61000, 19.0)
    means = series.range("temperature:hall", "-", "+", aggregation_type="avg", bucket_size_msec=60_000)
    assert [tuple(row) for row in means] == [(0, 21.0), (60000, 19.0)]
    assert set(series.queryindex(["kind=~temp.*", "room!=attic"])) == {"temperature:hall"}
    assert series.delete("temperature:hall", 0, 3000) == 2


def a_transaction_fails_when_a_watched_key_has_changed():
    client.set("balance", 10)
    with client.pipeline() as pipeline:
        pipeline.watch("balance")
        balance = int(pipeline.get("balance"))
        client.set("balance", 20)
        pipeline.multi()
        pipeline.set("balance", balance - 1)
        try:
            pipeline.execute()
            raise AssertionError("the key had changed")
        except redis.WatchError:
            pass
    assert client.get("balance") == "20"
    assert client.pipeline(transaction=True).set("x", 1).incr("x").execute() == [True, 2]


def a_pipeline_answers_in_order():
    pipeline = client.pipeline(transaction=False)
    for number in range(1000):
        pipeline.set(f"key:{number}", number).get(f"key:{number}")
    assert pipeline.execute()[1::2] == [str(number) for number in range(1000)]


def scans_find_every_key():
    client.mset({f"scan:{number}": number for number in range(500)})
    assert len(set(client.scan_iter("scan:*", count=50))) == 500
    client.hset("large", mapping={f"field{number}": number for number in range(500)})
    assert len(dict(client.hscan_iter("large"))) == 500


def messages_reach_channels_and_patterns():
    with client.pubsub() as subscriber:
        subscriber.subscribe("news")
        subscriber.psubscribe("weather.*")
        heard = [subscriber.get_message(timeout=30) for _ in range(2)]
        assert [message["type"] for message in heard] == ["subscribe", "psubscribe"]
        assert client.publish("news", "one") == 1 and client.publish("weather.oslo", "snow") == 1
        heard = [subscriber.get_message(timeout=30) for _ in range(2)]
        assert [(m["type"], m["channel"], m["data"]) for m in heard] == [
            ("message", "news", "one"),
            ("pmessage", "weather.oslo", "snow"),
        ]


def an_expired_key_is_gone():
    client.set("short", "lived", px=1)
    while client.exists("short"):
        time.sleep(0.001)
    assert client.get("short") is None and client.ttl("short") == -2


def counters_take_and_give_back():
    call = client.execute_command
    assert call("COUNTER.CREATE", "seats", "LIMIT", 10, "EXACT", 2) == 1
    assert call("COUNTER.TAKE", "seats", 8) == [1, 2]
    assert call("COUNTER.TAKE", "seats", 3) == [0, 2]
    assert call("COUNTER.REFUND", "seats", 9) == 8 and call("COUNTER.GET", "seats") == 0
    assert call("COUNTER.ADD", "likes", 5) == 5


def limits_say_when_to_come_again():
    call = client.execute_command
    assert call("CL.THROTTLE", "caller", 1, 1, 3600) == [0, 2, 1, -1, 3600]
    assert call("CL.THROTTLE", "caller", 1, 1, 3600, 2)[:3] == [1, 2, 1]
    call("COUNTER.CREATE", "plan", "LIMIT", 1)
    everything = ("LIMIT.CHECKALL", 2, "route", "plan", "GCRA", 5, "PER", 3600000, "DEFINED")
    assert call(*everything) == [1, 1, 0, -1, -1, "plan"]
    assert call(*everything) == [0, 1, 0, -1, -1, "plan"]
    assert call("LIMIT.PEEK", "route")[:3] == [1, 5, 4]


def errors_are_typed():
    client.set("text", "words")
    for call in (lambda: client.incr("text"), lambda: client.lpush("text", 1)):
        try:
            call()
            raise AssertionError("it must be refused")
        except redis.ResponseError:
            pass


EXAMPLES = [
    strings, durable_writes, bytes_are_kept, hashes, lists, a_blocking_pop_waits_for_a_push, sets, sorted_sets,
    time_series, a_transaction_fails_when_a_watched_key_has_changed, a_pipeline_answers_in_order, scans_find_every_key,
    messages_reach_channels_and_patterns, an_expired_key_is_gone, counters_take_and_give_back,
    limits_say_when_to_come_again, errors_are_typed,
]  # fmt: skip

if __name__ == "__main__":
    client.flushdb()
    failed = 0
    for example in EXAMPLES:
        try:
            example()
        except Exception:
            failed += 1
            print(f"FAILED {example.__name__}\n{traceback.format_exc()}")
    print(f"{len(EXAMPLES) - failed} passed, {failed} failed")
    sys.exit(failed > 0)
