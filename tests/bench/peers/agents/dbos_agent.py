"""dbos with a queue that is polled every 50 ms, and asyncio workflows."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import sqlalchemy
from agent import key_of, main, stopped
from dbos import DBOS, DBOSClient, DBOSConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent import Notes

QUEUE = "bench"
KEYED = "keyed"


class DbosProducer:
    def __init__(self, url: str) -> None:
        self._engine = sqlalchemy.create_engine(psycopg_url(url), pool_size=1, max_overflow=0)
        self._client = DBOSClient(system_database_engine=self._engine)

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._client.enqueue_async(options(kind), payload["n"], payload["pad"])

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        await asyncio.to_thread(self._add_many, "noop", payloads)

    async def add_flows(self, payloads: list[dict[str, Any]]) -> None:
        await asyncio.to_thread(self._add_many, "flow", payloads)

    async def add_calls(self, payloads: list[dict[str, Any]]) -> None:
        await asyncio.to_thread(self._add_many, "caller", payloads)

    async def add_keyed(self, payloads: list[dict[str, Any]]) -> None:
        await asyncio.to_thread(self._add_keyed, payloads)

    def _add_keyed(self, payloads: list[dict[str, Any]]) -> None:
        with self._engine.begin() as connection:
            for payload in payloads:
                where = {
                    **options("noop"),
                    "queue_name": KEYED,
                    "queue_partition_key": key_of(payload),
                }
                self._client.enqueue_in_transaction(connection, where, payload["n"], payload["pad"])

    def _add_many(self, kind: str, payloads: list[dict[str, Any]]) -> None:
        with self._engine.begin() as connection:
            for payload in payloads:
                self._client.enqueue_in_transaction(
                    connection, options(kind), payload["n"], payload["pad"]
                )

    def close(self) -> None:
        self._client.destroy()


class DbosAgent:
    chunk = 2000

    async def install(self, url: str) -> str:
        await asyncio.to_thread(launched, url, None)
        DBOS.destroy()
        return version("dbos")

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[DbosProducer]:
        producer = await asyncio.to_thread(DbosProducer, url)
        try:
            yield producer
        finally:
            producer.close()

    async def work(self, url: str, notes: Notes) -> None:
        await asyncio.to_thread(launched, url, notes)
        await stopped()
        DBOS.destroy()


def launched(url: str, notes: Notes | None) -> None:
    """Start DBOS with its workflows; only a worker has notes."""
    DBOS(
        config=DBOSConfig(
            name="bench",
            system_database_url=psycopg_url(url),
            application_version="1",
            log_level="ERROR",
        )
    )

    @DBOS.workflow(name="noop")
    async def noop(n: int, pad: str) -> None:
        assert notes is not None
        notes.noop()

    @DBOS.step()
    async def add_one(n: int) -> int:
        return n + 1

    @DBOS.workflow(name="flow")
    async def flow(n: int, pad: str) -> int:
        assert notes is not None
        notes.noop()
        for _ in range(3):
            n = await add_one(n)
        return n

    @DBOS.workflow(name="child")
    async def child(n: int) -> int:
        assert notes is not None
        notes.noop()
        return n + 1

    @DBOS.workflow(name="caller")
    async def caller(n: int, pad: str) -> int:
        called = await DBOS.start_workflow_async(child, n)
        return await called.get_result()

    @DBOS.workflow(name="stamp")
    async def stamp(n: int, pad: str) -> None:
        assert notes is not None
        notes.stamp(n)

    DBOS.launch()
    DBOS.register_queue(QUEUE, worker_concurrency=500, polling_interval_sec=0.05)
    DBOS.register_queue(KEYED, partition_concurrency=1, polling_interval_sec=0.05)


def options(kind: str) -> dict[str, Any]:
    """Say where a workflow goes."""
    return {"workflow_name": kind, "queue_name": QUEUE, "app_version": "1"}


def psycopg_url(url: str) -> str:
    """Name the driver as SQLAlchemy wants it."""
    return url.replace("postgresql://", "postgresql+psycopg://")


if __name__ == "__main__":
    main(DbosAgent())
