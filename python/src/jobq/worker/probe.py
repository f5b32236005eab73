"""A tiny HTTP server for Prometheus and for probes: /metrics, /healthz and /readyz."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answers", "Probe"]

# Seconds for a request and its answer: probes wait no longer.
TIMEOUT: Final = 1.0
# What each route asks, as a member of the worker's health.
QUESTIONS: Final = {b"/healthz": "alive", b"/readyz": "ok"}
PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"


class Answers(Protocol):
    """What a probe can ask a worker."""

    def health(self) -> Mapping[str, object]:
        """Tell what is wrong and what is right; ``alive`` and ``ok`` say which."""

    def metrics_text(self) -> bytes | None:
        """Return Prometheus's text, or None where it is not to be had."""


class Probe:
    """Answers GET /healthz, /readyz (each 200 or 503) and /metrics, and nothing else.

    /healthz says that the loop turns: a worker that answers it need not be restarted. /readyz
    says that the database has answered of late too.

    Args:
        worker: who is asked.
    """

    def __init__(self, worker: Answers) -> None:
        self._worker = worker
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
        if path in QUESTIONS:
            health = self._worker.health()
            status = "200 OK" if health[QUESTIONS[path]] else "503 Service Unavailable"
            return status, "application/json", msgspec.json.encode(health)
        metrics = self._worker.metrics_text() if path == b"/metrics" else None
        if metrics is not None:
            return "200 OK", PLAIN, metrics
        return "404 Not Found", PLAIN, b"/healthz, /readyz and /metrics are here\n"
