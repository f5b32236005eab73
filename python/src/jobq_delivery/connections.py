"""Connections to HTTP targets, kept open, to checked addresses only."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import httpcore
from anyio.streams.tls import TLSStream

from jobq_delivery.address import Guard

MOST_IDLE: Final = 100
KEEP_ALIVE: Final = 30.0


class Connections:
    """Connections by origin; each carries one request at a time.

    httpcore's own pool scans all connections for every request. With fifty concurrent requests,
    that takes eight times as long as the requests.
    """

    def __init__(self, guard: Guard, trust: ssl.SSLContext) -> None:
        self._backend = _Backend(guard)
        self._trust = trust
        self._idle: list[tuple[httpcore.Origin, httpcore.AsyncHTTPConnection]] = []
        logging.getLogger("httpcore").setLevel(logging.INFO)  # its details may hold secrets

    async def close(self) -> None:
        """Close the idle connections."""
        for _, connection in self._idle:
            await connection.aclose()
        self._idle.clear()

    @asynccontextmanager
    async def request(self, request: httpcore.Request) -> AsyncIterator[httpcore.Response]:
        """Send a request and return the response, whose body is not read yet.

        Raises:
            AddressRefused: the guard does not allow the target.
            httpcore.NetworkError, httpcore.ProtocolError: the connection fails.
        """
        connection = await self._take(request.url.origin)
        try:
            async with aclosing(await connection.handle_async_request(request)) as response:
                yield response
        finally:
            if is_good(connection) and len(self._idle) < MOST_IDLE:
                self._idle.append((request.url.origin, connection))
            else:
                await connection.aclose()

    async def _take(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        """Return the connection that was used last, or a new one; close stale ones."""
        for place in reversed(range(len(self._idle))):
            if self._idle[place][0] == origin:
                _, connection = self._idle.pop(place)
                if is_good(connection):
                    return connection
                await connection.aclose()
        return httpcore.AsyncHTTPConnection(
            origin,
            ssl_context=self._trust,
            keepalive_expiry=KEEP_ALIVE,
            network_backend=self._backend,
        )


def is_good(connection: httpcore.AsyncHTTPConnection) -> bool:
    """Return whether a connection can carry another request.

    Not if the target has sent unrequested data, which would be taken for the next answer.
    httpcore and anyio do not report data that they have read already, so this reads the state of
    the parser, the queue and the TLS buffers.
    """
    if not connection.is_idle() or connection.has_expired():
        return False
    try:
        inner: Any = connection._connection  # noqa: SLF001 - see above
        stream = inner._network_stream._stream  # noqa: SLF001
        if isinstance(stream, TLSStream):
            if stream._read_bio.pending or stream._ssl_object.pending():  # noqa: SLF001
                return False
            stream = stream.transport_stream
        return not (inner._h11_state.trailing_data[0] or stream._protocol.read_queue)  # noqa: SLF001
    except AttributeError:
        return False


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
        """Connect to the first address of a host that accepts the connection."""
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
