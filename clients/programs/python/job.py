"""What the programs in Python share."""

import collections
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

PORT = int(os.environ["PROGRAM_PORT"])
URL = f"redis://127.0.0.1:{PORT}/0"
FOLDER = Path(os.environ["PROGRAM_FOLDER"])
PATIENCE = float(os.environ["PROGRAM_PATIENCE"])


def kill_server():
    """Has the server killed with SIGKILL and restarted on its data."""
    request = FOLDER / "kill"
    request.touch()
    wait_for(lambda: not request.exists(), "the server to be restarted")


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what() if callable(what) else what}"
        time.sleep(0.02)


def start(*arguments):
    """Starts a worker, which ends with the program: it stays in its process group."""
    return subprocess.Popen([sys.executable, *arguments], stdout=sys.stderr)


def supervise(*arguments):
    """Starts a worker, and again each time when it has ended, as the supervisors of operating systems do."""

    def run():
        while True:
            start(*arguments).wait()

    threading.Thread(target=run, daemon=True).start()


def note(line):
    """Notes in a file that a job was done: the file does not depend on the server."""
    descriptor = os.open(FOLDER / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def notes(kind=""):
    """Returns the notes that begin with this, in the order in which they were written."""
    file = FOLDER / "notes"
    return [line for line in file.read_text().splitlines() if line.startswith(kind)] if file.exists() else []


def expect_notes(kind, expected, repeated=0, missing=0):
    """Waits until each of the expected jobs is noted, save at most `missing`. At most `repeated` of them may have been done more than
    once, and no other job."""
    expected = {f"{kind} {item}" for item in expected}
    undone = lambda: expected - set(notes(kind + " "))
    wait_for(lambda: len(undone()) <= missing, lambda: f"{len(undone())} jobs: {sorted(undone())[:5]}")
    counts = collections.Counter(notes(kind + " "))
    assert set(counts) <= expected, f"not asked for: {set(counts) - expected}"
    again = {line: count for line, count in counts.items() if count > 1}
    assert len(again) <= repeated, f"done more than once: {again}"
