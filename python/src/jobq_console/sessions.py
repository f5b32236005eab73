"""Sessions: who has signed in and how, identified by a cookie."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from jobq_console.options import Options
from jobq_console.visitor import Visitor
from jobq_http.auth import hashed

MOST: Final = 2000
MOST_OF_ONE: Final = 20  # of a proxy's user: a client that keeps no cookies begins many


@dataclass(slots=True)
class Session:
    """A session of the console.

    Attributes:
        visitor: the user.
        key_hash: the SHA-256 of the session's API key, checked at each request.
        proxied: the user's name from the proxy, checked at each request.
        token: the CSRF token of forms.
        said: messages for the next page.
        is_ended: whether the user has signed out.
    """

    visitor: Visitor
    key_hash: bytes | None = None
    proxied: str | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    said: list[tuple[str, str]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    seen: float = field(default_factory=time.monotonic)
    is_ended: bool = False

    def owns(self, token: str) -> bool:
        """Whether a form's token is this session's."""
        return hmac.compare_digest(self.token.encode(), token.encode())


class Sessions:
    """The sessions of a server, by the SHA-256 of their cookies."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._sessions: dict[bytes, Session] = {}

    async def begin(self, session: Session) -> str:
        """Begin a session and return its cookie's value."""
        for name in [n for n, s in self._sessions.items() if not self.lasts(s)]:
            await self.end(name)
        if session.proxied is not None:
            own = [(s.seen, n) for n, s in self._sessions.items() if s.proxied == session.proxied]
            for _, name in sorted(own)[: max(0, len(own) + 1 - MOST_OF_ONE)]:
                await self.end(name)
        while len(self._sessions) >= MOST:
            await self.end(next(iter(self._sessions)))
        cookie = secrets.token_urlsafe(32)
        self._sessions[hashed(cookie)] = session
        return cookie

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie, if it has not ended."""
        session = self._sessions.get(hashed(cookie))
        if session is None or not self.lasts(session):
            return None
        session.seen = time.monotonic()
        return session

    async def leave(self, cookie: str) -> None:
        """End the session of a cookie."""
        await self.end(hashed(cookie))

    async def end(self, name: bytes) -> None:
        """End a session and close its connections."""
        session = self._sessions.pop(name, None)
        if session is not None:
            session.is_ended = True
            await session.visitor.close()

    async def close(self) -> None:
        """End all."""
        for name in list(self._sessions):
            await self.end(name)

    def keep(self, request: Request, response: Response, cookie: str) -> None:
        """Set a cookie."""
        response.set_cookie(
            cookie_of(request),
            cookie,
            max_age=int(self._options.longest),
            path=self._options.base,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def lasts(self, session: Session) -> bool:
        """Whether a session has not ended; does not count as a request."""
        now = time.monotonic()
        is_new = now - session.began < self._options.longest
        return is_new and now - session.seen < self._options.idle and not session.is_ended


def cookie_of(request: Request) -> str:
    """Return the name of a server's cookie, which differs for each port of a host."""
    port = re.search(r":(\d{1,5})$", request.headers.get("host", ""), re.ASCII)
    return f"jobq_console_{port[1]}" if port else "jobq_console"
