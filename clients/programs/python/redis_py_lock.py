"""redis-py's Lock: one holder at a time among processes; a lock that is held when the server is killed is still held after it."""

import multiprocessing
import time

from redis import Redis
from redis.exceptions import LockNotOwnedError

from job import FOLDER, PORT, kill_server

WORKERS, ROUNDS = 4, 100


def count_up(file):
    """Reads a number, pauses, and writes the next one: without a lock most of these get lost."""
    number = int(file.read_text())
    time.sleep(0.001)
    file.write_text(str(number + 1))


def work(file):
    client = Redis(port=PORT)
    for _ in range(ROUNDS):
        with client.lock("counter", timeout=30, sleep=0.001):
            count_up(file)


def main():
    file = FOLDER / "number"
    file.write_text("0")
    workers = [multiprocessing.Process(target=work, args=(file,)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(worker.exitcode == 0 for worker in workers)
    assert int(file.read_text()) == WORKERS * ROUNDS, f"{file.read_text()}: two held the lock at one time"

    mine, other = (Redis(port=PORT).lock("kept", timeout=60, blocking=False) for _ in range(2))
    assert mine.acquire() and not other.acquire()
    kill_server()
    assert not other.acquire(), "the lock was lost with the server"
    assert mine.owned() and mine.extend(60) and mine.reacquire()
    mine.release()
    assert other.acquire()

    short = Redis(port=PORT).lock("short", timeout=0.1, blocking=False)
    assert short.acquire()
    successor = Redis(port=PORT).lock("short", timeout=60, blocking_timeout=30, sleep=0.01)
    assert successor.acquire(), "a lock ends with its time"
    try:
        short.release()
        raise AssertionError("who lost a lock could release its successor's")
    except LockNotOwnedError:
        assert successor.owned()
