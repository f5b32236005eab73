"""awa with its engine of segments, 200 jobs at a time, and enqueues in bulk by COPY."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import awa
from agent import main, stopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent import Notes

CONCURRENCY = 200


@dataclass
class Noop:
    n: int
    pad: str


@dataclass
class Stamp:
    n: int
    pad: str


KINDS = {"noop": Noop, "stamp": Stamp}


class AwaProducer:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._client.insert(KINDS[kind](**payload), queue="bench")

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        jobs = [Noop(**payload) for payload in payloads]
        await self._client.enqueue_many_copy(jobs, queue="bench")


class AwaAgent:
    chunk = 5000

    async def install(self, url: str) -> str:
        client = awa.AsyncClient(url)
        await client.migrate()
        await client.install_queue_storage()
        await client.close()
        return version("awa-pg")

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[AwaProducer]:
        client = awa.AsyncClient(url)
        yield AwaProducer(client)
        await client.close()

    async def work(self, url: str, notes: Notes) -> None:
        client = awa.AsyncClient(url)

        @client.task(Noop, queue="bench")
        async def noop(job: Any) -> None:
            notes.noop()

        @client.task(Stamp, queue="bench")
        async def stamp(job: Any) -> None:
            notes.stamp(job.args.n)

        await client.start([("bench", CONCURRENCY)])
        await stopped()
        await client.shutdown()


if __name__ == "__main__":
    main(AwaAgent())
