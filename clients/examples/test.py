"""Runs the examples against a server that is killed and restarted while numbers are written, and looks at what each prints:
every number once, in order. Ends with "N passed, N failed".

    python test.py SERVER_BINARY GO_EXAMPLE_BINARY
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from watching import Example, Server, judge  # noqa: E402

KEY = "a key"


def main(binary, go_binary):
    with tempfile.TemporaryDirectory() as directory:
        server = Server(binary, directory)
        server.client.set(KEY, 0)
        address = ["127.0.0.1", str(server.port), KEY]
        examples = [
            Example("watch.py", [sys.executable, str(HERE / "watch.py"), *address]),
            Example("watch.go", [go_binary, f"127.0.0.1:{server.port}", KEY]),
            Example("watch.mjs", ["node", str(HERE / "watch.mjs"), *address]),
        ]
        judge(server, KEY, examples)


main(*sys.argv[1:])
