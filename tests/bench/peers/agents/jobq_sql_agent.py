"""jobq without its client: `select jobq.enqueue(...)` on a plain connection."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from agent import main
from psycopg.types.json import Jsonb

from jobq.database import use_json
from jobq_agent import JobqAgent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class SqlProducer:
    """Enqueues by plain SQL."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._connection.execute("select jobq.enqueue(%s, %s)", [kind, Jsonb(payload)])

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        jobs = Jsonb([{"kind": "noop", "payload": payload} for payload in payloads])
        await self._connection.execute("select count(*) from jobq.enqueue_many(%s)", [jobs])


class JobqSqlAgent(JobqAgent):
    """jobq with that producer."""

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[SqlProducer]:  # type: ignore[override]
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            use_json(connection)
            yield SqlProducer(connection)


if __name__ == "__main__":
    main(JobqSqlAgent())
