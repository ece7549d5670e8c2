#!/usr/bin/env python3
"""Sends the same random `TS.` commands to Tidemark and to Redis's time series, and compares the answers.

    compare.py --tidemark PROGRAM --redis PROGRAM --module FILE [--commands N] [--seed N] [--every-difference-occurs]

It starts both servers. Answers are equal, byte for byte with their types, or differ as a list says (differences.py, with a reason each; docs/differences.md
has the same for people). Commands that end Redis are not sent. If it
ends all the same, that is printed, and it is started again; if Tidemark ends, the run fails.

Ends with "N passed, N failed": the kinds of commands that agreed, and those that did not. With --every-difference-occurs, an entry
of the list that explained nothing fails too.

Exit codes: 0 all agreed; 1 something differs, or a server does not answer; 2 wrong arguments.
"""

import argparse
import collections
import contextlib
import pathlib
import random
import subprocess
import sys
import tempfile

from commands import ALL_KEYS, FAR, OPTIONS, TEXT, Generator
from differences import KNOWN, Case
from servers import UNASKED, Closed, Connection, Error, Server

# Commands in one protocol before the other's turn.
TURN = 500
# Commands after which both servers are emptied.
EPOCH = 4_000
# Unexplained differences after which the run ends.
ENOUGH = 40
# Ends of Redis after which the run ends.
ENDS = 50


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", required=True, help="the binary to test")
    parser.add_argument("--redis", required=True, help="redis-server that can load the module")
    parser.add_argument("--module", required=True, help="redistimeseries.so")
    parser.add_argument("--commands", type=int, default=200_000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--every-difference-occurs", action="store_true",
                        help="a known difference that did not occur fails")
    return parser.parse_args()


def harms_redis(words):
    """Whether Redis 1.12 is known to end on a command, or to fill the memory."""
    upper = [word.upper() for word in words]
    if upper[0] in (b"TS.INCRBY", b"TS.DECRBY") and upper[-1] == b"TIMESTAMP":
        return True
    if upper[0] in WRITES and is_far_elsewhere(words):
        return True
    if b"GROUPBY" in upper and (upper.count(b"REDUCE") != 1 or upper[-2] != b"REDUCE" or upper[-4] != b"GROUPBY"):
        return True
    # The start of a longer bucket than any series overflows.
    if b"AGGREGATION" in upper and any(len(word) > 18 and word.isdigit() for word in words):
        return True
    if b"EMPTY" not in upper:
        return False
    # Points far from each other, ends exchanged or equal, and filtered neighbours.
    return FAR in words or b"ALIGN" in upper or b"TWA" in upper and (
        not is_rising(words) or any(word.startswith(b"FILTER_BY") for word in upper))


def is_far_elsewhere(words):
    """Whether a command may add a point far from the others of its key."""
    if words[1:2] == [FAR] and words[0].upper() != b"TS.MADD":
        return False
    return any(len(word) > 5 and word.isdigit() and before != FAR for before, word in zip(words, words[1:]))


def is_rising(words):
    ends = words[1:3] if words[0].upper().startswith(b"TS.M") else words[2:4]
    try:
        start, end = (int(word) if word not in (b"-", b"+") else None for word in ends)
    except ValueError:
        return False
    return start is None or end is None or start <= end


class Comparison:
    """Both servers, and what was found."""

    def __init__(self, our_server, their_server):
        self.our_server, self.their_server = our_server, their_server
        self.connect()
        self.protocol = 2
        self.ends = []
        self.history = collections.deque(maxlen=2000)
        self.with_retention = set()
        self.explained = collections.Counter()
        self.answered = collections.Counter()
        self.unexplained = []

    def __call__(self, words):
        """Asks both servers; of Redis, what would end it is not asked."""
        ours, theirs = self.ours[self.protocol], self.theirs[self.protocol]
        if b"REV" in words[0].upper() and any(word.upper() == b"EMPTY" for word in words):
            return ours.call(words), UNASKED
        ours.send(words)
        theirs.send(words)
        return ours.read(), theirs.read()

    def connect(self):
        self.ours = {protocol: Connection(self.our_server.port, protocol) for protocol in (2, 3)}
        self.theirs = {protocol: Connection(self.their_server.port, protocol) for protocol in (2, 3)}

    def has_retention(self, key):
        return key in self.with_retention

    def empty(self):
        self(b"FLUSHALL".split())
        self([b"SET", TEXT, b"1"])
        self.with_retention.clear()

    def send(self, words, done):
        self.history.append(words)
        if words[0] in (b"RENAME", b"COPY") and words[1] != words[2]:
            # Redis would keep the labels of a key that another replaces.
            self([b"DEL", words[2]])
        try:
            case = Case(words, done, *self(words), self)
            agrees = case.agrees()
            if not agrees:
                self.report(case)
                case.uses.add("unexplained")
            self.settle(case)
        except Closed:
            return self.start_again(words)
        if agrees:
            self.explained.update(case.uses)
            self.answered[words[0].upper()] += 1

    def start_again(self, words):
        """Starts Redis again after it has ended."""
        try:
            self.our_server.process.wait(0.2)
        except subprocess.TimeoutExpired:
            self.ends.append((words, self.before(words)))
            self.their_server.stop()
            self.their_server.start()
            self.connect()
            self.empty()
            return
        raise SystemExit(f"Tidemark ended on {shown(words)}")

    def before(self, words):
        """Returns the latest commands on the keys of the last one."""
        keys = {word for word in words if word in (*ALL_KEYS, FAR)}
        return [words for words in list(self.history)[:-1] if keys & set(words) and (words[0] in WRITES or not words[0].startswith(b"TS"))][-8:]

    def report(self, case):
        self.unexplained.append(
            (case.name.decode(), f"RESP{self.protocol}, {case.done} changed: {shown(case.words)}\n  ours:   {case.ours!r:.1500}\n  theirs: {case.theirs!r:.1500}\n"
             "  before, on its keys:\n" + "".join(f"    {shown(words):.300}\n" for words in self.before(case.words))))

    def settle(self, case):
        """Makes the states equal again: the keys of a command are deleted after which they may differ."""
        words, name = case.words, case.name
        # All words: one may have become a key.
        keys = words[1:]
        writes = name.startswith(b"TS.") and name in WRITES
        is_difference = case.uses - {"prefix of errors", "text of duplicates"} and writes
        leaves_a_key = name in (b"TS.INCRBY", b"TS.DECRBY") and isinstance(case.theirs, Error)
        has_clock = writes and case.has_clock()
        had_retention = name in (b"TS.DEL", b"TS.ALTER") and self.with_retention & set(words[1:2])
        is_option = writes and keys[:1] and keys[0].upper() in OPTIONS
        swallows = writes and case.has_options_after_labels()
        if is_difference or leaves_a_key or had_retention or has_clock or is_option or swallows:
            self([b"DEL", *keys])
            self.with_retention.difference_update(keys)
            self([b"SET", TEXT, b"1"])
        elif b"RETENTION" in case.upper and writes and len(words) > 1:
            self.with_retention.add(words[1])
        elif name in (b"RENAME", b"COPY") and words[1] in self.with_retention:
            self.with_retention.add(words[2])

    def compare_states(self):
        keys, theirs = self([b"KEYS", b"*"])
        if sorted(keys) != sorted(theirs):
            self.unexplained.append(("KEYS", f"keys: ours {sorted(keys)}, theirs {sorted(theirs)}\n"))
        for key in keys:
            if key not in (TEXT, *OPTIONS):
                self.send([b"TS.INFO", key], "nothing")
                self.send([b"TS.RANGE", key, b"-", b"+"], "nothing")
        return len(keys)


WRITES = {b"TS.CREATE", b"TS.ALTER", b"TS.ADD", b"TS.MADD", b"TS.INCRBY", b"TS.DECRBY", b"TS.DEL"}


def shown(words):
    return " ".join(word.decode(errors="backslashreplace") if word and b" " not in word else repr(word)[1:] for word in words)


def names_of(comparison):
    """Returns the commands that both servers know."""
    def known(connection):
        return {name.lower() for name in connection.call([b"COMMAND", b"LIST"]) if name.lower().startswith(b"ts.")}
    return known(comparison.ours[2]) & known(comparison.theirs[2])


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as servers:
        def start(name, command):
            server = Server(name, command, pathlib.Path(work) / name)
            servers.callback(server.stop)
            return server

        ours = start("tidemark", [options.tidemark, "serve", "--port", "PORT", "--dir", "DIRECTORY", "--durability", "off"])
        theirs = start("redis", [options.redis, "--port", "PORT", "--bind", "127.0.0.1", "--save", "", "--dir", "DIRECTORY",
                                 "--crash-log-enabled", "no", "--crash-memcheck-enabled", "no",
                                 "--loadmodule", options.module])
        return compare(options, Comparison(ours, theirs))


def compare(options, comparison):
    generator = Generator(random.Random(options.seed), names_of(comparison))
    sent = keys = 0
    while sent < options.commands and len(comparison.unexplained) < ENOUGH and len(comparison.ends) < ENDS:
        if sent % EPOCH == 0:
            try:
                keys += comparison.compare_states() if sent else 0
                comparison.empty()
            except Closed:
                comparison.start_again([b"KEYS"])
        words, done = generator.command()
        if harms_redis(words):
            continue
        comparison.protocol = 2 + sent // TURN % 2
        comparison.send(words, done)
        sent += 1
    keys += comparison.compare_states()
    return conclude(options, comparison, sent, keys)


def conclude(options, comparison, sent, keys):
    print(f"{sent} commands, {keys} keys compared after every {EPOCH}, seed {options.seed}")
    for name, count in comparison.explained.most_common():
        print(f"{count:8} {name}: {KNOWN[name]}")
    for words, before in comparison.ends:
        print(f"Redis ended on {shown(words)}, after", *(f"    {shown(words):.300}" for words in before), sep="\n")
    failed = collections.Counter(name for name, _ in comparison.unexplained)
    for _, text in comparison.unexplained:
        print(f"differs without a reason: {text}")
    unused = [name for name in KNOWN if not comparison.explained[name]]
    for name in unused:
        print(f"did not occur: {name}: {KNOWN[name]}")
    wrong = len(failed) + (len(comparison.ends) >= ENDS) + (len(unused) if options.every_difference_occurs else 0)
    print(f"{len(set(comparison.answered) - {name.encode() for name in failed})} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
