"""procrastinate with batch defers, and 50 jobs at a time."""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from agent import KEYS, key_of, main
from procrastinate import App, PsycopgConnector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent import Notes

CONCURRENCY = 50


class ProcrastinateProducer:
    def __init__(self, app: App) -> None:
        self._app = app

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._app.tasks[kind].defer_async(**payload)

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        await self._app.tasks["noop"].batch_defer_async(*payloads)

    async def add_keyed(self, payloads: list[dict[str, Any]]) -> None:
        for first in range(min(KEYS, len(payloads))):
            some = payloads[first::KEYS]
            await self._app.tasks["noop"].configure(lock=key_of(some[0])).batch_defer_async(*some)


class ProcrastinateAgent:
    chunk = 5000

    async def install(self, url: str) -> str:
        async with app_at(url, None, 1).open_async() as app:
            await app.schema_manager.apply_schema_async()
        return version("procrastinate")

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[ProcrastinateProducer]:
        async with app_at(url, None, 1).open_async() as app:
            yield ProcrastinateProducer(app)

    async def work(self, url: str, notes: Notes) -> None:
        async with app_at(url, notes, 20).open_async() as app:
            await app.run_worker_async(concurrency=CONCURRENCY)


def app_at(url: str, notes: Notes | None, connections: int) -> App:
    """Make an app with the two tasks; a producer has no notes."""
    app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=connections))

    @app.task(name="noop")
    async def noop(n: int, pad: str) -> None:
        assert notes is not None
        notes.noop()

    @app.task(name="stamp")
    async def stamp(n: int, pad: str) -> None:
        assert notes is not None
        notes.stamp(n)

    return app


if __name__ == "__main__":
    main(ProcrastinateAgent())
