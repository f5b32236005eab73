"""Connections to HTTP targets: kept while they are good, made to checked addresses only.

httpcore speaks HTTP; its pool looks at every connection for every request, which at fifty
requests at a time costs more than the requests, so connections are kept here.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import certifi
import httpcore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from jobq.delivery.address import Guard

__all__ = ["Connections"]

MOST_IDLE: Final = 100
KEEP_ALIVE: Final = 30.0


class Connections:
    """Connections by their origins; one carries one request at a time.

    Args:
        guard: what may be connected to.
    """

    def __init__(self, guard: Guard) -> None:
        self._backend = _Backend(guard)
        self._trust = ssl.create_default_context(cafile=certifi.where())
        self._idle: list[tuple[httpcore.Origin, httpcore.AsyncHTTPConnection]] = []
        logging.getLogger("httpcore").setLevel(logging.INFO)  # its details may hold secrets

    async def close(self) -> None:
        """Close the idle connections."""
        for _, connection in self._idle:
            await connection.aclose()
        self._idle.clear()

    @asynccontextmanager
    async def request(self, request: httpcore.Request) -> AsyncIterator[httpcore.Response]:
        """Send a request and give the response, whose body is still to be read.

        Raises:
            AddressRefused: the guard does not allow the target.
            httpcore.NetworkError, httpcore.ProtocolError: the connection fails.
        """
        origin = request.url.origin
        connection = await self._take(origin)
        try:
            response = await connection.handle_async_request(request)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            if connection.is_idle() and len(self._idle) < MOST_IDLE:
                self._idle.append((origin, connection))
            else:
                await connection.aclose()

    async def _take(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        """Return the connection that was used last, or a new one; drop those that are stale."""
        for place in reversed(range(len(self._idle))):
            known, connection = self._idle[place]
            if known != origin:
                continue
            del self._idle[place]
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return httpcore.AsyncHTTPConnection(
            origin,
            ssl_context=self._trust,
            keepalive_expiry=KEEP_ALIVE,
            network_backend=self._backend,
        )


class _Backend(httpcore.AsyncNetworkBackend):
    """Connects to checked addresses only."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to a host, at the first of its addresses that takes it."""
        try:
            addresses = await self._guard.addresses(host, port)
        except OSError as error:
            raise httpcore.ConnectError("the host cannot be resolved") from error
        failure: Exception = httpcore.ConnectError("the host has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except httpcore.ConnectError as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
