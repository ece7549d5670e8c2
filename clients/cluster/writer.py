"""What each program of this folder does, for Python."""

import sys
import threading
import time

PATIENCE_S = 30
BEFORE = 100
BEHIND = 100


def run(name, connect, error):
    """Writes numbers until the leader was killed and some more are acknowledged, then reads all of them."""
    killed = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), killed.set()), daemon=True).start()

    def persist(command):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return command()
            except error as reason:
                if time.monotonic() > end:
                    raise
                print(f"{name}: {reason!r}", file=sys.stderr)
                time.sleep(0.05)

    client = persist(connect)
    written, behind = 0, 0
    while behind < BEHIND:
        was_killed = killed.is_set()
        persist(lambda: client.set(f"{name}:{written}", written))
        written += 1
        behind += was_killed
        if written == BEFORE:
            print("ready", flush=True)
        time.sleep(0.002)
    found = [persist(lambda number=number: client.get(f"{name}:{number}")) for number in range(written)]
    assert found == [str(number).encode() for number in range(written)], found
    print("done", flush=True)
