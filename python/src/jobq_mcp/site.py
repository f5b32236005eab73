"""The tools at /mcp of the HTTP API, behind its keys."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from jobq_http.auth import Keys
from jobq_http.standby import Standby
from jobq_mcp.caller import Caller
from jobq_mcp.server import Context, server

PATH = "/mcp"


class McpSite:
    """A route of the HTTP API, whose middleware has checked the key of a request.

    Each request stands for itself, so any server behind a proxy can answer it.
    """

    def __init__(self, _url: str, _keys: Keys, _standby: Standby | None) -> None:
        self._manager = StreamableHTTPSessionManager(
            server(caller_of), json_response=True, stateless=True
        )
        self._running = AsyncExitStack()

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """Its route."""
        return [Route(PATH, StreamableHTTPASGIApp(self._manager))]

    async def open(self) -> None:
        """Start."""
        await self._running.enter_async_context(self._manager.run())

    async def close(self) -> None:
        """Stop."""
        await self._running.aclose()


def caller_of(context: Context) -> Caller:
    """Return the holder of the key of a request."""
    request = context.request
    assert isinstance(request, Request)  # noqa: S101 - by the transport
    return Caller(request.app.state.database, request.scope["jobq.key"])
