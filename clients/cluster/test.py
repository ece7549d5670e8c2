"""Programs of several clients write numbers to a cluster of three, some in the client's cluster mode and some through Redis Sentinel,
in database 5. The leader is killed once. Each program repeats what fails, and reads all its numbers at the end: it has to find the
next leader without help. Ends with "N passed, N failed".

    python test.py SERVER_BINARY GO_PROGRAM NODE_FOLDER JAVA_CLASSES RUST_PROGRAM
"""

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis

HERE = Path(__file__).resolve().parent
PATIENCE_S = 60
# A machine that runs tests pauses for longer than one of its own.
TIMES = ["--cluster-heartbeat-ms", "50", "--cluster-election-min-ms", "300", "--cluster-election-max-ms", "600"]


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start_members(binary, directory):
    """Starts three members. Returns their processes by the ports of their clients."""
    ports = free_ports(9)
    clients, peers, sentinels = ports[:3], ports[3:6], ports[6:]
    pairs = zip(clients, peers)
    members = ",".join(f"{n}=127.0.0.1:{peer}/127.0.0.1:{client}" for n, (client, peer) in enumerate(pairs, 1))
    processes = {}
    for number, client in enumerate(clients, 1):
        command = [binary, "serve", "--port", str(client), "--dir", f"{directory}/{number}", *TIMES]
        command += ["--cluster-node", str(number), "--cluster-members", members, "--durability", "off"]
        # Only redis-rs wants a port at which ROLE is that of a sentinel.
        command += ["--cluster-sentinel-port", str(sentinels[number - 1])]
        processes[client] = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    return processes, sentinels


def find_leader(ports):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for port in ports:
            try:
                if redis.Redis(port=port).role()[0] == b"master":
                    return port
            except redis.RedisError:
                pass
        time.sleep(0.05)
    raise AssertionError("no member leads")


def main(binary, go_program, node_folder, java_classes, rust_program):
    both = ("cluster", "sentinel")
    java = ["java", "-cp", f"{java_classes}/classes:{java_classes}/dependency/*", "FollowByJedis"]
    programs = {
        "redis-py": ([sys.executable, str(HERE / "redis_py.py")], both),
        "go-redis": ([go_program], both),
        "ioredis": (["node", f"{node_folder}/ioredis.mjs"], both),
        "Jedis": (java, both),
        "redis-rs": ([rust_program], both),
    }
    with tempfile.TemporaryDirectory() as directory:
        members, sentinels = start_members(binary, directory)
        try:
            results = follow(members, sentinels, programs)
        finally:
            for member in members.values():
                member.kill()
                member.wait()
    failed = [name for name, passed in results.items() if not passed]
    print("failed:", *failed or ["none"])
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def follow(members, sentinels, programs):
    leader = find_leader(members)

    def ports(name, mode):
        return ",".join(str(port) for port in (sentinels if (name, mode) == ("redis-rs", "sentinel") else members))

    running = {
        f"{name} {mode}": subprocess.Popen(
            [*command, mode, ports(name, mode)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name, (command, modes) in programs.items()
        for mode in modes
    }
    ready = {name for name, program in running.items() if program.stdout.readline() == "ready\n"}
    members[leader].kill()
    print(f"killed the leader, at {leader}", flush=True)
    results = {}
    for name, program in running.items():
        try:
            output, _ = program.communicate("killed\n", timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            program.kill()
            output, _ = program.communicate()
        results[name] = name in ready and output == "done\n" and program.returncode == 0
        print(f"{name}: {'ok' if results[name] else 'FAILED'}", flush=True)
    assert find_leader(port for port in members if port != leader) != leader
    return results


sys.exit(main(*sys.argv[1:]))
