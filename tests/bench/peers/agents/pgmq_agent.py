"""pgmq's SQL from its Python package: messages read and deleted 500 at a time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
from agent import main, stopped
from pgmq.install import get_embedded_install_sql, get_embedded_sql_version
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent import Notes

BATCH = 500
# Waits on the server for at most 5 s, looking every 10 ms.
READ = f"select msg_id, message from pgmq.read_with_poll('bench', 30, {BATCH}, 5, 10)"


class PgmqProducer:
    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        message = Jsonb({"kind": kind, **payload})
        await self._connection.execute("select pgmq.send('bench', %s)", [message])

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        messages = [Jsonb({"kind": "noop", **payload}) for payload in payloads]
        await self._connection.execute(
            "select count(*) from pgmq.send_batch('bench', %s)", [messages]
        )


class PgmqAgent:
    chunk = 10_000

    async def install(self, url: str) -> str:
        async with connected(url) as connection:
            await connection.execute(get_embedded_install_sql())
            await connection.execute("select pgmq.create('bench')")
        return get_embedded_sql_version()

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[PgmqProducer]:
        async with connected(url) as connection:
            yield PgmqProducer(connection)

    async def work(self, url: str, notes: Notes) -> None:
        async with connected(url) as connection:
            working = asyncio.create_task(work(connection, notes))
            await stopped()
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working


async def work(connection: psycopg.AsyncConnection[Any], notes: Notes) -> None:
    """Read, handle and delete, for ever."""
    while True:
        cursor = await connection.execute(READ, prepare=True)
        rows = await cursor.fetchall()
        for _msg_id, message in rows:
            if message["kind"] == "noop":
                notes.noop()
            else:
                notes.stamp(message["n"])
        if rows:
            await connection.execute(
                "select count(*) from pgmq.delete('bench', %s)", [[row[0] for row in rows]]
            )


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield connection


if __name__ == "__main__":
    main(PgmqAgent())
