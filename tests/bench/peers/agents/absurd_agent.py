"""absurd by its asyncio SDK, 100 tasks at a time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import psycopg
from absurd_sdk import AsyncAbsurd
from absurdctl import BUNDLED_SCHEMA_SQL
from agent import main, stopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent import Notes

CONCURRENCY = 100
# A task must not wait for one of its own queue.
CHILDREN = "children"


class AbsurdProducer:
    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._absurd = AsyncAbsurd(connection)

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._absurd.spawn(kind, payload, queue="default")

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        await self._spawn("noop", payloads)

    async def add_flows(self, payloads: list[dict[str, Any]]) -> None:
        await self._spawn("flow", payloads)

    async def add_calls(self, payloads: list[dict[str, Any]]) -> None:
        await self._spawn("caller", payloads)

    async def _spawn(self, kind: str, payloads: list[dict[str, Any]]) -> None:
        async with self._connection.transaction(), self._connection.pipeline():
            for payload in payloads:
                await self._connection.execute(
                    "select absurd.spawn_task('default', %s, %s, '{}')",
                    [kind, psycopg.types.json.Jsonb(payload)],
                )


async def add_one(n: int) -> int:
    return n + 1


class AbsurdAgent:
    chunk = 2000

    async def install(self, url: str) -> str:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(BUNDLED_SCHEMA_SQL)
            for queue in ("default", CHILDREN):
                await AsyncAbsurd(connection).create_queue(queue)
        return version("absurd-sdk")

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[AbsurdProducer]:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            yield AbsurdProducer(connection)

    async def work(self, url: str, notes: Notes) -> None:
        absurd, children = AsyncAbsurd(url), AsyncAbsurd(url, CHILDREN)

        @absurd.register_task("noop")
        async def noop(_params: Any, _context: Any) -> None:
            notes.noop()

        @absurd.register_task("flow")
        async def flow(params: Any, context: Any) -> int:
            notes.noop()
            n = int(params["n"])
            for name in ("one", "two", "three"):
                n = await context.step(name, partial(add_one, n))
            return n

        @absurd.register_task("caller")
        async def caller(params: Any, context: Any) -> int:
            async def spawn() -> str:
                spawned = await absurd.spawn("child", params, queue=CHILDREN)
                return str(spawned["task_id"])

            ended = await context.await_task_result(await context.step("spawn", spawn), CHILDREN)
            return int(ended.result)

        @children.register_task("child")
        async def child(params: Any, _context: Any) -> int:
            notes.noop()
            return int(params["n"]) + 1

        @absurd.register_task("stamp")
        async def stamp(params: Any, _context: Any) -> None:
            notes.stamp(params["n"])

        workers = (absurd, children)
        working = [asyncio.create_task(w.start_worker(concurrency=CONCURRENCY)) for w in workers]
        await stopped()
        for worker, task in zip(workers, working, strict=True):
            worker.stop_worker()
            await task
            await worker.close()


if __name__ == "__main__":
    main(AbsurdAgent())
