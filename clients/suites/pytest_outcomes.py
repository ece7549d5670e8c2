"""A plug-in for pytest that writes every test's outcome to the file in SUITE_OUTCOMES, as README.md describes."""

import os

import pytest

outcomes = {}


def pytest_runtest_logreport(report):
    """Called for set-up, the test itself, and its end: the worst of the three is the test's outcome."""
    if report.failed:
        outcomes[report.nodeid] = "failed"
    elif report.skipped and not hasattr(report, "wasxfail"):
        outcomes.setdefault(report.nodeid, "skipped")
    elif report.when == "call":
        outcomes.setdefault(report.nodeid, "passed")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    with open(os.environ["SUITE_OUTCOMES"], "w", encoding="utf-8") as file:
        for test, outcome in outcomes.items():
            # A parameter may hold anything.
            name = test.encode("unicode_escape").decode("ascii")
            file.write(f"{outcome}\t{test.partition('::')[0]}\t{name}\n")
