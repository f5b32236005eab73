"""The HTTP API as an ASGI application, and a server for it."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from socket import socket
from typing import Any, Final, Protocol, TypeAlias

import msgspec
import psycopg
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from jobq.client.notifications import STREAMS, Endings
from jobq_http import (
    approvals,
    definitions,
    endpoints,
    events,
    executions,
    glances,
    health,
    jobs,
    metrics,
    new_jobs,
    openapi,
    operators,
    queues,
    schedules,
    streams,
    workers,
    workflows,
)
from jobq_http.auth import Keys, bearer_of
from jobq_http.connection import connections
from jobq_http.database import Database, conninfo_for
from jobq_http.errors import answer
from jobq_http.limits import Bounds
from jobq_http.routing import path_of, routes
from jobq_http.standby import Standby

logger = logging.getLogger("jobq.http")
access = logging.getLogger("jobq.http.access")

# In the order of the specification.
SECTIONS: Final = (
    new_jobs, jobs, events, schedules, executions, operators, queues, definitions, endpoints,
    workers, workflows, streams, approvals, glances, health, metrics, openapi,
)  # fmt: skip
OPERATIONS: Final = tuple(operation for section in SECTIONS for operation in section.OPERATIONS)
SPECIFICATION: Final = msgspec.json.encode(openapi.specification(OPERATIONS))

# Paths that need no key.
OPEN: Final = frozenset(operation.path for operation in OPERATIONS if not operation.scopes)
GONE: Final = 499  # in the log and the metrics: the client disconnected before its request arrived
QUIET: Final = frozenset({"/healthz", "/ready", "/metrics"})
OPEN_FOLDER: Final = "/docs/"
CONSOLE: Final = frozenset({"/", "/console"})
CONSOLE_FOLDER: Final = "/console/"

GIVEN_ID: Final = re.compile(rb"[-_.:/=+0-9A-Za-z]{1,128}")


class Site(Protocol):
    """What is served besides the API: the console, with its own sign-in, and tools at /mcp."""

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """Its routes."""

    async def open(self) -> None:
        """Start."""

    async def close(self) -> None:
        """Stop."""


SiteMaker: TypeAlias = "Callable[[str, Keys, Standby | None], Site]"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a server.

    Attributes:
        pool_size: maximum connections for each of jobq's four roles.
        patience: seconds after which a request gets 504.
        requests_per_second: rate limit of keys without their own.
        longest_wait: maximum seconds for which a worker's claim waits for a job.
        maintain_every: seconds between calls of jobq.maintain(); 0 leaves it to workers or
            pg_cron.
        is_metrics_open: whether /metrics needs no key.
        console: creates the console; None for none.
        mcp: creates the tools for assistants, behind the keys; None for none.
        read_database_url: URL of a standby for lists and figures; None for none.
        proxy_from: networks of proxies whose headers about clients are trusted.
        max_connections: maximum open connections; by default half of the file descriptors.
        longest_lag: maximum lag of the standby in seconds; above it, the primary is used.
    """

    pool_size: int = 8
    patience: float = 30.0
    requests_per_second: float = 5000.0
    longest_wait: float = 25.0
    maintain_every: float = 5.0
    is_metrics_open: bool = True
    console: SiteMaker | None = None
    mcp: SiteMaker | None = None
    read_database_url: str | None = None
    longest_lag: float = 30.0
    proxy_from: tuple[str, ...] = ()
    max_connections: int | None = None


DEFAULTS: Final = Settings()


def create_app(database_url: str, settings: Settings = DEFAULTS) -> Starlette:
    """Create the HTTP API.

    Args:
        database_url: a PostgreSQL connection string; its user must be a member of jobq_producer,
            jobq_worker, jobq_operator and jobq_reader.
        settings: its settings.
    """
    read, limits = settings.read_database_url, (settings.pool_size, settings.patience)
    database = Database(database_url, *limits)
    standby = Standby(read, *limits, settings.longest_lag) if read else None
    keys = Keys(database, settings.requests_per_second)
    appends = Endings(conninfo_for(database_url, "jobq_reader", settings.patience), STREAMS)
    console = settings.console and settings.console(database_url, keys, standby)
    mcp = settings.mcp and settings.mcp(database_url, keys, standby)
    databases: list[Database | Site] = [database, *([standby.database] if standby else [])]
    sites = [site for site in (console, mcp) if site]

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        tasks = []
        async with AsyncExitStack() as stack:
            for each in databases + sites:
                await each.open()
                stack.push_async_callback(each.close)
            stack.push_async_callback(appends.close)
            if every := settings.maintain_every:
                tasks.append(asyncio.create_task(maintain(database, every)))
            if standby:
                tasks.append(asyncio.create_task(standby.watch()))
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    app = Starlette(
        routes=[
            *routes(OPERATIONS),
            health.ASSETS,
            *(route for site in sites for route in site.routes),
        ],
        middleware=[
            Middleware(Proxies, networks=settings.proxy_from),
            Middleware(
                Gate,
                keys=keys,
                is_metrics_open=settings.is_metrics_open,
                has_console=console is not None,
            ),
        ],
        exception_handlers={HTTPException: answer},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.database = database
    app.state.standby = standby
    app.state.appends = appends
    app.state.keys = keys
    app.state.bounds = Bounds(database)
    app.state.specification = SPECIFICATION
    app.state.scrape = metrics.Scrape()
    app.state.is_stopping = False
    app.state.settings = settings
    return app


async def maintain(database: Database, every: float) -> None:
    """Call jobq.maintain() about every so many seconds; any number of servers and workers may."""
    while True:
        try:
            rows = await database.fetch("jobq_worker", "maintain")
            if any(row.has_more for row in rows):
                continue
        except psycopg.Error as error:
            logger.warning("maintain: %s", error)
        await asyncio.sleep(every * random.uniform(0.8, 1.2))  # noqa: S311


def serve(database_url: str, host: str, port: int, settings: Settings = DEFAULTS) -> None:
    """Serve the HTTP API until interrupted; the other arguments are those of create_app()."""
    server(database_url, host, port, settings).run()


def server(
    database_url: str, host: str, port: int, settings: Settings = DEFAULTS
) -> uvicorn.Server:
    """Return a server that is not running yet, for callers with an event loop."""
    return Server(
        uvicorn.Config(
            create_app(database_url, settings),
            host=host,
            port=port,
            access_log=False,
            log_config=None,
            log_level="warning",
            timeout_graceful_shutdown=10,
            proxy_headers=False,  # by Proxies
            http=connections(settings.max_connections),  # type: ignore[arg-type]  # a factory
            ws="none",
        )
    )


class Server(uvicorn.Server):
    """A server that ends waiting claims and event streams when it stops."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, and log the address."""
        await super().startup(sockets)
        for listening in self.servers:
            for each in listening.sockets:
                host, port = each.getsockname()[:2]
                logger.info("serving on %s port %s", host, port)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop, in at most timeout_graceful_shutdown seconds."""
        state = self.config.app.state  # type: ignore[union-attr]
        state.is_stopping = True
        await super().shutdown(sockets)


class Proxies(ProxyHeadersMiddleware):
    """Uses X-Forwarded-For and X-Forwarded-Proto, but only from given networks.

    In the application's scope, `jobq.is_proxied` is whether a proxy sent the request.
    """

    def __init__(self, app: Any, networks: Sequence[str]) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(app, [str(ip_network(network)) for network in networks])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        """Pass a request on with its client's address and scheme."""
        scope["jobq.is_proxied"] = (scope.get("client") or ("",))[0] in self.trusted_hosts
        await super().__call__(scope, receive, send)


class Gate:
    """The middleware of every request: its id, its key, and the error handler."""

    def __init__(
        self, app: ASGIApp, keys: Keys, *, is_metrics_open: bool, has_console: bool
    ) -> None:
        self._app = app
        self._keys = keys
        self._has_console = has_console
        self._open = OPEN if is_metrics_open else OPEN - {"/metrics"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if not scope["path"].startswith((CONSOLE_FOLDER, OPEN_FOLDER)):
            scope["path"] = path_of(scope)
        request_id = request_id_of(headers.get(b"x-request-id", b""))
        scope["jobq.request_id"] = request_id
        started = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-request-id", request_id.encode()))
            await send(message)

        try:
            await self._admit(scope, headers)
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            status = GONE
        except Exception as error:
            if status:
                raise
            response = await answer(Request(scope, receive), error)
            await response(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started
            operation = scope.get("jobq.operation")
            method, path = (operation.method, operation.path) if operation else ("", "")
            metrics.REQUESTS.labels(method, path, status).observe(seconds)
            log(scope, status, seconds)

    async def _admit(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        path = scope["path"]
        if path in self._open or path.startswith(OPEN_FOLDER):
            return
        if self._has_console and (path in CONSOLE or path.startswith(CONSOLE_FOLDER)):
            return  # it has its own sign-in
        client = scope.get("client") or ("",)
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        scope["jobq.bearer"] = bearer_of(authorization)
        scope["jobq.key"] = await self._keys.holder(scope["jobq.bearer"], client[0])


def request_id_of(given: bytes) -> str:
    """Return the caller's request id, or a new one if it is missing or invalid."""
    return given.decode() if GIVEN_ID.fullmatch(given) else f"req_{secrets.token_hex(8)}"


def log(scope: Scope, status: int, seconds: float) -> None:
    """Log a request; those of monitoring at the level DEBUG."""
    level = logging.DEBUG if scope["path"] in QUIET else logging.INFO
    if not access.isEnabledFor(level):
        return
    key = scope.get("jobq.key")
    access.log(
        level,
        "%s %s %d",
        scope["method"],
        scope["path"],
        status,
        extra={
            "request_id": scope["jobq.request_id"],
            "key": key.name if key else None,
            "status": status,
            "ms": round(seconds * 1000, 1),
        },
    )
