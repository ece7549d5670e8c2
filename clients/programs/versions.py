"""The versions of the programs, from the files that pin them."""

import json
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


def version(entry):
    """Returns the version of the entry's package."""
    package = entry["package"]
    if entry["language"] == "python":
        return pinned("python/requirements.txt", rf"(?im)^{re.escape(package)}==(\S+)$")
    if entry["language"] == "node":
        packages = json.loads((HERE / "node" / "package.json").read_text())
        return packages["dependencies"][package]
    if entry["language"] == "go":
        return pinned("go/go.mod", rf"(?m)^\s*{re.escape(package)} v(\S+)")
    if entry["language"] == "java":
        return pinned("java/pom.xml", rf"<artifactId>{re.escape(package)}</artifactId>\s*<version>(\S+)</version>")
    # Debian's revision is not the program's.
    installed = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=True)
    return re.split(r"[+-]", installed.stdout)[0]


def pinned(file, pattern):
    found = re.search(pattern, (HERE / file).read_text())
    assert found, f"{file} does not pin what {pattern} matches"
    return found[1]
