import json
import sys
import time

import redis

client = redis.Redis.from_url(sys.argv[1], retry=None)
lsn = None  # of the last emission that is done with: store it with what you did


def follow():
    global lsn
    pubsub = client.pubsub()
    pubsub.subscribe("prices")
    for message in pubsub.listen():
        if message["type"] == "subscribe":
            resume = ["RESUME", lsn] if lsn else []
            line = client.execute_command("GET.WATCH", "price", "|", "CHANNEL", "prices", *resume)
            emission = json.loads(line)
            seq = emission["seq"]
            is_new = "value" in emission
        else:
            emission = json.loads(message["data"])
            is_new = emission["seq"] == seq + 1 or "reason" in emission
        if is_new:
            lsn, seq = emission["lsn"], emission["seq"]
            print(lsn, seq, emission["value"], flush=True)  # what you do with it


while True:
    try:
        follow()
    except redis.RedisError as error:
        print(error, file=sys.stderr)
        time.sleep(0.1)
