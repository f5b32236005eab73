"""How long the end of a job waits for others: numbers in, numbers out; and what never waits."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from psycopg import AsyncConnection
from waiting import until_async

from jobq import AsyncClient, Permanent, Registry
from jobq.worker import Worker, company, dispatcher
from jobq.worker.company import ENOUGH, LONGEST, MOST_SKIPS, OFTEN, RIDE, Company
from jobq.worker.exchange import Claimed, Exchange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

EVER = 3600.0


def often(pause: float = OFTEN / 2) -> Company:
    """One to which jobs have come one by one for some time."""
    frequent = Company()
    for number in range(100):
        frequent.came(number * pause)
    return frequent


def test_an_end_waits_for_a_claim_where_jobs_come_often() -> None:
    assert often().patience(1) == LONGEST


@pytest.mark.parametrize("seldom", [Company(), often(OFTEN * 1.5)])
def test_an_end_does_not_wait_where_jobs_come_seldom(seldom: Company) -> None:
    assert seldom.patience(1) == 0


def test_one_long_pause_is_soon_forgotten() -> None:
    frequent = often()
    for number in range(20):
        frequent.came(60 + number * OFTEN / 2)
    assert frequent.patience(1) == LONGEST


def test_many_ends_are_company_enough() -> None:
    assert often().patience(ENOUGH) == 0


def test_waits_in_vain_become_rare() -> None:
    """As where who makes the jobs waits for their ends: nothing comes meanwhile."""
    frequent = often()
    waits = 0
    for _ in range(10_000):
        patience = frequent.patience(1)
        waits += patience > 0
        frequent.settled(1, patience, has_come=False)
    assert waits <= 10_000 / MOST_SKIPS + 10


def test_a_wait_in_vain_is_forgiven_when_jobs_come() -> None:
    frequent = often()
    for _ in range(100):
        frequent.settled(1, frequent.patience(1), has_come=False)
    while not frequent.patience(1):
        frequent.settled(1, 0, has_come=False)
    frequent.settled(1, RIDE, has_come=True)
    frequent.settled(1, LONGEST, has_come=False)
    frequent.settled(1, 0, has_come=False)
    assert frequent.patience(1) == LONGEST, "one is skipped, and no more"


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


def handlers() -> Registry:
    registry = Registry()

    @registry.handler("noop")
    async def noop() -> None: ...

    @registry.handler("refuses")
    async def refuses() -> None:
        raise Permanent("no")

    return registry


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ends wait for company for as long as nothing else has them settled."""
    monkeypatch.setattr(Company, "patience", lambda _self, _ended: EVER)
    monkeypatch.setattr(dispatcher, "LINGER", EVER)
    monkeypatch.setattr(dispatcher, "RIDE", EVER)
    monkeypatch.setattr(Company, "settled", lambda *_, **__: None)


async def has_ended(client: AsyncClient, job_id: UUID) -> bool:
    return (await client.get(job_id)).state in {"succeeded", "dead"}


@pytest.mark.usefixtures("patient")
async def test_what_something_may_wait_for_is_settled_at_once(
    database: str, client: AsyncClient
) -> None:
    await client.put_queue("narrow", max_running=5)
    await client.put_queue("keyed", key_max_running=1)
    async with Worker(database, handlers(), queues=["default", "narrow", "keyed"]):
        first = await client.enqueue("noop")
        awaited = [
            (await client.enqueue("refuses")).job_id,
            (await client.enqueue("noop", queue="narrow")).job_id,
            (await client.enqueue("noop", queue="keyed", concurrency_key="a")).job_id,
        ]
        async with await AsyncConnection.connect(database) as connection:
            own = AsyncClient(connection)
            awaited.append((await own.enqueue("noop")).job_id)
            await own.enqueue("noop", after=awaited[-1:])
        for job_id in awaited:
            await until_async(partial(has_ended, client, job_id), "for what is awaited")
        lone = await client.enqueue("noop")
        await asyncio.sleep(0.5)
        assert not await has_ended(client, lone.job_id), "nothing has this one settled"
    assert await has_ended(client, first.job_id), "a worker that stops settles all"
    assert await has_ended(client, lone.job_id)


async def test_jobs_that_come_one_by_one_are_settled_a_few_at_a_time(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(company, "OFTEN", 1.0)  # so that a slow machine is quick enough
    monkeypatch.setattr(company, "LONGEST", 1.0)
    monkeypatch.setattr(dispatcher, "RIDE", 0.1)
    sizes: list[int] = []
    settle_and_claim = Exchange.settle_and_claim

    async def noted(
        self: Exchange, settled: Any, queues: Any, max_jobs: int, max_limited: int
    ) -> Claimed:
        sizes.append(len(settled))
        return await settle_and_claim(self, settled, queues, max_jobs, max_limited)

    monkeypatch.setattr(Exchange, "settle_and_claim", noted)
    async with Worker(database, handlers()):
        for _ in range(400):
            await client.enqueue("noop")
            await asyncio.sleep(0.001)
    settled = [size for size in sizes if size]
    assert sum(settled) == 400
    assert len(settled) < 200, settled
