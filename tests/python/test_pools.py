"""Pools of connections after the server has closed all of them, as when it is restarted."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from http_api import served
from waiting import until, until_async

from jobq import AsyncClient, Client
from jobq.database import AsyncPool, use_json

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]

pytest_plugins = ["http_fixtures"]

SIZE = 4  # as of the HTTP server in `served`, which gives a call 5 s for a connection
ENQUEUE: dict[str, Any] = {"kind": "a", "idempotency_key": "held"}


class Door:
    """Holds up who enqueues with a key until all are there, each on a connection of its own."""

    def __init__(self, connection: Connection, watcher: Connection) -> None:
        self._connection = connection
        self._watcher = watcher
        connection.execute("begin")
        connection.execute("select jobq.enqueue('a', idempotency_key => 'held')")

    def is_full(self) -> bool:
        """Whether everybody waits."""
        [[waiting]] = self._watcher.execute(
            "select count(*) from pg_locks as l join pg_stat_activity as a using (pid)"
            " where not l.granted and a.datname = current_database()"
        ).fetchall()
        return bool(waiting == SIZE)

    async def is_full_async(self) -> bool:
        return self.is_full()

    def open(self) -> None:
        self._connection.execute("rollback")


@pytest.fixture
def door(connect: Connect) -> Door:
    return Door(connect(), connect())


def close_all(connection: Connection) -> None:
    """Do to the sessions of others what a server does that ends."""
    [[closed]] = connection.execute(
        "select count(*) filter (where pg_terminate_backend(pid, 10000)) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
        " and backend_type = 'client backend'"
    ).fetchall()
    assert closed >= SIZE


def test_a_client_passes_over_closed_connections(
    database: str, connect: Connect, door: Door
) -> None:
    with Client(database, pool_size=SIZE, patience=5) as client:
        with ThreadPoolExecutor(SIZE) as threads:
            for _ in range(SIZE):
                threads.submit(client.enqueue, **ENQUEUE)
            until(door.is_full)
            door.open()
        close_all(connect())
        assert client.enqueue("a").created


async def test_an_async_client_passes_over_closed_connections(
    database: str, connect: Connect, door: Door
) -> None:
    async with AsyncClient(database, pool_size=SIZE, patience=5) as client:
        enqueued = asyncio.gather(*(client.enqueue(**ENQUEUE) for _ in range(SIZE)))
        await until_async(door.is_full_async)
        door.open()
        await enqueued
        close_all(connect())
        assert (await client.enqueue("a")).created


async def test_an_http_server_passes_over_closed_connections(
    database: str, connect: Connect, door: Door
) -> None:
    async with served(database) as api:
        asked = [api.ask("POST", "/jobs", json=ENQUEUE) for _ in range(SIZE)]
        answers = asyncio.gather(*asked)
        await until_async(door.is_full_async)
        door.open()
        await answers
        close_all(connect())
        answer = await api.ask("POST", "/jobs", json={"kind": "a"})
        assert answer.status_code == 201


async def test_a_call_that_waits_for_a_connection_is_cancelled_at_any_moment(
    database: str,
) -> None:
    """Also at the one at which the connection comes; and the next caller gets the connection."""
    async with AsyncPool(database, configure=use_json, min_size=0, max_size=1, open=False) as pool:
        for turns in range(40):
            held = await pool.getconn(10)
            waiter = asyncio.create_task(pool.getconn(10))
            await until_async(lambda: asyncio.sleep(0, pool.get_stats()["requests_waiting"] == 1))
            returning = asyncio.create_task(pool.putconn(held))
            for _ in range(turns):
                await asyncio.sleep(0)
            is_asked = waiter.cancel()
            came = (await asyncio.gather(waiter, return_exceptions=True))[0]
            assert isinstance(came, asyncio.CancelledError) is is_asked, turns
            if not isinstance(came, BaseException):
                await pool.putconn(came)
            await returning
