"""Prints the outcomes of a run of Ginkgo, as ../README.md describes them: outcomes.py REPORT, its report in JSON."""

import json
import sys
from collections import Counter

OUTCOMES = {"passed": "passed", "skipped": "skipped", "pending": "skipped"}


def main(report):
    seen = Counter()
    with open(report, encoding="utf-8") as file:
        (suite,) = json.load(file)
    for spec in suite["SpecReports"]:
        # What the command line leaves out is not attempted.
        if spec["LeafNodeType"] != "It" or spec["NumAttempts"] == 0:
            continue
        file = spec["LeafNodeLocation"]["FileName"].rpartition("/")[2]
        name = " ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]])
        name = f"{file}::{' '.join(name.split())}"
        seen[name] += 1
        # Names repeat, as in tables: the second has "#2" behind it.
        number = f" #{seen[name]}" if seen[name] > 1 else ""
        print(OUTCOMES.get(spec["State"], "failed"), file, name + number, sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
