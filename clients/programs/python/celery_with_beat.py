"""Celery: tasks with retries, results, a chord and a countdown, and ticks of beat, while the server is killed. Tasks are acknowledged
late, so that those in hand are done again."""

import time

from celery import Celery, chord

from job import FOLDER, PATIENCE, URL, expect_notes, kill_server, note, notes, start, supervise, wait_for

app = Celery("celery_with_beat", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    # What the worker had in hand when the connection broke is delivered again after this.
    broker_transport_options={"visibility_timeout": 5},
    beat_schedule={"tick": {"task": "celery_with_beat.tick", "schedule": 1.0}},
    beat_schedule_filename=str(FOLDER / "schedule"),
    beat_max_loop_interval=1,
    task_default_retry_delay=0,
)


@app.task
def square(number):
    time.sleep(0.01)
    note(f"square {number}")
    return number * number


@app.task(bind=True, max_retries=3)
def fails_twice(self, number):
    note(f"attempt {number} {self.request.retries}")
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    return number


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def later(sent):
    note(f"later {time.time() - sent >= 1}")


@app.task
def tick():
    note("tick")


def main():
    # A worker whose connection breaks at certain moments ends.
    supervise("-m", "celery", "-A", "celery_with_beat", "worker", "--concurrency", "2", "--loglevel", "INFO", "--hostname", "w@localhost")
    start("-m", "celery", "-A", "celery_with_beat", "beat", "--loglevel", "INFO")
    retried = [fails_twice.delay(number) for number in range(10)]
    assert [result.get(timeout=PATIENCE) for result in retried] == list(range(10))
    expect_notes("attempt", [f"{number} {attempt}" for number in range(10) for attempt in range(3)])
    assert chord([square.s(number) for number in range(1000, 1010)])(total.s()).get(timeout=PATIENCE) == sum(
        number * number for number in range(1000, 1010)
    )
    later.apply_async((time.time(),), countdown=1)
    expect_notes("later", [True])
    wait_for(lambda: len(notes("tick")) >= 2, "beat")

    results = [square.delay(number) for number in range(200)]
    wait_for(lambda: len(notes("square")) >= 60, "a third of the tasks")
    kill_server()
    results += [square.delay(number) for number in range(200, 300)]
    # Four are in hand at most: two that run, and two that are prefetched. Celery takes a message with BRPOP and notes it in the next
    # command: a message that it took at the moment of the kill is lost.
    expect_notes("square", [*range(300), *range(1000, 1010)], repeated=4, missing=1)
    # The result of a task that ran while the server was away may have come too late for its worker to store.
    stored = sum(result.state == "SUCCESS" and result.result == number**2 for number, result in enumerate(results))
    assert stored >= len(results) - 5, f"{stored} results"
    ticks = len(notes("tick"))
    wait_for(lambda: len(notes("tick")) >= ticks + 2, "beat after the kill")
