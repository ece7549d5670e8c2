"""Draws from pools over gRPC, with grpcio and what it makes of crates/server/proto/rewardpool.proto. Needs two servers: the second asks
for the password "secret". Drops the pools that it uses.

    python pools.py redis://127.0.0.1:7379 127.0.0.1:50051 127.0.0.1:50052
"""

import pathlib
import socket
import sys
import tempfile
import threading
import traceback

import grpc
import redis
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_tools import protoc

REDIS, ADDRESS, GUARDED = sys.argv[1:4]
PROTO = pathlib.Path(__file__).resolve().parents[2] / "crates/server/proto/rewardpool.proto"
SERVICE = "/rewardpool.RewardPoolService/"

server = redis.Redis.from_url(REDIS, decode_responses=True)


def compiled():
    """What protoc makes of the service's file."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "set"
        arguments = ["protoc", f"-I{PROTO.parent}", f"--descriptor_set_out={out}", PROTO.name]
        assert protoc.main(arguments) == 0, arguments
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]


FILE = compiled()
POOL = descriptor_pool.DescriptorPool()
POOL.Add(FILE)


def message(name):
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"rewardpool.{name}"))


DrawRequest, DrawResponse = message("DrawRequest"), message("DrawResponse")
GetStateRequest, GetStateResponse = message("GetStateRequest"), message("GetStateResponse")


class Client:
    """The two methods of the service."""

    def __init__(self, address, options=()):
        self.channel = grpc.insecure_channel(address, options)
        self.state = self.channel.unary_unary(
            SERVICE + "GetState", GetStateRequest.SerializeToString, GetStateResponse.FromString
        )
        self.draw = self.channel.stream_stream(
            SERVICE + "Draw", DrawRequest.SerializeToString, DrawResponse.FromString
        )

    def draws(self, *requests, **options):
        return list(self.draw(iter(requests), timeout=30, **options))


client = Client(ADDRESS)


def pool(name, *words):
    server.execute_command("POOL.DROP", name)
    server.execute_command("POOL.CREATE", name, *words)


def refused(code, call):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, error
        return error.details()
    raise AssertionError("it must be refused")


def what_is_left_is_told():
    pool("shown", "ITEMS", "car", 1, 3, "mug", 99, "UNLIMITED")
    items = client.state(GetStateRequest(pool="shown")).items
    assert [(item.item_id, item.quantity, item.probability) for item in items] == [("car", 3, 1), ("mug", -1, 99)]


def a_large_pool_is_told_whole():
    words = [word for item in range(2_500) for word in (f"item {item}", 1, item)]
    pool("large", "ITEMS", *words)
    items = client.state(GetStateRequest(pool="large")).items
    assert [item.quantity for item in items] == list(range(2_500))


def requests_are_answered_in_their_order():
    pool("order", "ITEMS", "ticket", 1, 10)
    requests = [DrawRequest(pool="order", count=count) for count in (0, -5, 3, 1)]
    answers = client.draws(*requests)
    assert [(answer.request_id, answer.item_id, answer.error) for answer in answers] == [
        (number, "ticket", "") for number in range(6)
    ]
    assert server.execute_command("POOL.STATE", "order") is not None


def what_the_pool_refuses_does_not_end_the_stream():
    pool("few", "ITEMS", "car", 1, 1, "mug", 1, 1)
    answers = client.draws(
        DrawRequest(pool="few", count=3, together=True),
        DrawRequest(pool="few", count=2, unique=True),
        DrawRequest(pool="few"),
    )
    assert answers[0].error.startswith("EMPTY ") and answers[0].item_id == "", answers[0]
    assert sorted(answer.item_id for answer in answers[1:3]) == ["car", "mug"]
    assert answers[3].error.startswith("EMPTY ") and len(answers) == 4


def as_many_answers_come_as_draws_were_asked_for():
    pool("short", "ITEMS", "car", 1, 2)
    answers = client.draws(DrawRequest(pool="short", count=5), DrawRequest(pool="short", count=2))
    assert [(answer.request_id, answer.item_id) for answer in answers[:2]] == [(0, "car"), (1, "car")], answers
    assert len(answers) == 7 and all(answer.error.startswith("EMPTY ") for answer in answers[2:]), answers
    assert all(answer.request_id == 0 and answer.item_id == "" for answer in answers[2:]), answers
    pool("three", "LIMIT", "DRAWS", 3, "ITEMS", "mug", 1, "UNLIMITED")
    answers = client.draws(DrawRequest(pool="three", user="mira", count=1_000))
    assert [answer.item_id for answer in answers] == ["mug"] * 3 + [""] * 997
    assert all(answer.error.startswith("LIMITED ") for answer in answers[3:]), answers[3]


def a_request_that_is_sent_again_is_answered_as_it_was():
    pool("again", "ITEMS", *[word for item in range(50) for word in (f"item {item}", 1, 1)])
    request = DrawRequest(pool="again", count=3, request="order 17")
    first, again = client.draws(request), client.draws(request)
    assert first == again and len(first) == 3, (first, again)
    assert client.draws(DrawRequest(pool="again"))[0].request_id == 3


def limits_of_users_are_told_as_errors():
    pool("limited", "LIMIT", "DRAWS", 2, "ITEMS", "mug", 1, "UNLIMITED")
    mira, noor = (DrawRequest(pool="limited", user=user) for user in ("mira", "noor"))
    answers = client.draws(mira, mira, mira, noor)
    assert [answer.item_id for answer in answers] == ["mug", "mug", "", "mug"], answers
    assert answers[2].error.startswith("LIMITED "), answers[2]
    refused(grpc.StatusCode.INVALID_ARGUMENT, lambda: client.draws(DrawRequest(pool="limited")))


def nothing_is_an_empty_id():
    pool("nothing", "SOLDOUT", "NOPRIZE", "ITEMS", "car", 1, 0, "mug", 1, "UNLIMITED")
    ids = {answer.item_id for answer in client.draws(DrawRequest(pool="nothing", count=64))}
    assert ids == {"", "mug"}, ids


def clients_that_know_of_one_pool_get_the_one_that_is_set():
    assert "name a pool" in refused(grpc.StatusCode.INVALID_ARGUMENT, lambda: client.draws(DrawRequest()))
    pool("rewards", "ITEMS", "mug", 1, "UNLIMITED")
    server.config_set("grpc-pool", "rewards")
    try:
        assert client.draws(DrawRequest(count=2))[1].item_id == "mug"
        assert client.state(GetStateRequest()).items[0].item_id == "mug"
    finally:
        server.config_set("grpc-pool", "")


def wrong_requests_say_what_would_be_right():
    server.execute_command("POOL.DROP", "none")
    server.set("text", "words")
    for code, request in [
        (grpc.StatusCode.NOT_FOUND, DrawRequest(pool="none")),
        (grpc.StatusCode.FAILED_PRECONDITION, DrawRequest(pool="text")),
        (grpc.StatusCode.INVALID_ARGUMENT, DrawRequest(pool="none", count=65_537)),
    ]:
        assert refused(code, lambda request=request: client.draws(request)), request
    assert refused(grpc.StatusCode.NOT_FOUND, lambda: client.state(GetStateRequest(pool="none")))
    unknown = client.channel.unary_unary(SERVICE + "Win")
    assert "GetState and Draw" in refused(grpc.StatusCode.UNIMPLEMENTED, lambda: unknown(b""))
    broken = client.channel.unary_unary(SERVICE + "GetState")
    refused(grpc.StatusCode.INTERNAL, lambda: broken(b"\xff\xff\xff"))


def many_at_once_draw_each_number_once():
    pool("many", "ITEMS", "ticket", 1, 4_000)
    numbers, lock = [], threading.Lock()

    def draw():
        answers = Client(ADDRESS).draws(*[DrawRequest(pool="many", count=10) for _ in range(100)])
        with lock:
            numbers.extend(answer.request_id for answer in answers)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(numbers) == list(range(4_000))
    assert client.draws(DrawRequest(pool="many"))[0].error.startswith("EMPTY ")


def whoever_goes_away_in_the_middle_takes_nothing_from_others():
    pool("left", "ITEMS", "ticket", 1, "UNLIMITED")
    call = client.draw(iter([DrawRequest(pool="left", count=60_000)]), timeout=30)
    next(call)
    call.cancel()
    assert client.draws(DrawRequest(pool="left"))[0].request_id == 60_000


def the_silent_lose_their_places():
    """All places are taken by those who say nothing, or stop in the middle of their first words."""
    host, port = ADDRESS.rsplit(":", 1)
    silent = [socket.create_connection((host, int(port))) for _ in range(80)]
    for one in silent[::2]:
        one.sendall(b"PRI * HT")
    # A channel of its own, so a new connection that must wait for a place.
    new = Client(ADDRESS, [("grpc.use_local_subchannel_pool", 1)])
    refused(
        grpc.StatusCode.NOT_FOUND,
        lambda: new.state(GetStateRequest(pool="none"), timeout=120, wait_for_ready=True),
    )
    [one.close() for one in silent]


def the_password_is_asked_for():
    guarded = Client(GUARDED)
    for metadata in ((), (("authorization", "Bearer wrong"),)):
        refused(
            grpc.StatusCode.UNAUTHENTICATED,
            lambda metadata=metadata: guarded.state(GetStateRequest(pool="none"), metadata=metadata),
        )
    known = (("authorization", "Bearer secret"),)
    refused(grpc.StatusCode.NOT_FOUND, lambda: guarded.state(GetStateRequest(pool="none"), metadata=known))


def the_service_describes_itself_as_its_file_does():
    database = ProtoReflectionDescriptorDatabase(client.channel)
    assert "rewardpool.RewardPoolService" in database.get_services()
    found = database.FindFileContainingSymbol("rewardpool.RewardPoolService")
    assert found == FILE, f"{found}\n{FILE}"


EXAMPLES = [
    what_is_left_is_told, a_large_pool_is_told_whole, requests_are_answered_in_their_order,
    what_the_pool_refuses_does_not_end_the_stream, as_many_answers_come_as_draws_were_asked_for, a_request_that_is_sent_again_is_answered_as_it_was,
    limits_of_users_are_told_as_errors, nothing_is_an_empty_id,
    clients_that_know_of_one_pool_get_the_one_that_is_set, wrong_requests_say_what_would_be_right,
    many_at_once_draw_each_number_once, whoever_goes_away_in_the_middle_takes_nothing_from_others,
    the_silent_lose_their_places, the_password_is_asked_for, the_service_describes_itself_as_its_file_does,
]  # fmt: skip

if __name__ == "__main__":
    failed = 0
    for example in EXAMPLES:
        try:
            example()
        except Exception:
            failed += 1
            print(f"FAILED {example.__name__}\n{traceback.format_exc()}")
    print(f"{len(EXAMPLES) - failed} passed, {failed} failed")
    sys.exit(failed > 0)
