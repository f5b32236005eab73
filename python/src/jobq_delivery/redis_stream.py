"""Delivery to Redis Streams: XADD, once per job if the endpoint has deliver_once."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from typing import Final, NoReturn

from redis.asyncio import Redis
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    InvalidResponse,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from jobq.models import Json
from jobq.registry.outcomes import Permanent, Retry
from jobq_delivery.address import AddressRefused, Guard
from jobq_delivery.message import Message
from jobq_delivery.redis_connection import pool_of
from jobq_delivery.template import as_text

TIMEOUT_MS: Final = 3000
MOST_CLIENTS: Final = 64
ONCE_SECONDS: Final = 7 * 24 * 3600

# Redis cuts the commands that it shows, so a secret at the end could not be found in them.
ARGUMENTS: Final = ", with args beginning with"
# Errors without classes: the disk is full, replicas are missing, or a script runs.
TEMPORARY: Final = re.compile(r"\b(?:MISCONF|NOREPLICAS|BUSY)\b")

# A job that was added within a week is not added again. The second key contains the stream's
# name as a hash tag, so that a cluster stores both on one node.
ONCE: Final = """
local known = redis.call('GET', KEYS[2])
if known then return {known, 1} end
local id = redis.call('XADD', KEYS[1], unpack(ARGV, 2))
redis.call('SET', KEYS[2], id, 'EX', ARGV[1])
return {id, 0}
"""


class RedisStreamSender:
    """Sends messages to Redis Streams, by one client for each server."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._clients: OrderedDict[str, Redis] = OrderedDict()

    async def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            await client.aclose()

    async def send(self, message: Message) -> dict[str, Json]:
        """Add a message to its stream and return ``message_id`` and ``stream``.

        The result contains ``is_duplicate`` if an earlier attempt had added it.

        Raises:
            Retry: TIMEOUT, CONNECTION_ERROR, or a temporary STREAM_ERROR.
            Permanent: REQUEST_INVALID, ADDRESS_REFUSED, or a permanent STREAM_ERROR.
        """
        stream, seconds = as_text(message.spec["stream"]), message.seconds(TIMEOUT_MS)
        arguments = entry(message)
        client = await self._client(as_text(message.spec["redis_url"]))
        try:
            async with asyncio.timeout(seconds):
                if message.spec.get("deliver_once"):
                    marker = f"jobq:{{{stream}}}:{message.job_id}"
                    reply = await client.eval(ONCE, 2, stream, marker, ONCE_SECONDS, *arguments)
                else:
                    reply = await client.execute_command(  # type: ignore[no-untyped-call]
                        "XADD", stream, *arguments
                    )
        except TimeoutError:
            raise Retry(f"no answer within {seconds:g} s", code="TIMEOUT") from None
        except AddressRefused as error:
            raise Permanent("ADDRESS_REFUSED", str(error)) from None
        except (RedisError, OSError) as error:
            refuse(error)
        match reply:
            case bytes() | [bytes(), 0]:
                return {"message_id": id_of(reply), "stream": stream}
            case [bytes(), 1]:
                return {"message_id": id_of(reply), "stream": stream, "is_duplicate": True}
        raise nonsense()

    async def _client(self, url: str) -> Redis:
        """Return the client of a server; the least recently used one is evicted."""
        if url in self._clients:
            self._clients.move_to_end(url)
            return self._clients[url]
        try:
            pool = pool_of(url, self._guard)
        except ValueError:
            raise Permanent(
                "REQUEST_INVALID", "the URL is not one of Redis, or holds other settings"
            ) from None
        client = self._clients[url] = Redis.from_pool(pool)
        if len(self._clients) > MOST_CLIENTS:
            _, oldest = self._clients.popitem(last=False)
            await oldest.aclose()
        return client


def entry(message: Message) -> list[str]:
    """Return the arguments of XADD after the stream's name.

    Adds the fields ``jobq_id``, the job's id, and ``jobq_attempt``, unless the endpoint has fields
    of these names.
    """
    spec = message.spec
    arguments: list[str] = []
    if spec.get("max_len") is not None:
        length = as_text(spec["max_len"]).removesuffix(".0")
        if not length.isascii() or not length.isdecimal() or not int(length):
            raise Permanent("REQUEST_INVALID", "max_len is not a whole number from 1")
        sign = "~" if spec.get("approximate_trimming", True) else "="
        arguments += ["MAXLEN", sign, length]
    arguments.append("*")
    fields = spec["fields_template"]
    if not isinstance(fields, dict) or not fields:
        raise Permanent("REQUEST_INVALID", "an entry needs an object with a field")
    fields = {**fields, **{n: v for n, v in identity(message).items() if n not in fields}}
    for name, value in fields.items():
        arguments += [name, as_text(value)]
    return arguments


def identity(message: Message) -> dict[str, str]:
    """Return the fields by which consumers detect repeats."""
    return {"jobq_id": str(message.job_id), "jobq_attempt": str(message.attempt)}


def refuse(error: Exception) -> NoReturn:
    """Raise the outcome of a Redis error, temporary or not, without its address."""
    if isinstance(error.__cause__, AddressRefused):
        raise Permanent("ADDRESS_REFUSED", str(error.__cause__)) from None
    match error:
        case RedisTimeoutError():
            raise Retry("no answer in time", code="TIMEOUT") from None
        case AuthenticationError():
            raise Retry("the server refuses the log-in", code="CONNECTION_ERROR") from None
        case BusyLoadingError() | OutOfMemoryError() | ReadOnlyError():
            raise Retry(str(error), code="STREAM_ERROR") from None
        case RedisConnectionError() | OSError():
            raise Retry(
                "cannot connect, or the connection was lost", code="CONNECTION_ERROR"
            ) from None
        case AskError() | ClusterDownError() | TryAgainError():  # their texts have addresses
            text = f"another node of the cluster has the stream, or none ({type(error).__name__})"
            raise Retry(text, code="STREAM_ERROR") from None
        case ResponseError():
            text = str(error).partition(ARGUMENTS)[0]
            if TEMPORARY.search(text):
                raise Retry(text, code="STREAM_ERROR") from None
            raise Permanent("STREAM_ERROR", text) from None
        case InvalidResponse():
            raise nonsense() from None
        case _:
            raise Retry(type(error).__name__, code="STREAM_ERROR") from None


def id_of(reply: bytes | list[bytes]) -> str:
    """Return the message id of a reply."""
    try:
        return (reply if isinstance(reply, bytes) else reply[0]).decode("ascii")
    except UnicodeDecodeError:
        raise nonsense() from None


def nonsense() -> Retry:
    """Return the text of a protocol error."""
    return Retry("the server answers what Redis would not", code="STREAM_ERROR")
