#!/usr/bin/env python3
"""Compares the outcome of every test of a client's suite with the list of those that are expected to fail.

    judge.py SUITE OUTCOMES [--update]
    judge.py SUITE OUTCOMES --unlisted CONFIGURATION

SUITE is the suite's folder here, OUTCOMES the folder with its outcome files. README.md describes all files. Prints what
is unexpected and, last, "N passed, M failed"; the exit status is 0 if nothing was unexpected. --update writes
SUITE/results.json, if nothing was unexpected, instead of comparing with it. --unlisted prints the tests of a
configuration that failed without being listed, so that a suite whose tests race can run them again.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

OUTCOMES = ("passed", "failed", "skipped")


class Malformed(Exception):
    """A file is not what README.md says; the text names file and line."""


class Expectation:
    """One line of expected-failures.txt."""

    def __init__(self, reason, pattern, only, where):
        self.reason, self.pattern, self.only, self.where = reason, pattern, only, where
        self._matches = re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL).fullmatch
        self.used = False

    def covers(self, configuration, name):
        names = (name, name.partition("[")[0])
        return self.only in (None, configuration) and any(map(self._matches, names))


def lines(path):
    """The numbered lines of a list, without comments and empty ones."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield f"{path}:{number}", line


def read_reasons(path):
    reasons = {}
    for where, line in lines(path):
        match = re.fullmatch(r"([a-z0-9-]+): (\S.*)", line)
        if match is None or match[1] in reasons:
            raise Malformed(f"{where}: not a new 'key: explanation': {line}")
        reasons[match[1]] = match[2]
    return reasons


def read_expectations(path, reasons):
    expectations = []
    for where, line in lines(path):
        match = re.fullmatch(r"(\S+)\s+(\S.*?)(?:\s{2,}only\s+(\S+))?\s*", line)
        if match is None:
            raise Malformed(f"{where}: not 'reason  test': {line}")
        if match[1] not in reasons:
            raise Malformed(f"{where}: reasons.txt has no {match[1]}")
        expectations.append(Expectation(match[1], match[2], match[3], where))
    return expectations


def read_outcomes(path):
    """The tests of one configuration: {name: (outcome, file)}."""
    tests = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fields = line.split("\t")
        if len(fields) != 3 or fields[0] not in OUTCOMES:
            raise Malformed(f"{path}:{number}: not 'outcome<tab>file<tab>name': {line}")
        outcome, file, name = fields
        if name in tests:
            raise Malformed(f"{path}:{number}: a second outcome for {name}")
        tests[name] = (outcome, file)
    if not tests:
        raise Malformed(f"{path}: no test ran")
    return tests


class Verdict:
    """What the comparison found: a count of tests as expected, and a line for everything unexpected."""

    def __init__(self):
        self.passed = 0
        self.unexpected = []

    def judge(self, configuration, tests, expectations):
        """Judges one configuration; returns its part of results.json."""
        files, reasons = {}, Counter()
        for name, (outcome, file) in tests.items():
            counts = files.setdefault(file, {"passed": 0, "expected": 0, "skipped": 0})
            covering = [line for line in expectations if line.covers(configuration, name)]
            for line in covering:
                line.used = True
            if outcome == "skipped":
                counts["skipped"] += 1
            elif outcome == "passed" and covering:
                self.unexpected.append(f"{configuration}: passes, but {covering[0].where} lists it: {name}")
            elif outcome == "failed" and not covering:
                self.unexpected.append(f"{configuration}: fails, and is not listed: {name}")
            elif outcome == "failed":
                counts["expected"] += 1
                reasons[covering[0].reason] += 1
            else:
                counts["passed"] += 1
                self.passed += 1
        return {
            "name": configuration,
            "files": dict(sorted(files.items())),
            "reasons": dict(sorted(reasons.items())),
        }

    def unused(self, expectations):
        self.unexpected += [f"{line.where}: matches no test: {line.pattern}" for line in expectations if not line.used]

    def compare(self, path, results):
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        # How many tests a suite skips may depend on the language's version; the others may not.
        if not self.unexpected and without_skipped(found) != without_skipped(results):
            self.unexpected.append(f"{path}: is not what this run counted; clients/suites/run --update writes it anew")


def without_skipped(results):
    return json.loads(json.dumps(results), object_hook=lambda item: {k: v for k, v in item.items() if k != "skipped"})


def main(arguments):
    suite, outcomes, *options = arguments
    suite, outcomes = Path(suite), Path(outcomes)
    reasons = read_reasons(Path(__file__).parent / "reasons.txt")
    expectations = read_expectations(suite / "expected-failures.txt", reasons)
    match options:
        case [] | ["--update"]:
            return judge(suite, outcomes, expectations, update=bool(options))
        case ["--unlisted", configuration]:
            print_unlisted(configuration, read_outcomes(outcomes / f"{configuration}.outcomes"), expectations)
            return 0
        case _:
            raise Malformed(__doc__)


def print_unlisted(configuration, tests, expectations):
    for name, (outcome, _) in tests.items():
        if outcome == "failed" and not any(line.covers(configuration, name) for line in expectations):
            print(name)


def judge(suite, outcomes, expectations, update):
    verdict = Verdict()
    results = {
        "suite": suite.name,
        "version": (outcomes / "version").read_text(encoding="utf-8").strip(),
        "configurations": [
            verdict.judge(path.stem, read_outcomes(path), expectations) for path in sorted(outcomes.glob("*.outcomes"))
        ],
    }
    if not results["configurations"]:
        raise Malformed(f"{outcomes}: no outcome file")
    verdict.unused(expectations)
    path = suite / "results.json"
    if not update:
        verdict.compare(path, results)
    elif not verdict.unexpected:
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("\n".join(verdict.unexpected))
    print(f"{verdict.passed} passed, {len(verdict.unexpected)} failed")
    return 1 if verdict.unexpected else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Malformed, OSError, UnicodeDecodeError) as error:
        print(error)
        print("0 passed, 1 failed")
        sys.exit(1)
