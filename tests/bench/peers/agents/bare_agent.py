"""No queue: plain INSERTs of jobq's row, through jobq's driver, as a reference."""

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

    from agent import Notes

# A table with the same checks, defaults and indexes, and the columns that enqueue() fills.
TABLE = "create table bare (like jobq_private.job including all) with (fillfactor = 70)"
INSERT = """
    insert into bare (
        job_id, kind, payload, queue, run_at, priority, max_attempts, timeout, lease, metadata
    )
    values (uuidv7(), %s, %s, 'default', now(), 0, 25, '15 min', '1 min', '{}')
"""


class BareProducer:
    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._connection.execute(INSERT, [kind, Jsonb(payload)])

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        for payload in payloads:
            await self.add("noop", payload)


class BareAgent:
    chunk = 1000

    async def install(self, url: str) -> str:
        await JobqAgent().install(url)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(TABLE)
        return ""

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[BareProducer]:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            use_json(connection)
            yield BareProducer(connection)

    async def work(self, _url: str, _notes: Notes) -> None:
        raise RuntimeError("nothing works on a bare table")


if __name__ == "__main__":
    main(BareAgent())
