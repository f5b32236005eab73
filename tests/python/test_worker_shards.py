"""A worker of several databases: its slots are shared fairly, and each database stands alone."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
import pytest
from click.testing import CliRunner
from test_worker_connections import proxied
from waiting import until_async

from jobq import AsyncClient, Registry
from jobq.errors import NotDeployed
from jobq.worker import tuning
from jobq_cli import main
from jobq_sharding.worker import ShardedWorker, SharedSlots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from servers import Cluster


@pytest.fixture
def urls(cluster: Cluster) -> Iterator[list[str]]:
    """Two databases."""
    with cluster.database() as one, cluster.database() as two:
        yield [one, two]


@asynccontextmanager
async def clients(urls: list[str]) -> AsyncIterator[list[AsyncClient]]:
    async with AsyncClient(urls[0]) as one, AsyncClient(urls[1]) as two:
        yield [one, two]


def handlers(ran: list[int], number: int, gate: asyncio.Event | None = None) -> Registry:
    """Handlers that note which database they run for, and wait at a gate."""
    registry = Registry()

    @registry.handler("work")
    async def work(_payload: object) -> None:
        ran.append(number)
        if gate is not None:
            await gate.wait()
            await asyncio.sleep(0.05)  # longer than an exchange takes on a busy machine

    return registry


async def ended(client: AsyncClient) -> int:
    return sum(queue.finished_last_minute for queue in await client.queue_stats())


async def test_each_databases_jobs_run_and_end_there(urls: list[str]) -> None:
    ran: list[int] = []
    registries = {url: handlers(ran, n) for n, url in enumerate(urls)}
    async with ShardedWorker(registries, poll=3600), clients(urls) as (one, two):
        jobs = [(await client.enqueue("work")).job_id for client in (one, two)]
        await one.result(jobs[0], 60)
        await two.result(jobs[1], 60)
        # It sleeps by now or soon, and is woken by either, though it does not poll.
        jobs = [(await client.enqueue("work")).job_id for client in (one, two)]
        await one.result(jobs[0], 60)
        await two.result(jobs[1], 60)
    assert sorted(ran) == [0, 0, 1, 1]


async def test_a_slot_that_falls_free_goes_to_who_has_fewest(urls: list[str]) -> None:
    ran: list[int] = []
    gate = asyncio.Event()
    registries = {url: handlers(ran, n, gate) for n, url in enumerate(urls)}
    worker = ShardedWorker(registries, concurrency=4, poll=0.2)
    async with clients(urls) as (one, two), worker:
        await one.enqueue_many([{"kind": "work"}] * 50)
        await until_async(lambda: running(ran, 4))
        assert ran == [0, 0, 0, 0]  # all slots, while nobody else wants one
        await two.enqueue_many([{"kind": "work"}] * 50)
        await until_async(lambda: wants(worker, 1))
        gate.set()
        await until_async(lambda: running(ran, 100))
        await until_async(lambda: is_ended(one, two))
    first = ran[4:44]
    assert first.count(1) >= 5, f"the second database waits for the first: {ran}"


async def running(ran: list[int], count: int) -> bool:
    return len(ran) >= count


async def wants(worker: ShardedWorker, number: int) -> bool:
    found = worker._workers[number]._parts
    return found is not None and found.producer.wants


async def is_ended(one: AsyncClient, two: AsyncClient) -> bool:
    return await ended(one) == await ended(two) == 50


async def test_a_cancelled_worker_stops_in_each_database(urls: list[str]) -> None:
    ran: list[int] = []
    registries = {url: handlers(ran, n) for n, url in enumerate(urls)}
    worker = ShardedWorker(registries, poll=0.2)
    async with clients(urls) as both:
        task = asyncio.create_task(worker.run(handle_signals=False))
        for client in both:
            await client.result((await client.enqueue("work")).job_id, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for client in both:
            assert [each for each in await client.list_workers() if each.is_live] == []


async def test_the_others_finish_their_jobs_when_one_fails(urls: list[str]) -> None:
    ran: list[int] = []
    gate = asyncio.Event()
    with psycopg.connect(urls[1], autocommit=True) as owner:
        owner.execute("drop schema jobq cascade")
    with proxied(urls[1]) as (proxy, url):
        proxy.go_silent()
        worker = ShardedWorker({urls[0]: handlers(ran, 0, gate), url: Registry()}, poll=0.2)
        async with AsyncClient(urls[0]) as client:
            job = await client.enqueue("work")
            task = asyncio.create_task(worker.run(handle_signals=False))
            await until_async(lambda: running(ran, 1))
            proxy.recover()
            await until_async(lambda: is_stopping(worker))
            gate.set()
            with pytest.raises(NotDeployed):
                await task
            assert (await client.get(job.job_id)).state == "succeeded"


async def is_stopping(worker: ShardedWorker) -> bool:
    return bool(worker._workers[0].health()["is_stopping"])


async def test_one_that_is_away_costs_the_other_nothing(urls: list[str]) -> None:
    ran: list[int] = []
    away = "postgresql://127.0.0.1:1/away"
    registries = {away: handlers(ran, 0), urls[1]: handlers(ran, 1)}
    worker = ShardedWorker(registries, concurrency=2, poll=0.2)
    async with AsyncClient(urls[1]) as client, worker:
        jobs = await client.enqueue_many([{"kind": "work"}] * 20)
        for job in jobs:
            await client.result(job.job_id, 60)
        health = worker.health()
        assert health["ok"] and health["alive"]
    assert ran == [1] * 20


async def test_one_that_stops_answering_costs_the_other_nothing(urls: list[str]) -> None:
    ran: list[int] = []
    with proxied(urls[0]) as (proxy, url):
        registries = {url: handlers(ran, 0), urls[1]: handlers(ran, 1)}
        async with ShardedWorker(registries, concurrency=2, poll=0.2), clients(urls) as (one, two):
            await one.result((await one.enqueue("work")).job_id, 60)
            proxy.go_silent()
            stranded = await one.enqueue_many([{"kind": "work"}] * 20)
            jobs = await two.enqueue_many([{"kind": "work"}] * 20)
            for job in jobs:
                await two.result(job.job_id, 60)
            assert ran == [0] + [1] * 20
            proxy.recover()
            for job in stranded:
                await one.result(job.job_id, 60)


@pytest.mark.parametrize("prompt", [tuning.PATIENCE, 600.0], ids=["slow", "under way"])
async def test_slots_are_kept_for_an_exchange_under_way_until_it_is_slow(
    urls: list[str], monkeypatch: pytest.MonkeyPatch, prompt: float
) -> None:
    monkeypatch.setattr(tuning, "CALL_SECONDS", 600.0)  # no connection is given up meanwhile
    monkeypatch.setattr(tuning, "PATIENCE", prompt)
    ran: list[int] = []
    gate = asyncio.Event()
    registries = {urls[0]: handlers([], 0), urls[1]: handlers(ran, 1, gate)}
    worker = ShardedWorker(registries, concurrency=2, poll=0.2)
    lock = AsyncExitStack()
    async with clients(urls) as (one, two):
        await one.enqueue("work")
        await lock.enter_async_context(held(urls[0]))
        async with worker, lock:
            await until_async(lambda: asks(worker, 0))
            await two.enqueue_many([{"kind": "work"}] * 4)
            slots = 1 if prompt == 600 else 2
            await until_async(lambda: running(ran, slots))
            theirs, mine = (each._parts for each in worker._workers)
            assert theirs is not None and mine is not None
            theirs.producer._is_hungry = False  # it may have been told to look once more
            assert mine.producer.slots.limit(mine.producer) == slots
            gate.set()


@asynccontextmanager
async def held(url: str) -> AsyncIterator[None]:
    """Let nobody claim meanwhile: jobs can be read, but not locked."""
    async with (
        await psycopg.AsyncConnection.connect(url) as connection,
        connection.transaction(force_rollback=True),
    ):
        await connection.execute("lock table jobq_private.job in exclusive mode")
        yield


async def asks(worker: ShardedWorker, number: int) -> bool:
    """Whether an exchange is under way."""
    found = worker._workers[number]._parts
    return found is not None and found.producer._asked > 0


def test_the_command_takes_a_database_again_and_again(urls: list[str]) -> None:
    done = CliRunner().invoke(main, ["worker", "--database", urls[0], "--database", urls[0]])
    assert done.exit_code == 2 and "given twice" in done.output
    for options in (["--listen-database", urls[0]], ["--until-empty"]):
        done = CliRunner().invoke(
            main, ["worker", "--database", urls[0], "--database", urls[1], *options]
        )
        assert done.exit_code == 2 and "only with one database" in done.output
        assert options[0] in done.output


# ---- the rule itself


@dataclass
class Someone:
    """A member with so many slots, who wants more or not."""

    taken: int = 0
    wants: bool = True
    started_at: float = 0.0

    def refill(self) -> None:
        """Take note of nothing."""


@pytest.mark.parametrize(
    ("total", "others", "member", "limit"),
    [
        (10, [], Someone(3), 10),
        (10, [Someone(0, wants=False)], Someone(3), 10),
        (10, [Someone(4, wants=False)], Someone(3), 6),
        (10, [Someone(0)], Someone(3), 5),
        (10, [Someone(5)], Someone(3), 5),
        (10, [Someone(3)], Someone(7), 7),
        (1, [Someone(0, started_at=1.0)], Someone(0, started_at=2.0), 0),
        (1, [Someone(0, started_at=2.0)], Someone(0, started_at=1.0), 1),
    ],
)
def test_how_many_slots_one_may_have(
    total: int, others: list[Someone], member: Someone, limit: int
) -> None:
    slots = SharedSlots(total)
    for each in [member, *others]:
        slots.join(each)
    assert slots.limit(member) == limit
