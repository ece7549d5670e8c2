"""Connections to the two servers, and answers with their types."""

import resource
import socket
import subprocess
import time

# Address space of a server: Redis answers some ranges with all the memory that there is.
MEMORY_MAX = 4 << 30


class Closed(Exception):
    """The server closed the connection."""


# The answer of a server that was not asked.
UNASKED = object()


class Error(str):
    """An error in an answer."""


class Simple(str):
    """A simple string, such as OK, or a value of a point in RESP2."""


class Connection:
    """One connection, in RESP2 or RESP3."""

    def __init__(self, port, protocol):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        if protocol == 3:
            self.call([b"HELLO", b"3"])

    def send(self, words):
        parts = [b"*%d\r\n" % len(words)]
        parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        try:
            self.socket.sendall(b"".join(parts))
        except OSError as error:
            raise Closed from error

    def call(self, words):
        self.send(words)
        return self.read()

    def read(self):
        try:
            line = self.file.readline()
        except OSError as error:
            raise Closed from error
        if not line.endswith(b"\r\n"):
            raise Closed
        kind, rest = line[0], line[1:-2]
        if kind == ord(":"):
            return int(rest)
        if kind == ord("+"):
            return Simple(rest.decode())
        if kind == ord("-"):
            return Error(rest.decode())
        if kind == ord(","):
            return float(rest)
        if kind == ord("$"):
            length = int(rest)
            return None if length < 0 else self.file.read(length + 2)[:-2]
        if kind == ord("*"):
            length = int(rest)
            return None if length < 0 else [self.read() for _ in range(length)]
        if kind == ord("%"):
            return {"map": [(self.read(), self.read()) for _ in range(int(rest))]}
        if kind == ord("~"):
            return {"set": [self.read() for _ in range(int(rest))]}
        if kind == ord("_"):
            return None
        raise ValueError(f"an unknown type in {line!r}")


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))


class Server:
    """A child process that serves RESP on a free port of loopback, in a directory of its own."""

    def __init__(self, name, command, directory):
        self.name, self.command, self.directory = name, command, directory
        self.start()

    def start(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.directory.mkdir(exist_ok=True)
        command = [str(self.port) if word == "PORT" else str(self.directory) if word == "DIRECTORY" else word
                   for word in self.command]
        with open(self.directory.parent / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            preexec_fn=limit_memory)
        for _ in range(1500):
            try:
                if Connection(self.port, 2).call([b"PING"]) == "PONG":
                    return
            except (OSError, Closed):
                if self.process.poll() is not None:
                    break
            time.sleep(0.02)
        raise SystemExit(f"{self.name} does not answer; see {log.name}")

    def stop(self):
        self.process.kill()
        self.process.wait()
