"""Runs programs, each beside a server of its own, and prints one line for each: "NAME  ok" or "NAME  FAILED". Ends with
"N passed, N failed". `run` beside this installs what the programs need and calls it.

A program is a process. It finds in its environment

    PROGRAM_PORT      the port of its server on 127.0.0.1, with an empty data directory
    PROGRAM_FOLDER    an empty folder for files of its own
    PROGRAM_PATIENCE  the seconds after which it should stop waiting for something and fail

and exits with 0 if its job was done as its library promises. When it creates the file `kill` in its folder, the harness
kills the server with SIGKILL, restarts it on the same directory and removes the file. Each program must ask for it.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import versions

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
# How long a killed server stays away: clients see refused connections, too.
ABSENCE_SECONDS = 0.3
START_SECONDS = 30
# A program that hangs is ended after this. The slowest takes some 30 seconds, most of which it waits for leases to end.
PROGRAM_SECONDS = 240
# How often programs are looked after. A server that is always forgetful forgets everything this often.
LOOK_SECONDS = 0.02
# The servers and programs that run now, each in a process group of its own.
RUNNING = []


class Server:
    """A server with a data directory. Every change is on disk before it is answered: what a client knows survives SIGKILL."""

    def __init__(self, kind, folder):
        self.folder = folder
        self.directory = folder / "data"
        self.directory.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        common = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.directory)]
        if kind.redis:
            self.command = ["redis-server", *common, "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        else:
            self.command = [kind.binary, "serve", *common, "--durability", "always"]
        self.forgetful = kind.forgetful
        self.kills = 0
        self.process = None
        self.start()

    def start(self):
        with open(self.folder / "server.log", "ab") as log:
            self.process = run_in_group(self.command, log)
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {(self.folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.02)

    def answers(self):
        """Returns whether data is loaded: a server that still loads refuses DBSIZE."""
        return self.ask("DBSIZE").startswith(b":")

    def ask(self, command):
        """Sends a command without arguments; returns the first bytes of its reply, none if there is no connection."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(f"{command}\r\n".encode())
                return connection.recv(64)
        except OSError:
            return b""

    def kill_and_restart(self):
        self.stop()
        self.kills += 1
        if self.forgetful:
            shutil.rmtree(self.directory)
            self.directory.mkdir()
        time.sleep(ABSENCE_SECONDS)
        self.start()

    def stop(self):
        end_group(self.process)


class Program:
    """A program of `programs.json`."""

    def __init__(self, entry, kind):
        self.name = entry["name"]
        self.language = entry["language"]
        self.kind = kind
        self.kills = 0

    def run(self):
        """Runs it. Returns None if it succeeded, otherwise what was wrong."""
        # Not deleted while it is still written to by processes that end a little later.
        with tempfile.TemporaryDirectory(prefix="program-", ignore_cleanup_errors=True) as folder:
            return self.run_in(Path(folder))

    def run_in(self, folder):
        server = Server(self.kind, folder)
        files = folder / "files"
        files.mkdir()
        log = self.kind.logs / f"program-{self.name}{self.kind.suffix}.log"
        environment = {
            **os.environ,
            "PROGRAM_PORT": str(server.port),
            "PROGRAM_FOLDER": str(files),
            "PROGRAM_PATIENCE": "5" if self.kind.forgetful else "100",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            with open(log, "wb") as output:
                process = run_in_group(self.command(), output, cwd=HERE / self.language, env=environment)
            try:
                status = self.attend(process, server, files)
            finally:
                # The workers that it started are in its process group.
                end_group(process)
            if status != 0:
                return f"{status}\n{tail(log)}"
            if server.kills == 0:
                return "it did not ask for a kill of the server"
            if server.process.poll() is not None:
                return f"the server ended\n{tail(folder / 'server.log')}"
            return None
        finally:
            server.stop()

    def command(self):
        work = self.kind.work
        module = self.name.replace("-", "_")
        return {
            # As a module with its own name: workers import its functions.
            "python": [str(work / "venv-programs" / "python" / "bin" / "python"), "-c", f"import {module}; {module}.main()"],
            "node": ["node", str(work / "programs-node" / f"{self.name}.mjs")],
            "go": [str(work / "programs-go"), self.name],
            "java": ["java", "-cp", f"{work}/programs-java/classes:{work}/programs-java/dependency/*", "Main", self.name],
            "ruby": ["ruby", f"{module}.rb"],
        }[self.language]

    def attend(self, process, server, files):
        """Waits for the program and kills the server when it asks for that. Returns 0 or what was wrong."""
        deadline = time.monotonic() + PROGRAM_SECONDS
        request = files / "kill"
        while time.monotonic() < deadline:
            if request.exists():
                server.kill_and_restart()
                request.unlink()
            elif server.forgetful == "always":
                server.ask("FLUSHALL")
            status = process.poll()
            if status is not None:
                return 0 if status == 0 else f"exit status {status}"
            time.sleep(LOOK_SECONDS)
        return f"not finished after {PROGRAM_SECONDS} s"


def run_in_group(command, output, **options):
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, **options
    )
    RUNNING.append(process)
    return process


def end_group(process):
    """Ends a process with all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    if process in RUNNING:
        RUNNING.remove(process)


def end_all(*_):
    """Ends what still runs when the harness is ended."""
    for process in list(RUNNING):
        end_group(process)
    os._exit(1)


def tail(path):
    text = "\n".join(path.read_text(errors="replace").splitlines()[-30:])
    # Counts of its own would be taken for ours.
    return re.sub(r"(\d+) (passed|failed)", r"\1 were \2", text)


def run_all(programs, kind):
    """Runs two programs at a time: most of their time they wait. Returns the names of those that failed."""
    waiting = list(programs)
    failed = []
    lock = threading.Lock()

    def worker():
        while True:
            with lock:
                if not waiting:
                    return
                program = waiting.pop(0)
            start = time.monotonic()
            try:
                problem = program.run()
            except Exception as error:  # A harness that fails has not passed the program.
                problem = repr(error)
            if kind.forgetful:
                problem = None if problem else "it did not notice that the server forgets everything"
            with lock:
                if problem:
                    failed.append(program.name)
                seconds = time.monotonic() - start
                print(f"{program.name:24} {'FAILED' if problem else 'ok':6} {seconds:5.1f} s", flush=True)
                if problem:
                    print("    " + problem.replace("\n", "\n    "), flush=True)

    threads = [threading.Thread(target=worker) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


class Kind:
    """The server that the programs use."""

    def __init__(self, arguments, redis=False):
        self.redis = redis
        self.forgetful = arguments.forgetful
        self.binary = arguments.binary
        self.work = Path(arguments.work)
        self.logs = self.work / "logs"
        self.suffix = "-redis" if redis else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", help="the server's program")
    parser.add_argument("--work", help="the folder with installed packages")
    parser.add_argument("--languages", action="store_true", help="only prints the languages of the chosen programs")
    parser.add_argument("--few", action="store_true", help="only the programs that `./check` runs")
    parser.add_argument("--redis", action="store_true", help="Debian's redis-server instead of Tidemark")
    parser.add_argument("--forgetful", choices=["always", "kills"], help="a server that forgets everything: each program must fail")
    parser.add_argument("--update", action="store_true", help="runs them with Redis and with Tidemark, and writes results.json")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, end_all)
    signal.signal(signal.SIGTERM, end_all)
    entries = json.loads((HERE / "programs.json").read_text())
    unknown = set(arguments.names) - {entry["name"] for entry in entries}
    if unknown:
        parser.error(f"no program is named {', '.join(sorted(unknown))}")
    chosen = [entry for entry in entries if entry["name"] in arguments.names or not (arguments.names or arguments.few and not entry["few"])]
    if arguments.languages:
        return print(*sorted({entry["language"] for entry in chosen}))
    if arguments.update:
        update(entries, chosen, arguments)
    stale = [entry["name"] for entry in chosen if described(entry) not in known_programs()]
    if stale:
        print(f"results.json does not describe {', '.join(stale)} as now: run clients/programs/run --update {' '.join(stale)}")
    kind = Kind(arguments, arguments.redis)
    failed = run_all([Program(entry, kind) for entry in chosen], kind)
    failures = set(failed) | set(stale)
    print(f"{len(chosen) - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


def described(entry):
    """Returns what results.json says of a program beside its results."""
    keys = ("name", "title", "language", "job", "lacks")
    return {**{key: entry[key] for key in keys if key in entry}, "version": versions.version(entry)}


def known_programs():
    """Returns the descriptions in results.json."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    return [{key: value for key, value in result.items() if key not in ("redis", "tidemark")} for result in results]


def update(entries, chosen, arguments):
    """Writes the results of the chosen programs to results.json and keeps the others'."""
    known = {result["name"]: result for result in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    kinds = {"redis": Kind(arguments, redis=True), "tidemark": Kind(arguments)}
    failed = {}
    for server, kind in kinds.items():
        print(f"with {server}:")
        failed[server] = run_all([Program(entry, kind) for entry in chosen], kind)
    for entry in chosen:
        verdicts = {server: "fails" if entry["name"] in names else "works" for server, names in failed.items()}
        known[entry["name"]] = {**described(entry), **verdicts}
    results = [known[entry["name"]] for entry in entries if entry["name"] in known]
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    count = sum(len(names) for names in failed.values())
    print(f"{2 * len(chosen) - count} passed, {count} failed")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
