"""RQ: jobs with retries, dependencies, a schedule and results, while the server is killed."""

import datetime
import time

from redis import Redis
from rq import Queue, Retry
from rq.job import JobStatus
from rq.registry import FailedJobRegistry

from job import PORT, URL, expect_notes, kill_server, note, notes, supervise, wait_for

WORKERS = 2


def square(number):
    note(f"square {number}")
    return number * number


def fails_twice(number):
    note(f"attempt {number} {len(notes(f'attempt {number} '))}")
    assert len(notes(f"attempt {number} ")) == 3, "this was to be tried again"


def always_fails():
    raise ValueError("as wanted")


def later(sent):
    note(f"later {time.time() - sent >= 1}")


def main():
    connection = Redis(port=PORT)
    queue = Queue("jobs", connection=connection)
    for _ in range(WORKERS):
        supervise("-m", "rq.cli", "worker", "-u", URL, "--with-scheduler", "--worker-class", "rq.SimpleWorker", "jobs")
    for number in range(5):
        queue.enqueue(fails_twice, number, retry=Retry(max=3))
    expect_notes("attempt", [f"{number} {attempt}" for number in range(5) for attempt in range(3)])
    failing = queue.enqueue(always_fails)
    wait_for(lambda: failing.get_status() == JobStatus.FAILED, "the job that fails")
    assert failing.id in FailedJobRegistry(queue=queue)
    assert "as wanted" in failing.latest_result().exc_string
    queue.enqueue_in(datetime.timedelta(seconds=2), later, time.time())
    expect_notes("later", [True])

    first = queue.enqueue(square, 1000)
    queue.enqueue(square, 1001, depends_on=queue.enqueue(square, 1002, depends_on=first))
    expect_notes("square", [1000, 1001, 1002])
    assert notes("square") == ["square 1000", "square 1002", "square 1001"]

    jobs = [queue.enqueue(square, number, result_ttl=600) for number in range(300)]
    wait_for(lambda: len(notes("square")) >= 50, "some of the jobs")
    kill_server()
    jobs += [queue.enqueue(square, number, result_ttl=600) for number in range(300, 400)]
    # A worker that cannot report a job ends; RQ gives the job up when its lease is over.
    wait_for(lambda: queue.count == 0, "the queue to be empty")
    expect_notes("square", [*range(400), 1000, 1001, 1002], repeated=WORKERS, missing=WORKERS)
    finished = lambda: [job for job in jobs if job.get_status() == JobStatus.FINISHED]
    wait_for(lambda: len(finished()) >= len(jobs) - WORKERS, "the jobs to be finished")
    assert all(job.return_value() == job.args[0] ** 2 for job in finished())
