"""Huey: tasks with priorities, retries, a delay, a lock and results. What is queued when the server is killed is done once it is back."""

import time

from huey import PriorityRedisHuey
from huey.exceptions import TaskException

from job import PATIENCE, URL, expect_notes, kill_server, note, notes, start

huey = PriorityRedisHuey("jobs", url=URL)


@huey.task()
def square(number):
    note(f"square {number}")
    return number * number


@huey.task(retries=3)
def fails_twice(number):
    attempt = len(notes(f"attempt {number} "))
    note(f"attempt {number} {attempt}")
    assert attempt == 2, "this was to be tried again"


@huey.task()
def always_fails():
    raise ValueError("as wanted")


@huey.task()
def later(sent):
    note(f"later {time.time() - sent >= 1}")


@huey.task(retries=1000)
@huey.lock_task("alone")
def alone(number):
    note(f"begin {number}")
    time.sleep(0.01)
    note(f"end {number}")


def main():
    results = [square(number) for number in range(100)]
    urgent = square(1000, priority=10)
    kill_server()
    results += [square(number) for number in range(100, 200)]
    # One worker takes what is urgent first.
    consumer = start("-m", "huey.bin.huey_consumer", "huey_jobs.huey", "--workers", "1")
    expect_notes("square", [*range(200), 1000])
    assert notes("square")[0] == "square 1000" and urgent.get(blocking=True, timeout=PATIENCE) == 1_000_000
    assert [result.get(blocking=True, timeout=PATIENCE) for result in results] == [number**2 for number in range(200)]
    consumer.terminate()
    consumer.wait()

    four = ("-m", "huey.bin.huey_consumer", "huey_jobs.huey", "--workers", "4")
    consumer = start(*four)
    for number in range(5):
        fails_twice(number)
    expect_notes("attempt", [f"{number} {attempt}" for number in range(5) for attempt in range(3)])
    try:
        always_fails().get(blocking=True, timeout=PATIENCE)
        raise AssertionError("a failed task had a result")
    except TaskException as error:
        assert "as wanted" in str(error)
    later.schedule((time.time(),), delay=1)
    expect_notes("later", [True])
    consumer.terminate()
    consumer.wait()
    kept = square.schedule((2000,), delay=1)
    kill_server()
    start(*four)
    assert kept.get(blocking=True, timeout=PATIENCE) == 4_000_000
    for number in range(10):
        alone(number)
    expect_notes("end", range(10))
    order = [line.split()[0] for line in notes() if line.startswith(("begin", "end"))]
    assert order == ["begin", "end"] * 10, "two tasks held the lock at one time"
