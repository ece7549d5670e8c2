"""A plug-in for pytest that leads fakeredis's tests to the server at the port in SUITE_PORT: they know only port 6390."""

import functools
import os

import redis
import redis.asyncio

FIXED_PORT = 6390


def redirect(connection):
    original = connection.__init__

    @functools.wraps(original)
    def redirected(self, *arguments, port=6379, **options):
        original(self, *arguments, port=int(os.environ["SUITE_PORT"]) if port == FIXED_PORT else port, **options)

    connection.__init__ = redirected


redirect(redis.Connection)
redirect(redis.asyncio.Connection)
