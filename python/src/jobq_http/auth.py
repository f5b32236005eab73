"""Who asks: bearer keys, looked up in the database by their SHA-256."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobq_http.errors import ApiError
from jobq_http.limits import Rates

if TYPE_CHECKING:
    from jobq_http.database import Database

SCOPES: Final = ("produce", "work", "operate", "read")

# What a scope may do in the database.
ROLE_OF_SCOPE: Final = {
    "produce": "jobq_producer",
    "work": "jobq_worker",
    "operate": "jobq_operator",
    "read": "jobq_reader",
}

# Seconds for which an answer of the database holds: how long a revoked key still works.
MEMORY: Final = 5.0
MOST_REMEMBERED: Final = 10_000
GUESSES_PER_SECOND: Final = 20


@dataclass(frozen=True, slots=True)
class Key:
    """The holder of a key.

    Attributes:
        name: of the key.
        scopes: what it may do.
        requests_per_second: its own limit, or None for the server's.
    """

    name: str
    scopes: frozenset[str]
    requests_per_second: int | None

    def role(self, scopes: tuple[str, ...]) -> str:
        """Return the database role of the first of these scopes that the key has.

        Raises:
            ApiError: FORBIDDEN, when it has none of them.
        """
        for scope in scopes:
            if scope in self.scopes:
                return ROLE_OF_SCOPE[scope]
        raise ApiError("FORBIDDEN", f"one of the scopes {', '.join(scopes)}")


class Keys:
    """The keys that were seen of late, and how often each may ask.

    Args:
        database: where keys are kept.
        requests_per_second: the limit of keys that have none of their own.
    """

    def __init__(self, database: Database, requests_per_second: float) -> None:
        self._database = database
        self._rates = Rates(requests_per_second)
        self._guesses = Rates(GUESSES_PER_SECOND)
        self._known: dict[bytes, tuple[Key, float]] = {}
        self._asked: dict[bytes, asyncio.Task[Key]] = {}

    async def holder(self, hashed: bytes, address: str) -> Key:
        """Return who holds the key with this SHA-256, and count the request.

        Raises:
            ApiError: UNAUTHORIZED, or RATE_LIMITED.
            psycopg.Error: the database does not answer.
        """
        key = await self.look_up(hashed, address)
        self._rates.spend(key.name, key.requests_per_second)
        return key

    async def look_up(self, hashed: bytes, address: str) -> Key:
        """Return who holds the key with this SHA-256.

        Raises:
            ApiError: UNAUTHORIZED, or RATE_LIMITED.
            psycopg.Error: the database does not answer.
        """
        key, until = self._known.get(hashed, (None, 0.0))
        if key is None or until < time.monotonic():
            key = await self._ask_once(hashed, address)
        return key

    async def _ask_once(self, hashed: bytes, address: str) -> Key:
        """Look a key up once for all requests that come with it meanwhile."""
        asked = self._asked.get(hashed)
        if asked is None:
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
    """Return the SHA-256 of the key of an Authorization header.

    It is what is compared, so the time taken tells nothing of the key.

    Raises:
        ApiError: UNAUTHORIZED: it has none.
    """
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise unauthorized()
    return hashlib.sha256(token.strip().encode()).digest()


def unauthorized() -> ApiError:
    """Return the answer to a request without a valid key."""
    return ApiError("UNAUTHORIZED", headers={"www-authenticate": "Bearer"})
