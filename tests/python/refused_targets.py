"""Send to addresses that must be refused, and print what came of each, as JSON.

Run in a network namespace without a route, so that a hole sends nothing anywhere: there a
connection that is tried fails by the kernel, with another code.
"""

from __future__ import annotations

import asyncio
import json
import sys
from uuid import UUID

from jobq.registry.outcomes import Permanent, Retry
from jobq_delivery.address import Guard
from jobq_delivery.http import HttpSender
from jobq_delivery.kafka import KafkaSender
from jobq_delivery.mask import Mask
from jobq_delivery.message import Message
from jobq_delivery.redis_stream import RedisStreamSender
from jobq_delivery.trust import trusting


async def main() -> None:
    guard = Guard()
    senders: dict[str, HttpSender | RedisStreamSender | KafkaSender] = {
        "url": HttpSender(guard, trusting()),
        "redis_url": RedisStreamSender(guard),
        "bootstrap_servers": KafkaSender(guard),
    }
    found: dict[str, str] = {}
    for host in sys.argv[1:]:
        for field, target in (
            ("url", f"http://{host}/"),
            ("redis_url", f"redis://{host}"),
            ("bootstrap_servers", f"{host}:9092"),
        ):
            spec = {field: target, "timeout_ms": 1000, "stream": "s", "topic": "t"}
            spec["fields_template"] = {"a": "b"}
            try:
                await senders[field].send(Message(UUID(int=1), 1, spec, {}, Mask(())))
            except (Permanent, Retry) as outcome:
                found[target] = outcome.code
    print(json.dumps(found))
    for sender in senders.values():
        await sender.close()


asyncio.run(main())
