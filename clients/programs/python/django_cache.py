"""django-redis: Django's cache and its sessions in Redis, with compression, patterns, time-outs and locks. What is cached is there after a
kill of the server."""

from concurrent.futures import ThreadPoolExecutor

import django
from django.conf import settings

from job import URL, kill_server

settings.configure(
    CACHES={
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": URL,
            "KEY_PREFIX": "site",
            "OPTIONS": {
                "CLIENT_CLASS": "django_redis.client.DefaultClient",
                "COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor",
            },
        }
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    INSTALLED_APPS=["django.contrib.sessions"],
)
django.setup()

from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402
from django.core.cache import cache  # noqa: E402


def main():
    page = {"title": "Tides", "rows": list(range(1000))}
    cache.set("page", page, timeout=600)
    assert cache.add("once", 1) and not cache.add("once", 2)
    cache.set_many({f"item:{number}": number for number in range(100)}, timeout=None)
    assert cache.ttl("item:1") is None and 590 < cache.ttl("page") <= 600
    with ThreadPoolExecutor(8) as threads:
        cache.set("visits", 0, timeout=None)
        list(threads.map(lambda _: cache.incr("visits"), range(400)))
    assert cache.get_or_set("made", lambda: "new") == "new" == cache.get_or_set("made", lambda: "other")
    session = SessionStore()
    session["user"] = 17
    session.save()
    lock = cache.lock("report", timeout=60, blocking=False)
    assert lock.acquire()

    kill_server()
    assert cache.get("page") == page and cache.get("visits") == 400
    assert SessionStore(session.session_key)["user"] == 17
    assert not cache.lock("report", timeout=60, blocking=False).acquire(), "the lock was lost with the server"
    lock.release()
    assert cache.get_many(f"item:{number}" for number in range(100)) == {f"item:{number}": number for number in range(100)}
    assert set(cache.iter_keys("item:1*")) == {f"item:{number}" for number in [1, *range(10, 20)]}
    assert cache.delete_pattern("item:*") == 100 and cache.keys("item:*") == []
    assert cache.touch("page", 5) and 0 < cache.ttl("page") <= 5 and cache.persist("page") and cache.ttl("page") is None
    cache.set("old", 1, version=1)
    assert cache.incr_version("old") == 2 and cache.get("old", version=1) is None and cache.get("old", version=2) == 1
    assert cache.hset("hash", "field", 1) and cache.hexists("hash", "field") and cache.hkeys("hash") == ["field"]
    assert cache.set("nx", 1, nx=True, timeout=60) and not cache.set("nx", 2, nx=True)
    SessionStore(session.session_key).flush()
    assert not SessionStore().exists(session.session_key)
    cache.clear()
    assert cache.get("page") is None
