"""What the tests of examples that watch share: a server that is killed and restarted while numbers are written, and a look at what
each example prints: every number once, in order."""

import json
import queue
import socket
import subprocess
import sys
import threading
import time

import redis

NUMBERS = 600
# The server is killed while these are written.
KILLED_AT = (150, 300, 450)
# Longer than anything takes.
PATIENCE_SECONDS = 60


class Server:
    """The real binary. Nobody is told of a change before it is on disk."""

    def __init__(self, binary, directory):
        self.port = free_port()
        self.client = redis.Redis(port=self.port, retry=None)
        self.arguments = [binary, "serve", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", directory]
        self.arguments += ["--durability", "always"]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.arguments, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                return self.client.ping()
            except redis.ConnectionError:
                time.sleep(0.02)
        raise AssertionError("the server does not answer")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Example:
    """A running example, and the lines that it has printed."""

    def __init__(self, name, arguments):
        self.name = name
        self.lines = queue.Queue()
        self.lsn = 0
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = []
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def expect(self, numbers):
        """Reads lines: the values must be these numbers, the sequence dense, the LSNs ascending."""
        for number in numbers:
            line = self.lines.get(timeout=PATIENCE_SECONDS)
            lsn, seq, value = (int(json.loads(word)) for word in line.split(" "))
            assert (seq, value) == (number, number), f"{number} was to come: {line}"
            assert lsn > self.lsn, f"an LSN above {self.lsn} was to come: {line}"
            self.lsn = lsn

    def failure(self, numbers):
        """What is wrong with what it prints; None if nothing is."""
        try:
            self.expect(numbers)
        except (AssertionError, ValueError, queue.Empty) as error:
            return f"{error!r}\n{''.join(self.said)}"
        return None


def write(server, key, cut_at=()):
    """Writes the numbers, and cuts off all subscribers of channels at some. What was not answered is said again, which changes nothing if it was carried out."""
    for number in range(1, NUMBERS + 1):
        if number in KILLED_AT:
            # In the middle of what the writer does, and not between two of its commands.
            threading.Thread(target=server.kill).start()
        if number in cut_at:
            server.client.client_kill_filter(_type="pubsub")
        while True:
            try:
                server.client.set(key, number)
                break
            except redis.ConnectionError:
                if server.process.poll() is not None:
                    server.start()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def judge(server, key, examples, cut_at=()):
    """Lets examples watch a key, which is 0, while numbers are written. Prints "N passed, N failed" and ends the process."""
    try:
        # Everybody watches before anything is written.
        failures = {example.name: example.failure([0]) for example in examples}
        write(server, key, cut_at)
        for example in examples:
            failures[example.name] = failures[example.name] or example.failure(range(1, NUMBERS + 1))
    finally:
        for example in examples:
            example.process.kill()
        server.kill()
    failures = {name: failure for name, failure in failures.items() if failure is not None}
    for name, failure in failures.items():
        print(f"FAILED {name}: {failure}")
    print(f"{len(examples) - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)
