"""Flask-Limiter: a site with three limits. Each admits exactly its number of requests, through a kill of the server."""

import collections

from flask import Flask, request
from flask_limiter import Limiter

from job import URL, kill_server

STRATEGIES = {"fixed-window": 20, "moving-window": 30, "sliding-window-counter": 40}


def site(strategy, limit):
    app = Flask(strategy)
    # The key of a client is its header, so that the test can play several.
    limiter = Limiter(
        lambda: request.headers["client"], app=app, storage_uri=URL, strategy=strategy, headers_enabled=True
    )

    @app.get("/")
    @limiter.limit(f"{limit} per hour")
    def page():
        return "hello"

    return app.test_client()


def main():
    sites = {strategy: site(strategy, limit) for strategy, limit in STRATEGIES.items()}
    answers = collections.defaultdict(collections.Counter)

    def visit(strategy, count):
        for client in ("ann", "bob"):
            for _ in range(count):
                response = sites[strategy].get("/", headers={"client": f"{strategy} {client}"})
                answers[strategy, client][response.status_code] += 1

    for strategy, limit in STRATEGIES.items():
        visit(strategy, limit // 2)
    kill_server()
    for strategy, limit in STRATEGIES.items():
        visit(strategy, limit)
    for (strategy, client), counts in answers.items():
        limit = STRATEGIES[strategy]
        assert counts == {200: limit, 429: limit // 2}, f"{strategy}, {client}: {counts}"
    refused = sites["moving-window"].get("/", headers={"client": "moving-window ann"})
    assert refused.headers["X-RateLimit-Remaining"] == "0" and int(refused.headers["Retry-After"]) > 3000
