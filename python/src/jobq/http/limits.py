"""What a request may cost: bytes, nesting, and how many of them in a second."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from jobq.http.errors import ApiError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

MAX_BODY: Final = 1 << 20
MAX_DEPTH: Final = 64

# Possessive, and closed by the end of the text too: linear in whatever is sent.
STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
BRACKET: Final = re.compile(rb"[\[\]{}]")
NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def check_address(scope: Scope) -> None:
    """Refuse a path or a query whose bytes would be read as other characters.

    Raises:
        ApiError: INVALID_REQUEST: it is not UTF-8, or not escaped.
    """
    given = scope.get("raw_path", b"") + b"?" + scope["query_string"]
    try:
        given.decode("ascii")
        unquote_to_bytes(given).decode()
    except UnicodeDecodeError as error:
        raise ApiError("INVALID_REQUEST", "the address is not UTF-8 that is escaped") from error


async def read_json(request: Request, envelope: int) -> bytes:
    """Return a request's body, small enough and flat enough to be looked at.

    Args:
        request: the request.
        envelope: how many levels the request itself puts around a payload.

    Raises:
        ApiError: MESSAGE_TOO_LARGE past 1 MiB, INVALID_MESSAGE for a payload nested
            past 64, INVALID_REQUEST for what is not UTF-8, or holds a NUL, which
            PostgreSQL cannot store.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > MAX_BODY:
        raise too_large()
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > MAX_BODY:
            raise too_large()
    body = bytes(parts)
    if is_deeper(body, MAX_DEPTH + envelope):
        raise ApiError("INVALID_MESSAGE", f"at most {MAX_DEPTH} levels")
    if NUL.search(body):
        raise ApiError("INVALID_REQUEST", r"the character \u0000 cannot be stored")
    return body


def too_large() -> ApiError:
    """Return the answer to a body that is too large."""
    return ApiError("MESSAGE_TOO_LARGE", f"at most {MAX_BODY} bytes")


def is_deeper(body: bytes, limit: int) -> bool:
    """Say whether JSON is nested past a limit, without parsing it."""
    if body.count(b"[") + body.count(b"{") <= limit:
        return False
    depth = 0
    for bracket in BRACKET.finditer(STRING.sub(b"", body)):
        depth += 1 if bracket.group() in b"[{" else -1
        if depth > limit:
            return True
    return False


class Rate:
    """A token bucket.

    Args:
        per_second: how many tokens a second fills in.
        burst: how many it holds; by default those of two seconds.
    """

    __slots__ = ("_at", "_burst", "_tokens", "per_second")

    def __init__(self, per_second: float, burst: float | None = None) -> None:
        self.per_second = per_second
        self._burst = burst or 2 * per_second
        self._tokens = self._burst
        self._at = time.monotonic()

    def take(self) -> float:
        """Take a token; return 0, or the seconds until there is one."""
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self.per_second)
        self._at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self.per_second
        self._tokens -= 1
        return 0.0


class Rates:
    """A bucket for each name, the least recently seen forgotten past `most` names."""

    def __init__(self, per_second: float, most: int = 10_000) -> None:
        self._per_second = per_second
        self._most = most
        self._rates: dict[str, Rate] = {}

    def spend(self, name: str, per_second: float | None = None) -> None:
        """Take one token of a name.

        Raises:
            ApiError: RATE_LIMITED, with Retry-After, when there is none.
        """
        wanted = per_second or self._per_second
        rate = self._rates.pop(name, None)
        if rate is None or rate.per_second != wanted:
            rate = Rate(wanted)
        self._rates[name] = rate
        if len(self._rates) > self._most:
            del self._rates[next(iter(self._rates))]
        wait = rate.take()
        if wait:
            raise ApiError(
                "RATE_LIMITED",
                f"at most {wanted:g} requests a second",
                headers={"retry-after": str(int(wait) + 1)},
            )
