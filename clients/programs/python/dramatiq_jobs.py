"""Dramatiq: messages with retries, a delay, results and a pipeline, while the server is killed. Each message is acknowledged when it is
done, so each is done at least once."""

import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import ResultMissing, Results
from dramatiq.results.backends import RedisBackend

from job import PATIENCE, URL, expect_notes, kill_server, note, notes, start, wait_for

# How soon, and in how many of a million commands, the messages of a worker that ended are looked for.
broker = RedisBroker(url=URL, heartbeat_timeout=3_000, maintenance_chance=200_000)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)
THREADS = 4
BATCH = 2 * THREADS


@dramatiq.actor(store_results=True)
def square(number):
    time.sleep(0.005)
    note(f"square {number}")
    return number * number


@dramatiq.actor(max_retries=3, min_backoff=10, max_backoff=20)
def fails_twice(number):
    attempt = len(notes(f"attempt {number} "))
    note(f"attempt {number} {attempt}")
    assert attempt == 2, "this was to be tried again"


@dramatiq.actor
def later(sent):
    note(f"later {time.time() - sent >= 1}")


def result(message):
    try:
        return message.get_result()
    except ResultMissing:
        return None


def main():
    command = ("-m", "dramatiq", "dramatiq_jobs", "--processes", "1", "--threads", str(THREADS))
    worker = start(*command)
    for number in range(10):
        fails_twice.send(number)
    expect_notes("attempt", [f"{number} {attempt}" for number in range(10) for attempt in range(3)])
    later.send_with_options(args=(time.time(),), delay=1_000)
    expect_notes("later", [True])
    chain = (square.message(3) | square.message()).run()
    assert chain.get_result(block=True, timeout=1000 * PATIENCE) == 81

    messages = [square.send(number) for number in range(100, 400)]
    wait_for(lambda: len(notes("square")) >= 60, "some of the messages")
    kill_server()
    messages += [square.send(number) for number in range(400, 500)]
    # A batch of messages that was on its way to the worker at the kill is kept for that worker until it ends.
    expect_notes("square", [3, 9, *range(100, 500)], repeated=THREADS, missing=BATCH)
    worker.terminate()
    worker.wait()
    start(*command)
    expect_notes("square", [3, 9, *range(100, 500)], repeated=2 * THREADS)
    broker.join("default", timeout=1000 * PATIENCE)
    # The result of a message that was processed while the server was away cannot be stored.
    results = [result(message) for message in messages]
    assert results.count(None) <= THREADS
    assert all(found in (None, message.args[0] ** 2) for found, message in zip(results, messages))
