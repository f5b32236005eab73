"""pgqueuer on asyncpg and uvloop, in large batches."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import asyncpg
from agent import KEYS, key_of, main, stopped
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent import Notes
    from pgqueuer.models import Job

BATCH = 500


class PgqueuerProducer:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._queries = Queries(AsyncpgDriver(connection))

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._queries.enqueue(kind, json.dumps(payload).encode())

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        data = [json.dumps(payload).encode() for payload in payloads]
        await self._queries.enqueue(["noop"] * len(data), data, [0] * len(data))

    async def add_keyed(self, payloads: list[dict[str, Any]]) -> None:
        data = [json.dumps(payload).encode() for payload in payloads]
        await self._queries.enqueue([key_of(p) for p in payloads], data, [0] * len(data))


class PgqueuerAgent:
    chunk = 10_000

    async def install(self, url: str) -> str:
        async with connected(url) as connection:
            await Queries(AsyncpgDriver(connection)).install()
        return version("pgqueuer")

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[PgqueuerProducer]:
        async with connected(url) as connection:
            yield PgqueuerProducer(connection)

    async def work(self, url: str, notes: Notes) -> None:
        async with connected(url) as connection:
            queue = PgQueuer(AsyncpgDriver(connection))

            @queue.entrypoint("noop")
            async def noop(_job: Job) -> None:
                notes.noop()

            @queue.entrypoint("stamp")
            async def stamp(job: Job) -> None:
                assert job.payload is not None
                notes.stamp(json.loads(job.payload)["n"])

            # It has no keys: each is an entrypoint, whose jobs run one at a time. To have these
            # beside the others would slow all, so they are there where their jobs wait.
            if await connection.fetchval(
                "select exists (select from pgqueuer where entrypoint like 'key %')"
            ):
                for key in range(KEYS):
                    queue.entrypoint(key_of({"n": key}), concurrency_limit=1)(noop)

            working = asyncio.create_task(queue.run(batch_size=BATCH))
            await stopped()
            queue.shutdown.set()
            await working


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


if __name__ == "__main__":
    main(PgqueuerAgent())
