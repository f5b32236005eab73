"""Limits of requests: their size and their rate."""

from __future__ import annotations

import asyncio
import time
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.requests import Request
from starlette.types import Scope

from jobq.calls.arguments import NUL
from jobq_http.database import Database
from jobq_http.errors import ApiError

# The maximum size of a request without its payload and metadata.
ENVELOPE_BYTES: Final = 1 << 16


def check_address(scope: Scope) -> None:
    """Refuse a path or a query that is not escaped UTF-8."""
    given = scope.get("raw_path", b"") + b"?" + scope["query_string"]
    try:
        given.decode("ascii")
        unquote_to_bytes(given).decode()
    except UnicodeDecodeError as error:
        raise ApiError("INVALID_REQUEST", "the address is not UTF-8 that is escaped") from error


class Bounds:
    """The maximum size of a body, from the database's settings.

    They are read if a request exceeds the known limit, at most once a second. The database enforces
    a limit that became smaller.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._fresh_until = 0.0
        self._reading = asyncio.Lock()
        self.body_bytes = ENVELOPE_BYTES

    async def refresh(self) -> None:
        """Read the settings, unless they were read within the last second."""
        async with self._reading:
            if time.monotonic() < self._fresh_until:
                return
            [(document,)] = await self._database.fetch("jobq_reader", "settings")
            self.body_bytes = msgspec.json.decode(document)["max_payload_bytes"] + ENVELOPE_BYTES
            self._fresh_until = time.monotonic() + 1


async def read_json(request: Request, bounds: Bounds) -> bytes:
    """Return a request's body; refuse compression, and a NUL, which PostgreSQL cannot store."""
    if (coding := request.headers.get("content-encoding", "identity")).lower() != "identity":
        raise ApiError(
            "ENCODING_UNSUPPORTED",
            f"Content-Encoding: {coding}",
            hint="send the body uncompressed, without Content-Encoding",
            headers={"accept-encoding": "identity"},
        )
    declared = request.headers.get("content-length", "")
    await check_size(int(declared) if declared.isdigit() else 0, bounds)
    parts = bytearray()
    async for part in request.stream():
        parts += part
        await check_size(len(parts), bounds)
    body = bytes(parts)
    if NUL.search(body):
        raise ApiError("INVALID_REQUEST", r"the character \u0000 cannot be stored")
    return body


async def check_size(size: int, bounds: Bounds) -> None:
    """Refuse a body that is too large."""
    if size > bounds.body_bytes:
        await bounds.refresh()
        if size > bounds.body_bytes:
            raise ApiError("MESSAGE_TOO_LARGE", f"at most {bounds.body_bytes} bytes")


class Rates:
    """A token bucket for each name, which holds the tokens of two seconds.

    The least recently used are evicted above `most` names.
    """

    def __init__(self, per_second: float, most: int = 10_000) -> None:
        self._per_second = per_second
        self._most = most
        self._buckets: dict[str, tuple[float, float]] = {}

    def spend(self, name: str, per_second: float | None = None) -> None:
        """Take a token of a name; RATE_LIMITED, with Retry-After, if there is none."""
        rate, now = per_second or self._per_second, time.monotonic()
        tokens, at = self._buckets.pop(name, (2 * rate, now))
        tokens = min(2 * rate, tokens + (now - at) * rate)
        has_one = tokens >= 1
        self._buckets[name] = (tokens - has_one, now)
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        if not has_one:
            raise ApiError(
                "RATE_LIMITED",
                f"at most {rate:g} requests a second",
                headers={"retry-after": str(int((1 - tokens) / rate) + 1)},
            )
