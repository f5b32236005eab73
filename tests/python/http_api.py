"""The HTTP API for tests: in this process for speed, or behind a real socket."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx
import psycopg

from jobq_console import Site
from jobq_http import Settings, create_app, create_key, server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

SETTINGS = Settings(pool_size=4, requests_per_second=1e6, maintain_every=0, console=Site.maker())


@dataclass
class Api:
    """A client with a key of every scope, and the database behind.

    Attributes:
        client: sends requests.
        url: the database.
        stop: asks a server behind a socket to stop.
    """

    client: httpx.AsyncClient
    url: str
    stop: Callable[[], None] = lambda: None
    _names: Iterator[int] = field(default_factory=count)

    def key(self, scopes: Sequence[str], **options: Any) -> dict[str, str]:
        """Make a key and return the header that carries it."""
        with psycopg.connect(self.url) as connection:
            name = f"test-{next(self._names)}"
            key = create_key(connection, name, scopes, **options)
        return {"authorization": f"Bearer {key}"}

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement in the database and return its rows, if it has any."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request."""
        return await self.client.request(method, path, **options)

    def endpoint(self, name: str) -> None:
        """Declare an endpoint over HTTP that tries three times."""
        spec = '{"url": "https://a.example"}'
        self.run("select jobq.put_endpoint(%s, 'HTTP', %s, max_attempts => 3)", name, spec)

    async def job(self, **options: Any) -> dict[str, Any]:
        """Create a job and return it."""
        response = await self.ask("POST", "/jobs", json={"kind": "test", **options})
        assert response.status_code == 201, response.text
        job: dict[str, Any] = response.json()
        return job

    async def claim(self, worker: str = "w") -> dict[str, Any]:
        """Claim the next job over HTTP and return it."""
        response = await self.ask("POST", f"/workers/{worker}/claim")
        [job] = response.json()["jobs"]
        return dict(job)


@asynccontextmanager
async def opened(database: str, settings: Settings = SETTINGS) -> AsyncIterator[Api]:
    """Open the HTTP API in this process."""
    app = create_app(database, settings)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://jobq", timeout=60
        ) as client,
    ):
        api = Api(client, database)
        client.headers.update(api.key(["produce", "work", "operate", "read"]))
        yield api


@asynccontextmanager
async def served(database: str, settings: Settings = SETTINGS) -> AsyncIterator[Api]:
    """Serve the HTTP API on a free port of the loopback address."""
    running = server(database, "127.0.0.1", 0, replace(settings))
    task = asyncio.create_task(running.serve())
    try:
        while not running.started:
            assert not task.done(), "the server did not start"
            await asyncio.sleep(0.01)
        port = running.servers[0].sockets[0].getsockname()[1]
        base = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base, timeout=60) as client:
            api = Api(client, database, partial(setattr, running, "should_exit", True))
            client.headers.update(api.key(["produce", "work", "operate", "read"]))
            yield api
    finally:
        running.should_exit = True
        await task
