"""redis-py follows the leader of a cluster: see test.py.

    python redis_py.py cluster|sentinel PORT,PORT,PORT
"""

import sys

from redis import RedisError
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException
from redis.sentinel import Sentinel

from writer import run

mode, ports = sys.argv[1], [int(port) for port in sys.argv[2].split(",")]


def connect():
    if mode == "cluster":
        return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port) for port in ports], socket_timeout=2)
    sentinel = Sentinel([("127.0.0.1", port) for port in ports], socket_timeout=2)
    return sentinel.master_for("tidemark", db=5, socket_timeout=2)


run(f"redis-py:{mode}", connect, (RedisError, RedisClusterException))
