"""Connections of clients: timeouts of requests, and a maximum number of connections."""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

logger = logging.getLogger("jobq.http")

HEADERS_SECONDS: Final = 10.0  # for the headers of a request, since the previous answer
REQUEST_SECONDS: Final = 60.0  # for its body
QUIET_SECONDS: Final = 10.0  # between two warnings that the limit is reached
TIMEOUT: Final = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Arrivals:
    """The connections of a server that wait for a request, the oldest first, of `most` in all."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: dict[Connection, None] = {}
        self._quiet_until = 0.0

    def make_room(self, newest: Connection) -> None:
        """Close the connection that has waited longest, or else the newest one."""
        now = time.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + QUIET_SECONDS
            logger.warning(
                "%d connections are open, the limit: those without a request are closed", self.most
            )
        victim = next(iter(self.waiting), newest)
        self.waiting.pop(victim, None)
        victim.transport.abort()


class Connection(HttpToolsProtocol):
    """A connection that is closed if a request does not arrive in time.

    Trailers of a chunked body are dropped, because proxies do not check them like headers.
    """

    def __init__(self, arrivals: Arrivals, **given: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(**given)
        self._arrivals = arrivals
        self._has_headers = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register a connection, and close another if there are too many."""
        super().connection_made(transport)
        self._arrivals.waiting[self] = None
        self._arrive_within(HEADERS_SECONDS)
        if len(self.connections) > self._arrivals.most:
            self._arrivals.make_room(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._has_arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request; the timeout begins with the first."""
        if self._is_idle and self._deadline is None:
            self._arrive_within(HEADERS_SECONDS)
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._has_headers = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header; ignore trailers."""
        if not self._has_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Answer a request as soon as its headers have arrived."""
        self._has_headers = True
        self._arrive_within(REQUEST_SECONDS)
        self._arrivals.waiting.pop(self, None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the timeout of a complete request."""
        self._has_arrived()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._arrivals.waiting[self] = None

    @property
    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _arrive_within(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _has_arrived(self) -> None:
        self._arrivals.waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """Close a connection whose request has not arrived in time."""
        self._deadline = None
        if not self._has_headers and self._is_idle:
            self.transport.write(TIMEOUT)
        self.transport.close()


def connections(most: int | None = None) -> Callable[..., Connection]:
    """Return the factory of a server's connections, for uvicorn's setting ``http``.

    Args:
        most: maximum number; by default half of the process's file descriptors.
    """
    if most is None:
        most = max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 1)
    return partial(Connection, Arrivals(most))
