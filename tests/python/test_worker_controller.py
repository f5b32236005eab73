"""One controller decides how many jobs to claim, how long to wait, and when to settle."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from psycopg import AsyncConnection
from waiting import until_async

from jobq import AsyncClient
from jobq.registry import Permanent, Registry
from jobq.worker import Worker, tuning
from jobq.worker.connections import Backoff
from jobq.worker.controller import Controller
from jobq.worker.queries import Queries
from jobq.worker.tuning import MAX_BATCH, PREFETCH_BYTES, RETRY_FIRST, RETRY_LAST, SETTLE_DELAY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

EVER = 3600.0


def with_durations(seconds: float, slots: int = 50) -> Controller:
    known = Controller(slots)
    for _ in range(1000):
        known.took(seconds)
    return known


def test_quick_jobs_are_claimed_ahead_and_slow_ones_are_not() -> None:
    assert with_durations(1e-4).prefetch(0.0) == 3 * MAX_BATCH
    assert with_durations(0.005).prefetch(0.0) == pytest.approx(500, abs=1)
    assert with_durations(10.0).prefetch(0.0) == 0
    assert with_durations(1e-4).prefetch(stalled=5.0) == 0, "nothing while every slot is taken"


def test_a_claim_fills_slots_and_prefetch() -> None:
    idle = Controller(50)
    assert (idle.claim(0, 0), idle.claim(20, 0), idle.claim(60, 0)) == (50, 30, 0)
    assert idle.claim(0, 1500) == MAX_BATCH


def test_heavy_payloads_are_claimed_a_few_at_a_time() -> None:
    heavy = Controller(1000)
    heavy.claimed([PREFETCH_BYTES // 4] * 10, 1.0)
    assert heavy.claim(0, 500) == 4
    for now in range(100):
        heavy.claimed([10] * 10, float(now))
    assert heavy.claim(0, 500) == MAX_BATCH


def test_a_claim_without_an_answer_is_smaller_the_next_time() -> None:
    asking = Controller(500)
    sizes = []
    for _ in range(4):
        sizes.append(asking.claim(0, 0))
        asking.not_answered(sizes[-1])
    assert sizes == [500, 62, 7, 1]
    asking.answered(1)
    assert asking.claim(0, 0) == 2, "and doubles with each answer"


def test_ends_wait_for_company_where_there_will_be_some() -> None:
    often, seldom = Controller(50), Controller(50)
    for n in range(200):
        often.claimed([1], n * 0.001)
        seldom.claimed([1], n * 0.1)
    assert often.settle_delay(1, is_waiting=False) == SETTLE_DELAY
    assert often.settle_delay(10, is_waiting=False) == 0.0, "ten are company enough"
    assert seldom.settle_delay(1, is_waiting=False) == 0.0
    assert seldom.settle_delay(1, is_waiting=True) == SETTLE_DELAY


def test_looks_at_work_that_cannot_be_claimed_become_rare() -> None:
    pauses = Backoff(RETRY_LAST, RETRY_FIRST)
    first, *_, last = [pauses.next() for _ in range(10)]
    assert RETRY_FIRST / 2 <= first <= RETRY_FIRST < RETRY_LAST / 2 <= last <= RETRY_LAST
    pauses.tries = 0
    assert pauses.next() <= RETRY_FIRST


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
    monkeypatch.setattr(Controller, "settle_delay", lambda *_, **__: EVER)


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
    assert await has_ended(client, first.job_id), "a worker that stops settles all"


async def test_the_end_of_a_job_goes_with_the_claim_of_a_later_one(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "SETTLE_DELAY", 1.0)  # so that a slow machine is quick enough
    sizes: list[int] = []
    answers: Counter[str] = Counter()
    settle_and_claim = Queries.settle_and_claim

    async def noted(self: Queries, settled: Any, max_jobs: int, max_limited: int) -> Any:
        sizes.append(len(settled))
        claimed = await settle_and_claim(self, settled, max_jobs, max_limited)
        answers.update(claimed[1].values())
        return claimed

    monkeypatch.setattr(Queries, "settle_and_claim", noted)
    async with Worker(database, handlers()):
        for _ in range(400):
            await client.enqueue("noop")
            await asyncio.sleep(0.001)
    # Each outcome is sent once, and again only if the answer was that another session, as that of a
    # heartbeat, holds the job. A worker that stops gives back what it has not begun.
    assert answers.keys() <= {"succeeded", "released", "held"}, answers
    assert answers["succeeded"] + answers["released"] == 400, answers
    assert sum(sizes) == answers.total(), answers
    # Else there are two exchanges for each job: one brings it, and one settles it.
    assert len(sizes) < 600, sizes
