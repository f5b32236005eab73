"""A client that is told when a job has ended: what it is told, and what it survives."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from waiting import PATIENCE, until, until_async

from jobq import AsyncClient, Client
from jobq.client.client import _pauses
from jobq.client.notifications import Endings
from jobq.errors import JobCancelled, JobFailed, JobNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]

NOWHERE = "postgresql://127.0.0.1:1/x"
COMPLETE = "select jobq.complete(job_id, attempt, payload) from jobq.claim_job(%s, 'w')"
FAIL = "select jobq.fail(job_id, attempt, 'broke', 'BAD', false) from jobq.claim_job(%s, 'w')"
# Whether it is known that somebody waits for each of these jobs.
IS_KNOWN = """
    select bool_and(exists (
        select from pg_locks as l
        where l.locktype = 'advisory' and l.mode = 'ShareLock' and l.classid = 1785684596
        and l.objid = hashtext(job_id::text) & 1023
        and l.database = (select d.oid from pg_database as d where d.datname = current_database())
    ))
    from unnest(%s::uuid[]) as job_id
"""
KNOWN = """
    select count(*) from pg_locks as l
    where l.locktype = 'advisory' and l.mode = 'ShareLock' and l.classid = 1785684596
    and l.database = (select d.oid from pg_database as d where d.datname = current_database())
"""
LISTENERS = """
    select pid from pg_stat_activity
    where application_name = 'jobq client listener' and datname = current_database()
"""


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients look by themselves so seldom that they find only what they are told."""
    monkeypatch.setattr("jobq.client.client.LONGEST_PAUSE", 10 * PATIENCE)


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    with Client(database, listen_database=database) as client:
        yield client


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as executor:
        yield executor


def column(connection: Connection, query: str, *parameters: object) -> list[Any]:
    return [row[0] for row in connection.execute(query, parameters)]


def is_known(connection: Connection, *job_ids: UUID) -> bool:
    """Return whether the database knows that somebody waits for all these jobs."""
    return column(connection, IS_KNOWN, list(job_ids)) == [True]


async def until_known(connection: Connection, *job_ids: UUID) -> None:
    async def look() -> bool:
        return is_known(connection, *job_ids)

    await until_async(look, "for a wait to be announced")


def notified(connection: Connection) -> list[str]:
    """Return the payload of the first notification and of those that come with it."""
    return [n.payload for n in connection.notifies(timeout=PATIENCE, stop_after=1)]


# ---- what the database tells


@pytest.mark.oldest_version
def test_the_end_of_a_job_is_told_when_it_commits(client: Client, connect: Connect) -> None:
    waiter, worker = connect(), connect()
    job_id = client.enqueue("a").job_id
    waiter.execute("listen jobq_ended")
    assert column(waiter, "select jobq.wait(%s)", job_id) == [False]
    worker.execute("begin")
    worker.execute(COMPLETE, [job_id])
    assert list(waiter.notifies(timeout=0)) == [], "not before the result can be seen"
    worker.execute("rollback; begin")
    worker.execute(COMPLETE, [job_id])
    worker.execute("commit")
    assert notified(waiter) == [str(job_id)]
    assert client.get(job_id).state == "succeeded"


@pytest.mark.oldest_version
def test_nobody_is_told_of_a_job_for_which_nobody_waits(client: Client, connect: Connect) -> None:
    listener, waiter, worker = connect(), connect(), connect()
    job_ids = [client.enqueue("a").job_id for _ in range(20)]
    by_slot = {column(worker, "select hashtext(%s) & 1023", str(j))[0]: j for j in job_ids}
    first, other, last = list(by_slot.values())[:3]
    listener.execute("listen jobq_ended")
    worker.execute(COMPLETE, [first])
    assert column(waiter, "select jobq.wait(%s)", last) == [False]
    worker.execute(COMPLETE, [other])
    worker.execute(COMPLETE, [last])
    assert notified(listener) == [str(last)]


@pytest.mark.parametrize(
    "end",
    [
        FAIL,
        "select jobq.cancel(%s)",
        "update jobq.job set state = 'cancelled' where job_id = %s",
        "select jobq.complete_many(array[job_id], array[attempt]) from jobq.claim_job(%s, 'w')",
        "select jobq.exchange('{}', 'w', 0, array[job_id], array[attempt])"
        " from jobq.claim_job(%s, 'w')",
    ],
)
def test_every_end_is_told(client: Client, connect: Connect, end: str) -> None:
    waiter = connect()
    job_id = client.enqueue("a").job_id
    waiter.execute("listen jobq_ended")
    assert column(waiter, "select jobq.wait(%s)", job_id) == [False]
    connect().execute(end, [job_id])
    assert notified(waiter) == [str(job_id)]


# ---- Client


@pytest.mark.usefixtures("deaf")
def test_a_client_is_told(client: Client, connect: Connect, threads: ThreadPoolExecutor) -> None:
    watcher = connect()
    job_id = client.enqueue("a", {"n": 1}).job_id
    result = threads.submit(client.result, job_id, timeout=2 * PATIENCE)
    until(partial(is_known, watcher, job_id))
    watcher.execute(COMPLETE, [job_id])
    assert result.result(PATIENCE) == {"n": 1}
    until(lambda: not column(watcher, LISTENERS), "for the connection to be closed")


@pytest.mark.usefixtures("deaf")
def test_a_client_is_told_of_failure(
    client: Client, connect: Connect, threads: ThreadPoolExecutor
) -> None:
    watcher = connect()
    for end, error in ((FAIL, JobFailed), ("select jobq.cancel(%s)", JobCancelled)):
        job_id = client.enqueue("a").job_id
        result = threads.submit(client.result, str(job_id).upper(), timeout=2 * PATIENCE)
        until(partial(is_known, watcher, job_id))
        watcher.execute(end, [job_id])
        with pytest.raises(error):
            result.result(PATIENCE)


def test_a_completion_in_flight_is_found_by_looking(
    client: Client, connect: Connect, threads: ThreadPoolExecutor
) -> None:
    watcher, worker = connect(), connect()
    job_id = client.enqueue("a", {"n": 1}).job_id
    worker.execute("begin")
    worker.execute(COMPLETE, [job_id])
    result = threads.submit(client.result, job_id, timeout=PATIENCE)
    until(partial(is_known, watcher, job_id))
    worker.execute("commit")
    assert result.result() == {"n": 1}


def test_a_client_whose_listener_is_lost_looks(
    client: Client, connect: Connect, threads: ThreadPoolExecutor
) -> None:
    watcher = connect()
    job_id = client.enqueue("a", {"n": 1}).job_id
    result = threads.submit(client.result, job_id, timeout=PATIENCE)
    until(partial(is_known, watcher, job_id))
    [pid] = column(watcher, LISTENERS)
    watcher.execute("select pg_terminate_backend(%s)", [pid])
    until(lambda: not column(watcher, LISTENERS))
    watcher.execute(COMPLETE, [job_id])
    assert result.result() == {"n": 1}


def test_a_client_that_cannot_listen_looks(
    database: str, connect: Connect, threads: ThreadPoolExecutor
) -> None:
    with Client(database, listen_database=NOWHERE) as client:
        job_id = client.enqueue("a", {"n": 1}).job_id
        with pytest.raises(TimeoutError):
            client.result(job_id, timeout=0.1)
        result = threads.submit(client.result, job_id, timeout=PATIENCE)
        connect().execute(COMPLETE, [job_id])
        assert result.result() == {"n": 1}


def test_a_client_gives_up_in_time(client: Client) -> None:
    job_id = client.enqueue("a").job_id
    with pytest.raises(TimeoutError):
        client.result(job_id, timeout=0.3)
    with pytest.raises(JobNotFound):
        client.result(uuid4(), timeout=PATIENCE)


def test_looks_become_rarer_and_never_end() -> None:
    pauses = list(islice(_pauses(None, is_told=False), 5000))
    assert (pauses[0], pauses[-1]) == (0.005, 0.25)
    assert list(islice(_pauses(None, is_told=True), 3)) == [0.25] * 3
    assert list(_pauses(0, is_told=False)) == []


# ---- AsyncClient


@pytest.mark.usefixtures("deaf")
async def test_fifty_waits_share_one_connection(database: str, connect: Connect) -> None:
    watcher = connect()
    async with AsyncClient(database, listen_database=database) as client:
        jobs = await client.enqueue_many([{"kind": "a", "payload": {"n": n}} for n in range(50)])
        job_ids = [job.job_id for job in jobs]
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            results = [group.create_task(client.result(job_id)) for job_id in (*job_ids, *job_ids)]
            await until_known(watcher, *job_ids)
            assert len(column(watcher, LISTENERS)) == 1
            for job_id in job_ids:
                watcher.execute(COMPLETE, [job_id])
        assert [result.result() for result in results] == [{"n": n} for n in range(50)] * 2

        async def nobody_waits() -> bool:
            return column(watcher, KNOWN) == [0]

        await until_async(nobody_waits, "for end_wait()")
        assert len(column(watcher, LISTENERS)) == 1, "it stays open"
    until(lambda: not column(watcher, LISTENERS), "for the connection to be closed")


async def test_who_joins_a_wait_late_is_told_of_an_end_that_came_before(
    client: Client, connect: Connect, database: str
) -> None:
    watcher = connect()
    job = client.enqueue("a").job_id
    endings = Endings(database)
    try:
        async with asyncio.timeout(PATIENCE):
            with endings.of(str(job)) as first:
                await until_known(watcher, job)
                watcher.execute(COMPLETE, [job])
                await first(2 * PATIENCE)
                with endings.of(str(job)) as late:
                    await late(2 * PATIENCE)
    finally:
        await endings.close()


@pytest.mark.usefixtures("deaf")
async def test_who_waits_long_is_told_though_others_come_and_go(
    database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq.client.notifications.MOST_STALE", 3)
    watcher = connect()
    async with AsyncClient(database, listen_database=database) as client:
        [long, *others] = [(await client.enqueue("a", {"n": n})).job_id for n in range(20)]
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            result = group.create_task(client.result(long))
            for job_id in others:
                other = group.create_task(client.result(job_id))
                await until_known(watcher, job_id)
                watcher.execute(COMPLETE, [job_id])
                await other
            await until_known(watcher, long)
            assert column(watcher, KNOWN)[0] <= 6, "waits that are over are let go of"
            watcher.execute(COMPLETE, [long])
        assert result.result() == {"n": 0}


async def test_an_async_client_whose_listener_is_lost_looks_and_listens_again(
    database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = connect()
    async with AsyncClient(database, listen_database=database) as client:
        [lost, dead, last] = [(await client.enqueue("a", {"n": n})).job_id for n in range(3)]

        async def is_lost() -> bool:
            return not column(watcher, LISTENERS)

        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            result = group.create_task(client.result(lost))
            await until_known(watcher, lost)
            [pid] = column(watcher, LISTENERS)
            watcher.execute("select pg_terminate_backend(%s)", [pid])
            await until_async(is_lost)
            watcher.execute(COMPLETE, [lost])
            assert await result == {"n": 0}
        watcher.execute(FAIL, [dead])
        with pytest.raises(JobFailed):
            await client.result(dead, timeout=PATIENCE)
        monkeypatch.setattr("jobq.client.client.LONGEST_PAUSE", 10 * PATIENCE)
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            result = group.create_task(client.result(last))
            await until_known(watcher, last)
            watcher.execute(COMPLETE, [last])
        assert result.result() == {"n": 2}


async def test_an_async_client_that_cannot_listen_looks(database: str, connect: Connect) -> None:
    async with AsyncClient(database, listen_database=NOWHERE) as client:
        job_id = (await client.enqueue("a", {"n": 1})).job_id
        with pytest.raises(TimeoutError):
            await client.result(job_id, timeout=0.3)
        result = asyncio.create_task(client.result(job_id, timeout=PATIENCE))
        connect().execute(COMPLETE, [job_id])
        assert await result == {"n": 1}
