"""Targets of the example jobs: a small HTTP receiver and a local SMTP server."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, Self

from aiosmtpd.controller import Controller

if TYPE_CHECKING:
    from aiosmtpd.smtp import SMTP, Envelope, Session


@dataclass
class WebhookReceiver:
    """An HTTP server on a free port of the loopback address that stores request bodies."""

    received: list[dict[str, Any]] = field(default_factory=list)

    def __enter__(self) -> Self:
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                received.append(json.loads(body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The URL for requests."""
        return f"http://127.0.0.1:{self._server.server_port}/hook"


@dataclass
class MailServer:
    """An SMTP server on a free port of the loopback address that stores subjects."""

    subjects: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()

    async def handle_DATA(  # noqa: N802 (aiosmtpd names it)
        self, _server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        """Store a message's subject and accept it."""
        message = message_from_bytes(envelope.original_content or b"", policy=default)
        self.subjects.append(str(message["Subject"]))
        return "250 kept"
