"""channels_redis: Django Channels' two layers. Each member of a group gets each message once, in order; a channel holds as many messages as
its capacity; what waits in a channel of the first layer is there after a kill of the server."""

import asyncio

from channels.exceptions import ChannelFull
from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer

from job import PATIENCE, URL, kill_server

MEMBERS, MESSAGES, CAPACITY = 10, 50, 60


def message(number):
    return {"type": "chat.message", "number": number}


async def receive(layer, channel, count):
    async with asyncio.timeout(PATIENCE):
        return [(await layer.receive(channel))["number"] for _ in range(count)]


async def join(layer):
    channels = [await layer.new_channel() for _ in range(MEMBERS)]
    for channel in channels:
        await layer.group_add("room", channel)
    return channels


async def chat(layer):
    """A group: what is sent to it after a member left does not reach that member."""
    channels = await join(layer)
    readers = [asyncio.create_task(receive(layer, channel, MESSAGES)) for channel in channels]
    for number in range(MESSAGES):
        await layer.group_send("room", message(number))
    for reader in readers:
        assert await reader == list(range(MESSAGES))
    await layer.group_discard("room", channels[0])
    await layer.group_send("room", message(-1))
    await layer.send(channels[0], message(-2))
    assert await receive(layer, channels[0], 1) == [-2] and await receive(layer, channels[1], 1) == [-1]


async def run():
    layer = RedisChannelLayer([URL], capacity=CAPACITY, expiry=600, group_expiry=600)
    await chat(layer)
    await chat(RedisPubSubChannelLayer([URL], prefix="pubsub"))

    # A worker's channel has a name of its own, and waits for a worker.
    await layer.group_add("workers", "resize")
    await layer.group_send("workers", message(0))
    for number in range(1, CAPACITY):
        await layer.send("resize", message(number))
    try:
        await layer.send("resize", message(-1))
        raise AssertionError("a full channel took a message")
    except ChannelFull:
        pass
    await asyncio.to_thread(kill_server)
    again = RedisChannelLayer([URL], capacity=CAPACITY, expiry=600, group_expiry=600)
    assert await receive(again, "resize", CAPACITY) == list(range(CAPACITY))
    await again.group_send("workers", message(1))
    assert await receive(again, "resize", 1) == [1], "the group was lost with the server"


def main():
    asyncio.run(run())
