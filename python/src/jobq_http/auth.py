"""API keys: created here, shown once, and looked up in the database by their SHA-256."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import psycopg

from jobq.calls.call import statement
from jobq_http.database import Database
from jobq_http.errors import ApiError
from jobq_http.limits import Rates

# The database role of each scope.
ROLE_OF_SCOPE: Final = {
    "produce": "jobq_producer",
    "work": "jobq_worker",
    "operate": "jobq_operator",
    "read": "jobq_reader",
}
SCOPES: Final = tuple(ROLE_OF_SCOPE)

# How long a key is cached, in seconds: a revoked key still works for so long.
MEMORY: Final = 5.0
MOST_REMEMBERED: Final = 10_000
GUESSES_PER_SECOND: Final = 20
PREFIX_LENGTH: Final = 12


@dataclass(frozen=True, slots=True)
class Key:
    """A key, with its own rate limit or None."""

    name: str
    scopes: frozenset[str]
    requests_per_second: int | None

    def role(self, scopes: tuple[str, ...]) -> str:
        """Return the database role of the first of these scopes that it has; else FORBIDDEN."""
        for scope in scopes:
            if scope in self.scopes:
                return ROLE_OF_SCOPE[scope]
        raise ApiError("FORBIDDEN", f"one of the scopes {', '.join(scopes)}")


class Keys:
    """A cache of keys, and their rate limits; `requests_per_second` is that of the others."""

    def __init__(self, database: Database, requests_per_second: float) -> None:
        self._database = database
        self._rates = Rates(requests_per_second)
        self._guesses = Rates(GUESSES_PER_SECOND)
        self._known: dict[bytes, tuple[Key, float]] = {}
        self._asked: dict[bytes, asyncio.Task[Key]] = {}

    async def holder(self, hashed: bytes, address: str) -> Key:
        """Return the key with this SHA-256, and count the request.

        Raises:
            ApiError: UNAUTHORIZED, or RATE_LIMITED.
            psycopg.Error: the database does not respond.
        """
        key = await self.look_up(hashed, address)
        self._rates.spend(key.name, key.requests_per_second)
        return key

    async def look_up(self, hashed: bytes, address: str) -> Key:
        """Return the key with this SHA-256; errors are those of holder()."""
        key, until = self._known.get(hashed, (None, 0.0))
        if key is not None and until >= time.monotonic():
            return key
        asked = self._asked.get(hashed)
        if asked is None:  # once for all concurrent requests
            asked = self._asked[hashed] = asyncio.create_task(self._ask(hashed, address))
            asked.add_done_callback(lambda _: self._asked.pop(hashed))
        return await asyncio.shield(asked)

    async def _ask(self, hashed: bytes, address: str) -> Key:
        if hashed not in self._known:
            self._guesses.spend(address)
        rows = await self._database.fetch("jobq_reader", "jobq_http.authenticate", key_hash=hashed)
        self._known.pop(hashed, None)
        if not rows:
            raise unauthorized()
        name, scopes, requests_per_second = rows[0]
        key = Key(name, frozenset(scopes), requests_per_second)
        self._known[hashed] = (key, time.monotonic() + MEMORY)
        if len(self._known) > MOST_REMEMBERED:
            del self._known[next(iter(self._known))]
        return key


def bearer_of(authorization: str) -> bytes:
    """Return the SHA-256 of the key of an Authorization header; UNAUTHORIZED if there is none.

    Hashes are compared, so the duration reveals nothing about the key.
    """
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise unauthorized()
    return hashed(token.strip())


def hashed(text: str) -> bytes:
    """Return the SHA-256 of a key."""
    return hashlib.sha256(text.encode()).digest()


def unauthorized() -> ApiError:
    """Return the answer to a request without a valid key."""
    return ApiError("UNAUTHORIZED", headers={"www-authenticate": "Bearer"})


def create_key(
    connection: psycopg.Connection[Any],
    name: str,
    scopes: Sequence[str] = SCOPES,
    *,
    expires_at: datetime | None = None,
    requests_per_second: int | None = None,
) -> str:
    """Create a key, store its SHA-256 in the caller's transaction, and return it.

    Args:
        connection: a connection of a user who may act as jobq_operator.
        name: its name in logs and lists; never used before.
        scopes: some of produce, work, operate and read.
        expires_at: when it expires; None for never.
        requests_per_second: its limit; None for the server's.

    Returns:
        The key, 256 random bits, which cannot be shown again.

    Raises:
        psycopg.Error: the name is taken (JQ004), or an argument refused (22023).
    """
    key = f"jobq_{secrets.token_urlsafe(32)}"
    given = {
        "name": name,
        "key_hash": hashed(key),
        "prefix": key[:PREFIX_LENGTH],
        "scopes": list(scopes),
        "expires_at": expires_at,
        "requests_per_second": requests_per_second,
    }
    connection.execute(statement("jobq_http.create_api_key", tuple(given)), given)
    return key
