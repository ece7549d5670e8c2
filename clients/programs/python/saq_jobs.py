"""SAQ: asynchronous jobs with retries, unique keys, a schedule, cron and results, while the server is killed."""

import asyncio
import time

from saq import CronJob, Queue, Worker

from job import PATIENCE, URL, expect_notes, kill_server, note, notes

CONCURRENCY = 4


async def square(context, *, number):
    await asyncio.sleep(0.005)
    note(f"square {number}")
    return number * number


async def fails_twice(context, *, number):
    attempt = context["job"].attempts
    note(f"attempt {number} {attempt}")
    assert attempt == 3, "this was to be tried again"


async def later(context, *, sent):
    note(f"later {time.time() - sent >= 1}")


async def tick(context):
    note("tick")


async def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        await asyncio.sleep(0.02)


async def run():
    queue = Queue.from_url(URL)
    worker = Worker(
        queue,
        functions=[square, fails_twice, later],
        concurrency=CONCURRENCY,
        # How often jobs are looked for whose worker could not report them.
        timers={"sweep": 3},
        cron_jobs=[CronJob(tick, cron="* * * * * */1")],
    )
    asyncio.create_task(worker.start())
    for number in range(5):
        await queue.enqueue("fails_twice", number=number, retries=3)
    await asyncio.to_thread(expect_notes, "attempt", [f"{number} {attempt}" for number in range(5) for attempt in (1, 2, 3)])
    await queue.enqueue("later", sent=time.time(), scheduled=int(time.time()) + 2)
    await asyncio.to_thread(expect_notes, "later", [True])
    first = await queue.enqueue("square", number=1, key="unique", retries=5, scheduled=int(time.time()) + 2)
    assert first and await queue.enqueue("square", number=1, key="unique") is None, "a key is queued once"
    assert await queue.map("square", [{"number": number} for number in range(2, 20)], timeout=PATIENCE, retries=5) == [
        number**2 for number in range(2, 20)
    ]
    jobs = [await queue.enqueue("square", number=number, retries=5, timeout=5) for number in range(20, 300)]
    await until(lambda: len(notes("square")) >= 60, "some of the jobs")
    await asyncio.to_thread(kill_server)
    jobs += [await queue.enqueue("square", number=number, retries=5, timeout=5) for number in range(300, 400)]
    await asyncio.to_thread(expect_notes, "square", range(1, 400), repeated=2 * CONCURRENCY)
    for job in jobs:
        await job.refresh(until_complete=PATIENCE)
        assert job.result == job.kwargs["number"] ** 2, job
    assert await queue.count("queued") <= 1 and await queue.count("active") == 0
    ticks = len(notes("tick"))
    await until(lambda: len(notes("tick")) > ticks, "cron after the kill")


def main():
    asyncio.run(run())
