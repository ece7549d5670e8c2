"""Runs the programs of docs/watching-clients.md, which watch a read by their clients' ordinary subscribers. Numbers are written meanwhile,
the server is killed and restarted, and it cuts off all subscribers: each program prints every number once, in order. They
share one channel, so each sees what the others ask for again. Ends with "N passed, N failed".

    python test.py SERVER_BINARY GO_PROGRAM JAVA_CLASSES NODE_FOLDER
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from watching import Example, Server, judge  # noqa: E402

KEY = "price"
CUT_AT = (75, 225, 375, 525)


def check_document():
    """The document shows the programs as they are run here."""
    document = (HERE.parent.parent / "docs" / "watching-clients.md").read_text()
    shown = ["redis_py.py", "ioredis.mjs", "node_redis.mjs", "go/main.go"]
    shown += [f"java/src/main/java/WatchBy{name}.java" for name in ("Jedis", "Lettuce")]
    for name in shown:
        assert (HERE / name).read_text() in document, f"docs/watching-clients.md does not show {name} as it is"


def main(binary, go_program, java_classes, node_folder):
    check_document()
    with tempfile.TemporaryDirectory() as directory:
        server = Server(binary, directory)
        server.client.set(KEY, 0)
        url = f"redis://127.0.0.1:{server.port}"
        java = ["java", "-cp", f"{java_classes}/classes:{java_classes}/dependency/*"]
        examples = [
            Example("redis-py", [sys.executable, str(HERE / "redis_py.py"), url]),
            Example("go-redis", [go_program, url]),
            Example("ioredis", ["node", f"{node_folder}/ioredis.mjs", url]),
            Example("node-redis", ["node", f"{node_folder}/node_redis.mjs", url]),
            Example("Jedis", [*java, "WatchByJedis", url]),
            Example("Lettuce", [*java, "WatchByLettuce", url]),
        ]
        judge(server, KEY, examples, CUT_AT)


main(*sys.argv[1:])
