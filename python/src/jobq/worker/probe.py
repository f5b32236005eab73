"""A tiny HTTP server for Prometheus and for probes: /metrics and /healthz."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Probe"]

TIMEOUT: Final = 5.0
PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"


class Probe:
    """Answers GET /healthz (200 or 503) and GET /metrics, and nothing else.

    Args:
        health: returns what is wrong and what is right; ``ok`` says which.
        metrics: returns Prometheus's text, or None where it is not to be had.
    """

    def __init__(
        self,
        health: Callable[[], Mapping[str, object]],
        metrics: Callable[[], bytes | None],
    ) -> None:
        self._health = health
        self._metrics = metrics
        self._server: asyncio.Server | None = None
        self.port = 0

    async def open(self, host: str, port: int) -> None:
        """Listen.

        Args:
            host: the address.
            port: the port; 0 takes a free one, which `port` then tells.

        Raises:
            OSError: the port is taken.
        """
        self._server = await asyncio.start_server(self._serve, host, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(TIMEOUT):
                request = await reader.readuntil(b"\r\n\r\n")
                words = request.split(b"\r\n", 1)[0].split()
                path = words[1].split(b"?")[0] if len(words) > 1 else b""
                status, kind, body = self._answer(path)
                head = (
                    f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                )
                writer.write(head.encode() + body)
                await writer.drain()
        writer.close()

    def _answer(self, path: bytes) -> tuple[str, str, bytes]:
        if path == b"/healthz":
            health = self._health()
            status = "200 OK" if health["ok"] else "503 Service Unavailable"
            return status, "application/json", msgspec.json.encode(health)
        metrics = self._metrics() if path == b"/metrics" else None
        if metrics is not None:
            return "200 OK", PLAIN, metrics
        return "404 Not Found", PLAIN, b"/healthz and /metrics are here\n"
