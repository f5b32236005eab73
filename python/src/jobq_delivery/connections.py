"""Connections to HTTP targets, kept open, to checked addresses only.

httpcore, the transport of httpx, implements HTTP. Its pool scans all connections for every
request, which with fifty concurrent requests costs more than the requests, so this module has
its own pool.
"""

from __future__ import annotations

import asyncio
import logging
import select
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import httpcore
from anyio.streams.tls import TLSStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterable

    from jobq_delivery.address import Guard

__all__ = ["Connections"]

MOST_IDLE: Final = 100
KEEP_ALIVE: Final = 30.0


class Connections:
    """Connections by origin; each carries one request at a time.

    Args:
        guard: the allowed addresses.
        trust: the trusted certificate authorities.
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
        origin = request.url.origin
        connection = await self._take(origin)
        try:
            response = await connection.handle_async_request(request)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            if may_be_kept(connection) and len(self._idle) < MOST_IDLE:
                self._idle.append((origin, connection))
            else:
                await connection.aclose()

    async def _take(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        """Return the connection that was used last, or a new one; close stale ones."""
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


def may_be_kept(connection: httpcore.AsyncHTTPConnection) -> bool:
    """Return whether a connection can carry another request.

    Not if the target has sent unrequested data, which would be taken for the next answer.
    httpcore does not report this, so this reads the state of its parser.
    """
    inner: Any = connection._connection  # noqa: SLF001 - see above
    if inner is None or not connection.is_idle() or connection.has_expired():
        return False
    return not inner._h11_state.trailing_data[0]  # noqa: SLF001


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
                stream = await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
                return _Stream(stream)
            except httpcore.ConnectError as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    """A stream that sends what was written when something is read: a request in one packet."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._unsent = b""
        self._poll = select.poll()
        self._poll.register(inner.get_extra_info("socket"), select.POLLIN)

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
    ) -> bytes:
        """Send the buffered data, and read."""
        if self._unsent:
            data, self._unsent = self._unsent, b""
            with suppress(httpcore.WriteError):  # the target may have answered before it hung up
                await self._inner.write(data, timeout)
        return await self._inner.read(max_bytes, timeout)

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - httpcore's interface
    ) -> None:
        """Buffer the data."""
        self._unsent += buffer

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
    ) -> httpcore.AsyncNetworkStream:
        """Return the stream within TLS."""
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's interface
        """Return what is asked about the stream."""
        if info == "is_readable":
            return bool(self._poll.poll(0)) or is_holding(self._inner)
        return self._inner.get_extra_info(info)


def is_holding(stream: httpcore.AsyncNetworkStream) -> bool:
    """Return whether a stream has buffered data that was not read yet.

    anyio does not report this, so this reads its queue and its TLS buffer; a stream without
    them is never reused.
    """
    inner: Any = getattr(stream, "_stream", None)
    try:
        if isinstance(inner, TLSStream):
            if inner._read_bio.pending or inner._ssl_object.pending():  # noqa: SLF001 - see above
                return True
            inner = inner.transport_stream
        return bool(inner._protocol.read_queue)  # noqa: SLF001 - see above
    except AttributeError:
        return True
