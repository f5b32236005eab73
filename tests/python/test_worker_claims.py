"""How workers claim and settle: each job once, on time, and without haste when idle."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import AsyncConnection
from waiting import until, until_async
from worker_handlers import Gate
from worker_process import working

from jobq import AsyncClient, Client
from jobq.registry import JobContext, Registry
from jobq.worker import Worker, tuning
from jobq.worker.connections import Link
from jobq.worker.queries import HEARTBEAT, MAINTAIN, NEXT_DUE, Queries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from uuid import UUID

    Connection = psycopg.Connection[tuple[Any, ...]]

LOG_TABLE = "create table public.processed_log (job_id uuid, attempt int, worker int)"


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


def noops() -> Registry:
    registry = Registry()

    @registry.handler("noop")
    async def noop() -> None: ...

    return registry


async def all_finished(client: AsyncClient) -> bool:
    return all(
        q.queued + q.running + q.retrying + q.scheduled == 0 for q in await client.queue_stats()
    )


def test_eight_workers_process_200_jobs_exactly_once(
    database: str, connect: Callable[[], Connection], tmp_path: Path
) -> None:
    """Each takes part, however slow the machine: no slot falls free before all of them have."""
    connection = connect()
    connection.execute(LOG_TABLE)

    def count(query: str, more_than: int) -> int:
        row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0]) if row[0] > more_than else 0

    def until_counted(jobs: int, query: str) -> None:
        counted = 0
        while counted < jobs:
            counted = until(partial(count, query, counted), f"for more than {counted}: {query}")

    gate = Gate.within(tmp_path)
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(working(database, tmp_path, "--concurrency", "2", "--no-declare"))
        until_counted(8, "select count(*) from jobq_private.worker")
        with Client(database) as client:
            client.enqueue_many(
                [{"kind": "record_and_wait", "payload": asdict(gate)} for _ in range(200)]
            )
        until_counted(8, "select count(distinct worker) from public.processed_log")
        gate.let_through()
        until_counted(200, "select count(*) from jobq_private.job_archive")
    states = connection.execute(
        "select state, attempts, count(*) from jobq.job group by 1, 2"
    ).fetchall()
    assert states == [("succeeded", 1, 200)], "what is given back at the gate does not count"
    processed = connection.execute(
        "select count(*), count(distinct job_id), count(distinct worker) from public.processed_log"
    ).fetchone()
    assert processed == (200, 200, 8)


@pytest.mark.parametrize("mode", ["coroutine", "thread", "transaction"])
async def test_a_slow_job_does_not_delay_the_settling_of_others(
    database: str, client: AsyncClient, tmp_path: Path, mode: str
) -> None:
    """While it runs others are settled within 50 ms of their end, in a round that is undisturbed.

    Were the slow job to hold them up, then in every round. On a busy machine few are undisturbed,
    so rounds are short, and there is a minute for them.
    """
    gate = Gate.within(tmp_path)
    registry = Registry()
    ended_at: dict[UUID, datetime] = {}

    async def slow() -> None:
        gate.arrive()
        while not gate.is_open:
            await asyncio.sleep(0.005)

    def slow_in_thread() -> None:
        gate.arrive()
        while not gate.is_open:
            time.sleep(0.005)

    async def slow_in_transaction(connection: AsyncConnection[Any]) -> None:
        await connection.execute("select 1")
        await slow()

    modes: dict[str, Callable[..., Any]] = {
        "coroutine": slow,
        "thread": slow_in_thread,
        "transaction": slow_in_transaction,
    }
    registry.handler("slow", transactional=mode == "transaction")(modes[mode])

    @registry.handler("quick")
    async def quick(context: JobContext) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        ended_at[context.job_id] = datetime.now(UTC)

    async def latest_of_a_round() -> float:
        jobs = await client.enqueue_many([{"kind": "quick"}] * 20)
        late = []
        for job in jobs:
            await client.result(job.job_id, timeout=30)
            finished_at = (await client.get(job.job_id)).finished_at
            assert finished_at is not None
            late.append((finished_at - ended_at[job.job_id]).total_seconds())
        return max(late)

    async with Worker(database, registry, concurrency=5):
        slow_job = await client.enqueue("slow")
        await until_async(lambda: asyncio.to_thread(lambda: gate.has_started))
        end = time.monotonic() + 60
        rounds = [await latest_of_a_round()]
        while rounds[-1] >= 0.05 and time.monotonic() < end:
            rounds.append(await latest_of_a_round())
        assert (await client.get(slow_job.job_id)).state == "running"
        gate.let_through()
    assert rounds[-1] < 0.05, rounds


async def test_delayed_jobs_start_when_they_are_due(database: str, client: AsyncClient) -> None:
    """With polling out of reach, the worker must know when the next one is due."""
    async with Worker(database, noops(), poll=3600):
        due = datetime.now(UTC) + timedelta(seconds=1)
        jobs = [
            await client.enqueue("noop", run_at=due + timedelta(milliseconds=137 * n))
            for n in range(5)
        ]
        await until_async(partial(all_finished, client))
    delays = []
    for job in jobs:
        found = await client.get(job.job_id)
        assert found.claimed_at is not None
        delays.append((found.claimed_at - found.run_at).total_seconds())
    assert 0 <= min(delays) < 1, delays


async def test_an_idle_worker_starts_a_new_job_at_once(database: str, client: AsyncClient) -> None:
    """With polling out of reach; a loaded machine may take its time with most of them."""
    delays = []
    async with Worker(database, noops(), poll=3600):
        for _ in range(20):
            # Now the worker sleeps, and said so: somebody holds the lock of waiters.
            await until_async(lambda: a_worker_waits(database))
            job = await client.get((await client.enqueue("noop")).job_id)
            await client.result(job.job_id, timeout=30)
            job = await client.get(job.job_id)
            assert job.claimed_at is not None
            delays.append((job.claimed_at - job.created_at).total_seconds())
    assert min(delays) < 0.05, delays


async def test_a_worker_finds_new_queues_of_its_pattern(database: str, client: AsyncClient) -> None:
    """The first job of a queue by polling, and those after it at once; others by no means."""
    delays = []
    other = await client.enqueue("noop", queue="other")
    async with Worker(database, noops(), ["tenant-*"], poll=0.2) as worker:
        for queue in ("tenant-1", "tenant-2"):
            await until_async(lambda: a_worker_waits(database))
            await client.result((await client.enqueue("noop", queue=queue)).job_id, timeout=30)
        worker._parts.producer._longest_sleep = 3600  # type: ignore[union-attr]
        for _ in range(20):
            await until_async(lambda: a_worker_waits(database))
            job_id = (await client.enqueue("noop", queue="tenant-1")).job_id
            await client.result(job_id, timeout=30)
            job = await client.get(job_id)
            assert job.claimed_at is not None
            delays.append((job.claimed_at - job.created_at).total_seconds())
        assert [w.queues for w in await client.list_workers()] == [["tenant-*"]]
    assert min(delays) < 0.05, delays
    assert (await client.get(other.job_id)).state == "queued"


async def a_worker_waits(database: str) -> bool:
    """Return whether a worker holds a lock of those that wait; maintenance holds another."""
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        cursor = await connection.execute(
            "select exists (select from pg_locks where locktype = 'advisory'"
            " and classid = 1785684593 and mode = 'ShareLock' and database ="
            " (select oid from pg_database where datname = current_database()))"
        )
        row = await cursor.fetchone()
        return bool(row and row[0])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement of a worker since, of all its sessions."""
    made: list[str] = []
    call = Link.call

    async def counted(
        link: Link, statement: Any, parameters: Any = (), **options: Any
    ) -> list[Any]:
        made.append(str(statement))
        return await call(link, statement, parameters, **options)

    monkeypatch.setattr(Link, "call", counted)
    return made


async def has_settled_down(calls: list[str], seconds: float) -> bool:
    """Return whether nothing was called for so long."""
    before = len(calls)
    await asyncio.sleep(seconds)
    return len(calls) == before


async def test_an_idle_worker_sends_two_statements_with_each_sign_of_life(
    database: str, client: AsyncClient, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign of life is sent every 3 s here, and every 45 s otherwise."""
    every = 3.0
    monkeypatch.setattr(tuning, "SIGN_OF_LIFE", every)
    async with Worker(database, noops(), poll=0.1):
        await client.result((await client.enqueue("noop")).job_id)
        await until_async(lambda: a_worker_waits(database))
        await until_async(partial(has_settled_down, calls, 2.0), "for the worker to be idle")
        calls.clear()
        began_at = time.monotonic()
        await until_async(lambda: asyncio.sleep(0, calls.count(HEARTBEAT) >= 3), "for three signs")
        assert time.monotonic() - began_at > 2 * every, "they are no more frequent"
        sent = Counter(call.rpartition("; ")[2] for call in calls)
    assert sent.keys() <= {HEARTBEAT, NEXT_DUE, MAINTAIN}, sent
    assert sent[MAINTAIN] <= 1, "once after the job"
    assert sent[NEXT_DUE] <= sent[HEARTBEAT] + sent[MAINTAIN] + 1, sent


@pytest.mark.prove
async def test_a_sleepy_worker_sends_nothing_while_it_is_idle(
    database: str, client: AsyncClient, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "SIGN_OF_LIFE", 1.0)
    monkeypatch.setattr(tuning, "UNKNOWN_KIND_SECONDS", 1.0)
    registry, asked = noops(), 0

    async def excluded() -> dict[str, tuple[str, str]]:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ValueError("it does not end the worker")
        return {} if asked > 2 else {"other": ("SECRET_MISSING", "no secret")}

    async def deliver() -> None:
        raise AssertionError("no job has this kind")

    registry.otherwise(deliver, beyond=excluded)
    async with Worker(database, registry, poll=0.1, sleepy=True):
        await client.result((await client.enqueue("noop")).job_id)
        await until_async(lambda: a_worker_waits(database))
        await until_async(partial(has_settled_down, calls, 5.0), "for the worker to be idle")
        later = (
            await client.enqueue("noop", run_at=datetime.now(UTC) + timedelta(seconds=14))
        ).job_id
        await until_async(partial(has_settled_down, calls, 2.0), "for it to know when that is due")
        calls.clear()
        before = asked
        await asyncio.sleep(3)  # the length of the measurement, not a wait for something
        assert (calls, asked) == ([], before)
        assert await client.result(later, timeout=30) is None, "it sleeps until a job is due"
        job_id = (await client.enqueue("noop")).job_id
        assert await client.result(job_id, timeout=30) is None, "or until it is woken"


async def test_a_sleepy_worker_learns_of_new_schedules(database: str, client: AsyncClient) -> None:
    registry, has_run = noops(), asyncio.Event()

    @registry.handler("report")
    async def report() -> None:
        has_run.set()

    async with Worker(database, registry, sleepy=True):
        await until_async(lambda: a_worker_waits(database))
        await client.create_schedule("often", "report", every=timedelta(seconds=2))
        await asyncio.wait_for(has_run.wait(), 60)


async def test_a_schedule_that_comes_while_a_sleepy_worker_asks_what_is_due_is_not_missed(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, has_run = noops(), asyncio.Event()

    @registry.handler("report")
    async def report() -> None:
        has_run.set()

    next_due, is_idle = Queries.next_due, False

    async def asked(queries: Queries) -> tuple[float | None, float | None]:
        """The schedule is created after the database has answered, before the worker reads it."""
        nonlocal is_idle
        answer = await next_due(queries)
        if is_idle:
            is_idle = False
            wakeups.maintenance.clear()
            await client.create_schedule("often", "report", every=timedelta(seconds=2))
            await asyncio.wait_for(wakeups.maintenance.wait(), 30)
        return answer

    monkeypatch.setattr(Queries, "next_due", asked)
    async with Worker(database, registry, sleepy=True) as worker:
        wakeups = worker._parts.wakeups  # type: ignore[union-attr]
        await until_async(lambda: a_worker_waits(database))
        await until_async(lambda: asyncio.to_thread(lambda: not wakeups.maintenance.is_set()))
        is_idle = True
        wakeups.maintenance.set()
        await asyncio.wait_for(has_run.wait(), 30)


def gated() -> tuple[Registry, asyncio.Semaphore]:
    """Return handlers, and what lets one job of ``waits`` end for each release."""
    registry, gate = noops(), asyncio.Semaphore(0)

    @registry.handler("waits")
    async def waits() -> None:
        await gate.acquire()

    return registry, gate


async def runs(client: AsyncClient, number: int) -> bool:
    return sum(queue.running for queue in await client.queue_stats()) == number


async def test_what_comes_due_is_found_while_other_jobs_end(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "MAINTAIN_EVERY", 3600.0)
    registry, gate = gated()
    async with Worker(database, registry, poll=3600, concurrency=400):
        await client.enqueue_many([{"kind": "waits"}] * 300)
        await until_async(partial(runs, client, 300), "for the jobs to run")
        await until_async(partial(a_worker_waits, database), "for the worker to sleep")
        # As where ends come all the time: it never rests for long enough to ask what is due.
        monkeypatch.setattr(tuning, "IDLE_AFTER", 3600.0)
        soon = datetime.now(UTC) + timedelta(seconds=0.3)
        due = await client.enqueue("noop", run_at=soon)
        for _ in range(280):
            if (await client.get(due.job_id)).state == "succeeded":
                break
            gate.release()
            await asyncio.sleep(0.05)
        else:
            pytest.fail("the worker does not look while jobs end")
        for _ in range(300):
            gate.release()


async def test_polling_alone_is_enough(database: str, client: AsyncClient) -> None:
    async with Worker(database, noops(), listen=False):
        for _ in range(3):
            job = await client.enqueue("noop")
            assert await client.result(job.job_id, timeout=30) is None
        assert not await a_worker_waits(database)


async def test_queues_are_looked_at_in_their_order(database: str, client: AsyncClient) -> None:
    order: list[str] = []
    registry = Registry()

    @registry.handler("a")
    async def handler(context: JobContext) -> None:
        order.append(context.queue)

    await client.enqueue_many([{"kind": "a", "queue": q} for q in ("low", "high", "other") * 5])
    async with Worker(database, registry, ["high", "low"], concurrency=1):
        await until_async(lambda: ended_are(client, 10))
    assert order == ["high"] * 5 + ["low"] * 5
    assert [job.queue for job in await client.list_jobs(state="queued")] == ["other"] * 5


async def ended_are(client: AsyncClient, number: int) -> bool:
    return len(await client.list_jobs(state="succeeded", max_jobs=1000)) == number


async def test_weights_share_a_worker(database: str, client: AsyncClient) -> None:
    order: list[str] = []
    registry = Registry()

    @registry.handler("a")
    async def handler(context: JobContext) -> None:
        order.append(context.queue)
        await asyncio.sleep(0.06)

    await client.enqueue_many(
        [{"kind": "a", "queue": queue} for queue in ("low", "high") for _ in range(60)]
    )
    async with Worker(database, registry, {"high": 3, "low": 1}, concurrency=1):
        await until_async(lambda: asyncio.to_thread(lambda: len(order) >= 60))
        shares = order[:60].count("high"), order[:60].count("low")
    assert shares[0] > shares[1] > 0, shares


async def test_a_worker_does_not_hoard(database: str, client: AsyncClient, tmp_path: Path) -> None:
    """What it claimed ahead of slow jobs it gives back, for others to run."""
    gate = Gate.within(tmp_path)
    registry = noops()

    @registry.handler("slow")
    async def slow() -> None:
        while not gate.is_open:
            await asyncio.sleep(0.005)

    async with Worker(database, registry, concurrency=2, name="busy"):
        quick = await client.enqueue_many([{"kind": "noop"}] * 2000)
        await client.result(quick[-1].job_id)
        slow_ones = [{"kind": "slow", "priority": 1}] * 2
        jobs = await client.enqueue_many(slow_ones + [{"kind": "noop"}] * 20)

        async def are_claimed() -> bool:
            return all([(await client.get(job.job_id)).worker == "busy" for job in jobs[:2]])

        await until_async(are_claimed, "for the slow jobs to be claimed")
        async with Worker(database, noops(), name="free"):
            for job in jobs[2:]:
                await client.result(job.job_id, timeout=20)
        assert await are_claimed()
        gate.let_through()
    assert all([(await client.get(job.job_id)).attempts == 1 for job in jobs])


async def test_jobs_that_outlive_their_lease_are_kept_by_heartbeats(
    database: str, client: AsyncClient, tmp_path: Path
) -> None:
    gate = Gate.within(tmp_path)
    await client.configure(lease="3 s")
    registry = Registry()

    @registry.handler("a")
    async def handler() -> None:
        while not gate.is_open:
            await asyncio.sleep(0.005)

    async with Worker(database, registry), Worker(database, registry):
        job = await client.enqueue("a")

        async def has_outlived() -> bool:
            found = await client.get(job.job_id)
            return (
                found.claimed_at is not None
                and found.heartbeat_at is not None
                and found.heartbeat_at - found.claimed_at > timedelta(seconds=4)
            )

        await until_async(has_outlived)
        gate.let_through()
        await client.result(job.job_id)
    found = await client.get(job.job_id)
    assert (found.state, found.attempt) == ("succeeded", 1)


def test_heartbeats_do_not_keep_a_job_past_its_deadline(
    database: str, connect: Callable[[], Connection]
) -> None:
    """A worker that beats for ever, though its handler is stuck, loses the job all the same."""
    connection = connect()
    with Client(database) as client:
        client.configure(lease="1 s", timeout="1 s")
        job = client.enqueue("stuck")
        connection.execute("select from jobq.claim('{default}', 'frozen')")

        def is_taken_back() -> bool:
            connection.execute("select jobq.heartbeat('frozen', %s, '{1}')", [[job.job_id]])
            return connection.execute("select from jobq_internal.recover()").rowcount == 1

        until(is_taken_back, "for the deadline")
        found = client.get(job.job_id)
        [attempt] = client.attempts(job.job_id)
    assert (found.state, found.last_error_code) == ("retrying", "LEASE_EXPIRED")
    assert attempt.duration is not None and attempt.duration >= timedelta(seconds=2)


async def test_a_batch_that_the_database_refuses_is_settled_one_by_one(
    database: str, client: AsyncClient
) -> None:
    """A result too large for the database, beside many that are not."""
    registry = Registry()

    @registry.handler("a")
    async def handler(payload: int) -> Any:
        return [1] * (520000 if payload == 7 else 3)

    jobs = await client.enqueue_many([{"kind": "a", "payload": n} for n in range(20)])
    async with Worker(database, registry):
        await until_async(partial(all_finished, client))
    states = [(await client.get(job.job_id)).state for job in jobs]
    assert states == ["dead" if n == 7 else "succeeded" for n in range(20)]


async def test_jobs_enqueued_while_the_worker_falls_asleep_are_not_missed(
    database: str, client: AsyncClient
) -> None:
    """With polling out of reach, only the wake-up protocol can start them."""
    async with Worker(database, noops(), poll=3600):
        for n in range(100):
            job = await client.enqueue("noop")
            await client.result(job.job_id, timeout=20)
            await asyncio.sleep(n / 3000)


@pytest.mark.prove
async def test_heavy_payloads_are_claimed_a_few_at_a_time(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    heavy = {"kind": "noop", "payload": {"text": "x" * 131_072}}
    for _ in range(8):
        await client.enqueue_many([heavy] * 100)
    asked: list[int] = []
    settle_and_claim = Queries.settle_and_claim

    async def noted(self: Queries, settled: Any, max_jobs: int, max_limited: int) -> Any:
        asked.append(max_jobs)
        return await settle_and_claim(self, settled, max_jobs, max_limited)

    monkeypatch.setattr(Queries, "settle_and_claim", noted)
    async with Worker(database, noops(), concurrency=100):
        await until_async(partial(all_finished, client), "for the jobs to end")
    assert max(asked) <= 128


async def test_a_worker_reads_times_whatever_style_the_database_writes_them_in(
    database: str, connect: Callable[[], Connection]
) -> None:
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    for setting in ("datestyle = German", "intervalstyle = iso_8601", "timezone = 'Asia/Tokyo'"):
        connect().execute(f"alter database {name} set {setting}")
    registry = Registry()
    seen: list[JobContext] = []

    @registry.handler("look")
    async def look(context: JobContext) -> None:
        seen.append(context)

    async with AsyncClient(database) as client, Worker(database, registry):
        job_id = (await client.enqueue("look", timeout=timedelta(minutes=2))).job_id
        await client.result(job_id, timeout=30)
        job = await client.get(job_id)
    [context] = seen
    assert (context.created_at, context.run_at) == (job.created_at, job.run_at)
    assert 60 < context.time_left <= 120


async def test_a_process_has_limits_by_queue_and_by_kind(
    database: str, client: AsyncClient
) -> None:
    """No more run at a time, and none is claimed that cannot start."""
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    gate = asyncio.Event()
    registry = Registry()

    async def handler(context: JobContext) -> None:
        names = [context.queue, context.kind]
        running.update(names)
        for name in names:
            most[name] = max(most[name], running[name])
        await gate.wait()
        await asyncio.sleep(0.001)
        running.subtract(names)

    registry.handler("plain")(handler)
    registry.handler("thumbnail", max_in_process=3)(handler)
    jobs = [
        {"kind": kind, "queue": queue}
        for queue in ("default", "mail")
        for kind in ("thumbnail", "plain")
        for _ in range(40)
    ]
    await client.enqueue_many(jobs)
    worker = Worker(
        database, registry, ["mail", "default"], concurrency=20, max_in_process={"mail": 2}
    )
    async with worker:
        await until_async(lambda: is_true(running["default"] == 18), "for all slots to be used")
        claimed = await client.list_jobs(state="running", max_jobs=1000)
        assert (running["mail"], running["thumbnail"]) == (2, 3), running
        assert sum(job.queue == "mail" for job in claimed) == 2
        assert sum(job.kind == "thumbnail" for job in claimed) == 3
        gate.set()
        await until_async(lambda: ended_are(client, len(jobs)))
    assert (most["mail"], most["thumbnail"]) == (2, 3), most


async def is_true(value: bool) -> bool:
    return value
