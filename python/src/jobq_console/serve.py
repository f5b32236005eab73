"""A standalone console for database logins."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from socket import socket

import uvicorn
from starlette.applications import Starlette

from jobq_console.app import Site
from jobq_console.options import PATH, PATIENCE, Options
from jobq_http.connection import connections
from jobq_http.database import LOG_IN, Database


def serve(
    database_url: str,
    listening: socket,
    options: Options,
    say: Callable[[str], None],
) -> None:
    """Serve the console on a socket of the loopback address until interrupted.

    `say` gets the address that signs in once, with the rights of the URL's login.
    """
    ticket = secrets.token_urlsafe(24)
    database = Database(database_url, 1, PATIENCE, (LOG_IN,))
    console = Site(database_url, database, options, ticket=ticket)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        host, port = listening.getsockname()[:2]
        await console.open()
        say(f"http://{host}:{port}{PATH}/enter?ticket={ticket}")
        try:
            yield
        finally:
            await console.close()

    app = Starlette(routes=console.routes, lifespan=lifespan)
    config = uvicorn.Config(
        app, access_log=False, log_config=None, log_level="warning",
        timeout_graceful_shutdown=2, proxy_headers=False,
        http=connections(), ws="none",  # type: ignore[arg-type]  # a factory
    )  # fmt: skip
    uvicorn.Server(config).run([listening])
