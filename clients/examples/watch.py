#!/usr/bin/env python3
"""Watches GET KEY and prints "lsn seq value" for the answer and each change of it, through broken connections and restarts
of the server: none twice, none left out. Needs redis-py. Usage: watch.py HOST PORT KEY"""

import random
import sys
import time

import redis


def main(host, port, key):
    position = None  # subscription, lsn and seq of the last line
    delay_seconds = 0.05
    while True:
        connection = redis.Connection(host, int(port), protocol=3, decode_responses=True, socket_timeout=None)
        try:
            for position in follow(connection, key, position):
                delay_seconds = 0.05
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            print(error, file=sys.stderr)
        connection.disconnect()
        # By chance up to half less, so that not all clients of a server come back at one moment.
        time.sleep(delay_seconds * random.uniform(0.5, 1))
        delay_seconds = min(2 * delay_seconds, 5)


def follow(connection, key, position):
    """Prints what comes on one connection; yields the position behind each line, and None where emissions may be missing."""
    if position is None:
        begun = ask(connection, "GET.WATCH", key)
        subscription, lsn, seq = begun["sub_id"], begun["lsn"], begun["seq"]
        print(lsn, seq, begun["value"], flush=True)
        yield subscription, lsn, seq
    else:
        subscription, lsn, seq = position
        answer = ask(connection, "EMITRECONNECT", key, subscription, lsn)
        if answer != ["OK", seq + 1]:
            print("emissions may be missing:", *answer, file=sys.stderr)
            yield None
            return
    while True:
        push = connection.read_response(push_request=True)
        if push[0] == "stale":
            print("emissions are missing:", *push, file=sys.stderr)
            yield None
            return
        if push[0] == "emission" and push[2] > lsn:
            _, _, lsn, seq, value = push
            print(lsn, seq, value, flush=True)
            yield subscription, lsn, seq


def ask(connection, *words):
    connection.send_command(*words)
    return connection.read_response()


main(*sys.argv[1:])
