"""A worker stops when it is told to, whatever its parts do at that moment."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import time
from typing import TYPE_CHECKING, Any

import pytest
from waiting import until_async

from jobq import AsyncClient
from jobq.registry import JobContext, Registry
from jobq.worker import Worker, tuning
from jobq.worker.queries import Job, Key, Queries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from psycopg import AsyncConnection

# Seconds beyond the grace period that a stop may take on a busy machine.
BOUND = 20.0


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


@pytest.fixture
def timeouts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[asyncio.Timeout]]:
    """Every `asyncio.timeout` that was made since."""
    made: list[asyncio.Timeout] = []
    original = asyncio.timeout

    def recorded(seconds: float | None) -> asyncio.Timeout:
        timeout = original(seconds)
        made.append(timeout)
        return timeout

    monkeypatch.setattr(asyncio, "timeout", recorded)
    yield made
    monkeypatch.undo()


@pytest.mark.parametrize("turns", range(6))
async def test_a_worker_stops_while_its_timeouts_expire(
    database: str, client: AsyncClient, timeouts: list[asyncio.Timeout], turns: int
) -> None:
    """A task whose timeout has just expired looks as if it were being cancelled."""
    loop = asyncio.get_running_loop()
    async with Worker(database, Registry(), grace=0) as worker:
        await until_async(client.list_workers, "for the first heartbeat")
        for _ in range(100):
            await asyncio.sleep(0)
        worker._stop.requested.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        for timeout in timeouts:
            with contextlib.suppress(RuntimeError):  # it is over
                timeout.reschedule(loop.time())
        await asyncio.wait_for(worker.stop(), BOUND)


# ---- at any moment


def handlers() -> Registry:
    """One of each mode that a handler can have but a process, which takes long to start."""
    registry = Registry()

    @registry.handler("noop")
    async def noop() -> None: ...

    @registry.handler("sleep")
    async def sleep() -> None:
        await asyncio.sleep(0.05)

    @registry.handler("thread")
    def thread(context: JobContext) -> None:
        context.log("INFO", "a line")
        time.sleep(0.01)

    @registry.handler("transaction", transactional=True)
    async def transaction(connection: AsyncConnection[Any]) -> None:
        await connection.execute("select pg_sleep(0.01)")

    @registry.handler("batch", batch=5)
    async def batch(payloads: list[Any]) -> None:
        await asyncio.sleep(0.005)

    @registry.handler("stubborn")
    async def stubborn() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.3)
        await asyncio.sleep(0.1)

    return registry


KINDS = ("noop", "sleep", "thread", "transaction", "batch", "stubborn")


@pytest.fixture(autouse=True)
def no_half_open_sessions() -> Iterator[None]:
    """A cancelled connection attempt stays open until it is collected, and the server waits."""
    yield
    gc.collect()


async def stopped(worker: Worker, grace: float) -> float:
    """Stop a worker; return how many seconds that took beyond its grace period."""
    began_at = time.monotonic()
    await asyncio.wait_for(worker.stop(grace), grace + BOUND)
    return time.monotonic() - began_at - grace


async def nothing_runs(client: AsyncClient) -> None:
    assert sum(queue.running for queue in await client.queue_stats()) == 0


async def test_a_worker_stops_at_every_await_point_of_its_start(
    database: str, client: AsyncClient
) -> None:
    await client.enqueue_many([{"kind": kind} for kind in KINDS] * 20)

    async def stop_after(turns: int) -> None:
        worker = Worker(database, handlers())
        worker._task = asyncio.create_task(worker.run(handle_signals=False))
        for _ in range(turns):
            await asyncio.sleep(0)
        assert await stopped(worker, 0.0) < BOUND, turns

    for first in range(0, 160, 16):
        async with asyncio.TaskGroup() as group:
            for turns in range(first, first + 16, 2):
                group.create_task(stop_after(turns))
        await nothing_runs(client)


async def test_a_worker_whose_start_is_cancelled_leaves_nothing_behind(database: str) -> None:
    """As when the application that it belongs to gives up waiting for the database."""
    for database_of_worker in ("host=127.0.0.1 port=1", database):
        worker = Worker(database_of_worker, Registry())
        entering = asyncio.create_task(worker.__aenter__())
        await asyncio.sleep(0.002)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(entering, BOUND)
        assert [t for t in asyncio.all_tasks() if t.get_name().startswith("jobq")] == []


@pytest.mark.long
async def test_a_worker_stops_at_random_moments_under_load(
    database: str, client: AsyncClient
) -> None:
    """Each within its grace period and the bound; eight workers at a time.

    The long form: JOBQ_STOPS=500 make test ARGS="tests/python/test_worker_stop.py -k random -s"
    """
    times = int(os.environ.get("JOBQ_STOPS", "8"))
    took: list[float] = []

    async def stop_somewhen() -> None:
        async with Worker(database, handlers(), concurrency=20) as worker:
            await asyncio.sleep(random.uniform(0, 0.5))
            for _ in range(random.randrange(20)):
                await asyncio.sleep(0)
            took.append(await stopped(worker, random.choice((0.0, 0.1))))

    while len(took) < times:
        await client.enqueue_many([{"kind": kind} for kind in KINDS] * 100)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(8, times - len(took))):
                group.create_task(stop_somewhen())
        await nothing_runs(client)
    print(f"{len(took)} stops, the longest {max(took):.2f} s beyond its grace period")
    assert max(took) < BOUND


async def test_a_stopped_worker_is_not_listed_whenever_a_heartbeat_ends(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may complete a heartbeat that it was asked to cancel."""
    original = Queries.heartbeat
    is_sent = asyncio.Event()

    async def late(self: Queries, jobs: Sequence[Job], stuck: int) -> dict[Key, str]:
        is_sent.set()
        try:
            await asyncio.sleep(60)
        finally:
            outcomes = await original(self, jobs, stuck)
        return outcomes

    monkeypatch.setattr(Queries, "heartbeat", late)
    async with Worker(database, Registry()):
        await is_sent.wait()
    assert await client.list_workers() == []


@pytest.mark.parametrize(
    "part",
    [
        "queries.Queries.retire",
        "queries.Queries.heartbeat",
        "queries.Queries.maintain",
        "queries.Queries.exchange",
        "recorder.Recorder.flush",
        "listener.Listener.close",
        "connections.Connections.close",
        "producer.Producer.run",
        "executor.Executor.finish",
        "pools.Pools.close",
    ],
)
async def test_a_worker_stops_in_time_whatever_a_part_does(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The part hangs and swallows every cancellation until the worker has stopped."""
    for name, seconds in (("STOP_WITHIN", 0.5), ("LAST_CALLS", 0.2), ("UNWIND", 0.1)):
        monkeypatch.setattr(tuning, name, seconds)
    has_stopped = asyncio.Event()

    async def hang(*_: Any, **__: Any) -> None:
        while not has_stopped.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await has_stopped.wait()

    monkeypatch.setattr(f"jobq.worker.{part}", hang)
    await client.enqueue_many([{"kind": "noop"}] * 10)
    worker = Worker(database, handlers())
    worker._task = asyncio.create_task(worker.run(handle_signals=False))
    await worker._is_ready.wait()
    await asyncio.sleep(random.uniform(0, 0.1))
    await asyncio.wait_for(worker.stop(0.0), BOUND)
    has_stopped.set()
    await asyncio.sleep(0.1)  # now the part ends
