"""chancy with its asyncio executor, eager polling, and 500 jobs at a time."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from agent import Notes, main, stopped
from chancy import Chancy, Job, Queue, Worker, job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

QUEUE = Queue(
    name="default",
    concurrency=500,
    executor=Chancy.Executor.Async,
    polling_interval=1,
    eager_polling=True,
)


@job()
async def noop(n: int, pad: str) -> None:
    notes().noop()


@job()
async def stamp(n: int, pad: str) -> None:
    notes().stamp(n)


def notes() -> Notes:
    """This process's notes: chancy finds handlers by their import path alone."""
    if not hasattr(notes, "made"):
        notes.made = Notes()
    return notes.made


class ChancyProducer:
    def __init__(self, chancy: Chancy) -> None:
        self._chancy = chancy

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._chancy.push(made(kind, payload))

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        jobs = [made("noop", payload) for payload in payloads]
        async for _references in self._chancy.push_many(jobs, batch_size=len(jobs)):
            pass


class ChancyAgent:
    chunk = 5000

    async def install(self, url: str) -> str:
        async with chancy_at(url, 1) as chancy:
            await chancy.migrate()
            await chancy.declare(QUEUE)
        return version("chancy")

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[ChancyProducer]:
        async with chancy_at(url, 1) as chancy:
            yield ChancyProducer(chancy)

    async def work(self, url: str, _notes: Notes) -> None:
        async with chancy_at(url, 10) as chancy, Worker(chancy, register_signal_handlers=False):
            await stopped()


def chancy_at(url: str, connections: int) -> Chancy:
    """Make an app with a number of connections."""
    return Chancy(url, max_connection_pool_size=connections, log=logging.getLogger("chancy"))


def made(kind: str, payload: dict[str, Any]) -> Job:
    """Make a job for the handlers in this module."""
    return Job(func=f"chancy_agent.{kind}", queue="default", kwargs=payload)


if __name__ == "__main__":
    main(ChancyAgent())
