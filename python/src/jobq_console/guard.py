"""Checks every request to the console: its session and its origin."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qsl

import psycopg
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobq_console.console import Console
from jobq_console.options import PATIENCE
from jobq_console.sessions import Session, cookie_of
from jobq_http.errors import ApiError

MAX_FORM: Final = 64 * 1024
HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class Guard:
    """Finds the session of a request, and sets the headers of every response."""

    def __init__(self, app: ASGIApp, console: Console) -> None:
        self._app = app
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        proxied = self._vouched_for(scope, headers)
        request, is_asset = Request(scope), "/static/" in scope["path"]
        session, cookie, problem = await self._who(request, proxied, is_asset=is_asset)
        scope["jobq.session"], scope["jobq.problem"] = session, problem

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer[name] = value
                answer["cache-control"] = "max-age=3600" if is_asset else "no-store"
                if cookie is not None:
                    carrier = Response()
                    self._console.sessions.keep(request, carrier, cookie)
                    answer.append("set-cookie", carrier.headers["set-cookie"])
            await send(message)

        await self._app(scope, receive, send_guarded)

    async def _who(
        self, request: Request, proxied: str | None, *, is_asset: bool
    ) -> tuple[Session | None, str | None, Exception | None]:
        """Return the session, the cookie of a new one, and why it could not be checked."""
        given = request.cookies.get(cookie_of(request), "")
        session = self._console.sessions.find(given) if given else None
        if session is not None and session.proxied != proxied:
            session = None
        if is_asset:
            return session, None, None
        if session is not None:
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._still(session, request, given), None, None
            except TimeoutError:
                return session, None, ApiError("REPO_UNAVAILABLE")
            except (psycopg.Error, ApiError) as error:
                return session, None, error
        if proxied is not None:
            return *await self._welcome(proxied), None
        return None, None, None

    async def _still(self, session: Session, request: Request, cookie: str) -> Session | None:
        """Return a session, unless its key is no longer valid."""
        if session.key_hash is not None and self._console.keys is not None:
            address = request.client.host if request.client else ""
            try:
                key = await self._console.keys.holder(session.key_hash, address)
            except ApiError as error:
                if error.code != "UNAUTHORIZED":
                    raise
                await self._console.sessions.leave(cookie)
                return None
            session.visitor.scopes = key.scopes
        return session

    def _vouched_for(self, scope: Scope, headers: Headers) -> str | None:
        """Return the user's name that a trusted proxy gives, or None."""
        proxy = self._console.options.proxy
        if proxy is None or not scope.get("jobq.is_proxied"):
            return None
        names = headers.getlist(proxy.header)
        # Of several headers, one may come from the proxy's client.
        return in_utf_8(names[0])[:200] or None if len(names) == 1 else None

    async def _welcome(self, name: str) -> tuple[Session, str]:
        proxy = self._console.options.proxy
        assert proxy is not None  # noqa: S101 - by _vouched_for()
        session = Session(
            self._console.visitor(f"user {name}", frozenset(proxy.scopes)), proxied=name
        )
        return session, await self._console.sessions.begin(session)


async def form(request: Request) -> dict[str, str]:
    """Return the fields of a form; refuse one that is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM:
            raise ApiError("MESSAGE_TOO_LARGE", f"at most {MAX_FORM} bytes")
    with suppress(UnicodeDecodeError):
        text = body.decode()
        if "%00" not in text and "\0" not in text:
            return dict(parse_qsl(text, keep_blank_values=True, errors="strict"))
    raise ApiError("INVALID_REQUEST", "a form of text without NUL")


def in_utf_8(header: str) -> str:
    """Decode a header as UTF-8, or as Latin-1 if it is not valid."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeDecodeError:
        return header


def check_origin(request: Request) -> None:
    """Refuse a form that is not from a page of this server with the same scheme."""
    scheme, _, host = request.headers.get("origin", "").partition("://")
    if not secrets.compare_digest(host.encode(), request.headers.get("host", "").encode()):
        raise ApiError("FORBIDDEN", message="This form was not sent from the console.")
    if scheme != request.url.scheme:
        raise ApiError(
            "FORBIDDEN",
            message=f"This form is from a page by {scheme}, and came here by {request.url.scheme}.",
            hint="Of a proxy that speaks TLS the server must know: jobq http --proxy-from, and the "
            "proxy sends X-Forwarded-Proto.",
        )
