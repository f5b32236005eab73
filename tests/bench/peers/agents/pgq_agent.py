"""PgQ: one consumer of batches of events, and ticks ten times a second."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
from agent import main, stopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent import Notes

TICK = 0.1
INSTALL = """
    create extension pgq;
    select pgq.create_queue('bench');
    select pgq.set_queue_config('bench', 'ticker_max_lag', '50 ms');
    select pgq.set_queue_config('bench', 'ticker_idle_period', '1 s');
    select pgq.register_consumer('bench', 'worker')
"""


class PgqProducer:
    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._connection.execute(
            "select pgq.insert_event('bench', %s, %s)", [kind, json.dumps(payload)]
        )

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        await self._connection.execute(
            "select count(pgq.insert_event('bench', 'noop', data)) from unnest(%s::text[]) as data",
            [[json.dumps(payload) for payload in payloads]],
        )
        await self._connection.execute("select pgq.ticker('bench')")


class PgqAgent:
    chunk = 10_000

    async def install(self, url: str) -> str:
        async with connected(url) as connection:
            await connection.execute(INSTALL)
            cursor = await connection.execute("select pgq.version()")
            row = await cursor.fetchone()
        assert row is not None
        return str(row[0])

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[PgqProducer]:
        async with connected(url) as connection:
            yield PgqProducer(connection)

    async def work(self, url: str, notes: Notes) -> None:
        async with connected(url) as connection:
            working = asyncio.create_task(work(connection, notes))
            await stopped()
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working


async def work(connection: psycopg.AsyncConnection[Any], notes: Notes) -> None:
    """Tick, and consume what the ticks have closed, for ever."""
    while True:
        await connection.execute("select pgq.ticker('bench')")
        while await consume(connection, notes):
            pass
        await asyncio.sleep(TICK)


async def consume(connection: psycopg.AsyncConnection[Any], notes: Notes) -> bool:
    """Handle one batch of events; tell whether there was one."""
    cursor = await connection.execute("select pgq.next_batch('bench', 'worker')")
    row = await cursor.fetchone()
    if row is None or row[0] is None:
        return False
    cursor = await connection.execute(
        "select ev_type, ev_data from pgq.get_batch_events(%s)", [row[0]]
    )
    async for kind, data in cursor:
        if kind == "noop":
            notes.noop()
        else:
            notes.stamp(json.loads(data)["n"])
    await connection.execute("select pgq.finish_batch(%s)", [row[0]])
    return True


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield connection


if __name__ == "__main__":
    main(PgqAgent())
