"""What becomes of a job, by what its handler does."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from psycopg import AsyncConnection, Connection
from pydantic import BaseModel, PositiveInt
from waiting import until_async
from worker_handlers import Gate

from jobq import AsyncClient
from jobq.errors import DatabaseUnavailable, InvalidArgument, NotDeployed
from jobq.registry import Cancelled, JobContext, Permanent, Registry, Retry, Snooze
from jobq.worker import Worker, tuning
from jobq.worker.connections import Link
from jobq.worker.queries import Queries
from jobq_cli.logs import JsonFormatter, PrettyFormatter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from uuid import UUID

    from jobq.models import Job

LOG_TABLE = "create table public.processed_log (job_id uuid, attempt int, worker int)"


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


async def done(client: AsyncClient, job_id: UUID) -> Job:
    """Wait for a job's end."""

    async def look() -> Job | None:
        job = await client.get(job_id)
        return job if job.is_finished else None

    job = await until_async(look, f"for the end of {job_id}")
    assert job is not None
    return job


VARIABLE: ContextVar[int] = ContextVar("variable", default=0)


async def test_each_coroutine_has_a_task_and_context_variables_of_its_own(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()
    tasks: list[asyncio.Task[Any] | None] = []

    @registry.handler("mark", max_attempts=1)
    async def mark(n: int) -> int:
        tasks.append(asyncio.current_task())
        found = VARIABLE.get()
        VARIABLE.set(n)
        if n % 3 == 0:
            async with asyncio.timeout(60):
                await asyncio.sleep(0)
        elif n % 3 == 1:  # of which no other job hears
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        return found

    jobs = await client.enqueue_many({"kind": "mark", "payload": n} for n in range(1, 31))
    async with Worker(database, registry, concurrency=4):
        ended = [await done(client, job.job_id) for job in jobs]
    assert [(job.state, job.result) for job in ended] == [("succeeded", 0)] * 30
    assert len(set(tasks)) == 30


async def in_state(client: AsyncClient, job_id: UUID, state: str) -> Job:
    """Wait until a job is in a state."""

    async def look() -> Job | None:
        job = await client.get(job_id)
        return job if job.state == state else None

    job = await until_async(look, f"for {job_id} to be {state}")
    assert job is not None
    return job


async def outcome_of(
    client: AsyncClient,
    database: str,
    function: Callable[..., Any],
    payload: Any = None,
    **options: Any,
) -> Job:
    """Run one job of a handler with one attempt, and return how it ended."""
    registry = Registry()
    registry.handler("a", max_attempts=options.pop("max_attempts", 1), **options)(function)
    async with Worker(database, registry):
        job = await client.enqueue("a", payload)
        return await done(client, job.job_id)


# ---- results


@pytest.mark.parametrize("result", [None, 1, "ü", [1, {"a": None}], {"x": 1.5}])
async def test_a_result_is_stored(database: str, client: AsyncClient, result: Any) -> None:
    async def handler() -> Any:
        return result

    job = await outcome_of(client, database, handler)
    assert (job.state, job.result, job.attempts) == ("succeeded", result, 1)


@dataclass
class Reply:
    at: datetime
    n: int


async def test_a_result_may_be_a_dataclass(database: str, client: AsyncClient) -> None:
    async def handler() -> Reply:
        return Reply(datetime(2026, 1, 1, tzinfo=UTC), 2)

    job = await outcome_of(client, database, handler)
    assert job.result == {"at": "2026-01-01T00:00:00Z", "n": 2}


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (object(), "RESULT_INVALID"),
        ({"a": [float("nan")]}, "RESULT_INVALID"),
        ("nul \0", "RESULT_INVALID"),
        ("nul \\\0", "RESULT_INVALID"),
        ("x" * 1048576, "RESULT_REFUSED"),
        # Within the limit as it is written, beyond it as jsonb shows it.
        ([1] * 520000, "RESULT_REFUSED"),
    ],
)
async def test_a_result_that_cannot_be_stored_kills_its_job_alone(
    database: str, client: AsyncClient, result: Any, code: str
) -> None:
    registry = Registry()

    @registry.handler("bad")
    async def bad() -> Any:
        return result

    @registry.handler("good")
    async def good() -> str:
        return "fine"

    jobs = await client.enqueue_many([{"kind": kind} for kind in ("good", "bad", "good")])
    async with Worker(database, registry):
        ended = [await done(client, job.job_id) for job in jobs]
    assert [job.state for job in ended] == ["succeeded", "dead", "succeeded"]
    assert ended[1].last_error_code == code
    assert ended[2].result == "fine"


@pytest.mark.prove
@pytest.mark.long
async def test_a_result_is_not_to_blame_when_the_worker_is_refused(
    database: str,
    client: AsyncClient,
    connect: Callable[[], Connection[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker is let in again just when it could record that the result was refused."""
    [[exchange]] = connect().execute("select 'jobq.exchange'::regproc::oid::regprocedure::text")
    away = exchange.replace("exchange", "exchanged", 1)
    registry = Registry()
    refused = 0
    settle = Queries.exchange

    async def counted(queries: Queries, *arguments: Any) -> Any:
        nonlocal refused
        try:
            return await settle(queries, *arguments)
        except NotDeployed:
            refused += 1
            if refused == 2:
                connect().execute(f"alter function {away} rename to exchange")
            raise

    @registry.handler("good", lease=1)
    async def good(context: JobContext) -> str:
        if context.attempt == 1:
            connect().execute(f"alter function {exchange} rename to exchanged")
        return "fine"

    monkeypatch.setattr(Queries, "exchange", counted)
    enqueued = await client.enqueue("good")
    async with Worker(database, registry):
        job = await done(client, enqueued.job_id)
    assert refused == 2
    assert (job.state, job.result) == ("succeeded", "fine")


@pytest.mark.prove
@pytest.mark.long
async def test_a_settlement_without_an_answer_is_given_up(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds up no other job, and its lease expires although heartbeats could keep it."""
    registry = Registry()
    exchange = Queries.exchange
    sizes: list[int] = []

    async def answered(queries: Queries, settled: Any, *arguments: Any) -> Any:
        if any(job.kind == "huge" and job.attempt == 1 for job in settled):
            sizes.append(len(settled))
            raise DatabaseUnavailable("the database did not answer in time")
        return await exchange(queries, settled, *arguments)

    @registry.handler("huge", lease=1, max_attempts=2, retry_initial_delay=0)
    async def huge(context: JobContext) -> int:
        return context.attempt

    @registry.handler("small")
    async def small() -> None: ...

    monkeypatch.setattr(Queries, "exchange", answered)
    kinds = ["small"] * 10 + ["huge"] + ["small"] * 10
    jobs = await client.enqueue_many({"kind": kind} for kind in kinds)
    async with Worker(database, registry):
        ended = [await done(client, job.job_id) for job in jobs]
    assert [job.state for job in ended] == ["succeeded"] * 21
    assert (ended[10].result, ended[10].attempt) == (2, 2)
    first, *_ = await client.attempts(jobs[10].job_id)
    assert first.error_code == "LEASE_EXPIRED"
    assert sizes[-1] == 1, sizes


async def test_a_plain_function_runs_in_a_thread(database: str, client: AsyncClient) -> None:
    def handler(payload: Any, context: JobContext) -> Any:
        return [threading.current_thread() is threading.main_thread(), payload, context.attempt]

    job = await outcome_of(client, database, handler, {"x": 1})
    assert job.result == [False, {"x": 1}, 1]


def process_id(payload: Any) -> int:
    return os.getpid()


def die(payload: Any) -> None:
    os._exit(3)


class Order(BaseModel):
    quantity: PositiveInt
    unit_price: int


async def test_a_handler_may_be_a_class_and_its_payload_a_model(
    database: str, client: AsyncClient
) -> None:
    """One instance is made; a payload that only the model can refuse never reaches it."""
    registry = Registry()

    @registry.handler("order")
    class Total:
        def __init__(self) -> None:
            self.calls = 0

        async def __call__(self, payload: Order) -> list[int]:
            self.calls += 1
            return [self.calls, payload.quantity * payload.unit_price]

    async with Worker(database, registry):
        results = [
            (await done(client, (await client.enqueue("order", order)).job_id)).result
            for order in (Order(quantity=2, unit_price=5), {"quantity": 3, "unit_price": 7})
        ]
        # Before the schema could refuse it.
        await client.put_kind("order")
        bad = await done(client, (await client.enqueue("order", {"quantity": 0})).job_id)
    assert results == [[1, 10], [2, 21]]
    assert (bad.state, bad.last_error_code) == ("dead", "PAYLOAD_INVALID")


async def test_a_handler_may_run_in_a_process(database: str, client: AsyncClient) -> None:
    job = await outcome_of(client, database, process_id, process=True)
    assert job.state == "succeeded"
    assert job.result != os.getpid()


async def test_a_process_that_dies_fails_its_job_and_is_replaced(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()
    registry.handler("die", process=True, max_attempts=1)(die)
    registry.handler("live", process=True)(process_id)
    async with Worker(database, registry, processes=1):
        dead = await done(client, (await client.enqueue("die")).job_id)
        assert (dead.state, dead.last_error_code) == ("dead", "PROCESS_DIED")
        live = await done(client, (await client.enqueue("live")).job_id)
        assert live.state == "succeeded"


class SurprisingError(Exception):
    """It can be pickled, but not unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def logs_what_cannot_be_read(payload: Any, context: JobContext) -> str:
    with suppress(Exception):
        context.log("ERROR", SurprisingError("a", "b"))  # type: ignore[arg-type]
    return f"of {payload}"


def leaves_a_thread(payload: Any, context: JobContext) -> str:
    if payload == 1:
        is_over = threading.Event()
        late = threading.Thread(target=lambda: [is_over.wait(0.3), context.progress("late")])
        late.start()
    else:
        time.sleep(0.6)
    return f"of {payload}"


@pytest.mark.parametrize("handler", [logs_what_cannot_be_read, leaves_a_thread])
async def test_a_process_answers_for_no_other_job(
    database: str, client: AsyncClient, handler: Callable[..., Any]
) -> None:
    registry = Registry()
    registry.handler("a", process=True, max_attempts=1, timeout=60)(handler)
    async with Worker(database, registry, processes=1):
        for n in (1, 2, 3):
            job = await done(client, (await client.enqueue("a", n)).job_id)
            assert (job.result, job.progress) == (f"of {n}", None), job.last_error


async def test_the_context_says_what_the_job_is(database: str, client: AsyncClient) -> None:
    seen: list[JobContext] = []
    registry = Registry()

    @registry.handler("a", max_attempts=3, timeout=70)
    async def handler(context: JobContext) -> float:
        seen.append(context)
        return context.time_left

    async with Worker(database, registry, ["q"]):
        job = await client.enqueue("a", queue="q", idempotency_key="k", metadata={"m": 1})
        ended = await done(client, job.job_id)
    [context] = seen
    assert context.job_id == job.job_id
    assert (context.kind, context.queue, context.attempt) == ("a", "q", 1)
    assert (context.metadata, context.idempotency_key) == ({"m": 1}, "k")
    assert context.max_attempts == 3
    assert (context.run_at, context.created_at) == (ended.run_at, ended.created_at)
    assert 60 < ended.result <= 70


# ---- failures


async def test_an_exception_is_tried_again_after_its_backoff(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()

    @registry.handler("a", max_attempts=3, retry_strategy="fixed", retry_initial_delay=0.05)
    async def handler(context: JobContext) -> int:
        if context.attempt < 3:
            raise RuntimeError(f"attempt {context.attempt}")
        return context.attempt

    async with Worker(database, registry):
        job = await client.enqueue("a")
        ended = await done(client, job.job_id)
    assert (ended.state, ended.result, ended.attempts) == ("succeeded", 3, 3)
    attempts = await client.attempts(job.job_id)
    assert [a.state for a in attempts] == ["retrying", "retrying", "succeeded"]
    assert [a.error for a in attempts] == [
        "RuntimeError: attempt 1",
        "RuntimeError: attempt 2",
        None,
    ]


async def test_spent_attempts_kill(database: str, client: AsyncClient) -> None:
    async def handler() -> None:
        raise ValueError("never")

    job = await outcome_of(
        client, database, handler, max_attempts=2, retry_strategy="fixed", retry_initial_delay=0.01
    )
    assert (job.state, job.attempts) == ("dead", 2)
    assert (job.last_error_code, job.last_error) == ("ERROR", "ValueError: never")


async def test_permanent_kills_at_once(database: str, client: AsyncClient) -> None:
    async def handler() -> None:
        raise Permanent("NO_SUCH_USER", "user 7 is gone")

    job = await outcome_of(client, database, handler, max_attempts=9)
    assert (job.state, job.attempts) == ("dead", 1)
    assert (job.last_error_code, job.last_error) == ("NO_SUCH_USER", "user 7 is gone")


async def test_retry_says_when(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("a")
    async def handler() -> None:
        raise Retry("busy", in_=timedelta(hours=1), code="BUSY")

    async with Worker(database, registry):
        job = await client.enqueue("a")
        waiting = await in_state(client, job.job_id, "retrying")
    assert (waiting.last_error_code, waiting.last_error) == ("BUSY", "busy")
    assert timedelta(minutes=59) < waiting.run_at - datetime.now(UTC) < timedelta(minutes=61)


@pytest.mark.parametrize(
    ("details", "kept"),
    [({"status": 503}, {"status": 503}), ({"bad": object()}, None), ({"bad": "\0"}, None)],
)
async def test_an_outcome_may_say_more(
    database: str, client: AsyncClient, details: dict[str, Any], kept: Any
) -> None:
    """What cannot be stored is left out, and the job settled all the same."""

    async def handler() -> None:
        raise Permanent("NO", "no", details=details)

    job = await outcome_of(client, database, handler)
    [attempt] = await client.attempts(job.job_id)
    assert (attempt.error_code, attempt.error_details) == ("NO", kept)


async def test_snooze_does_not_count(database: str, client: AsyncClient) -> None:
    registry = Registry()
    until = datetime.now(UTC) + timedelta(milliseconds=200)

    @registry.handler("a", max_attempts=1)
    async def handler(context: JobContext) -> int:
        if context.attempt == 1:
            raise Snooze(until)
        return context.attempt

    async with Worker(database, registry):
        job = await client.enqueue("a")
        ended = await done(client, job.job_id)
    assert (ended.state, ended.result, ended.attempts) == ("succeeded", 2, 1)
    assert ended.run_at == until


@pytest.mark.parametrize("keys", [{}, {"concurrency_key": "k"}])
async def test_a_job_of_an_unknown_kind_waits_for_a_worker_that_knows_it(
    database: str, client: AsyncClient, keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "SIGN_OF_LIFE", 600)
    newer = Registry()

    @newer.handler("new")
    async def new() -> str:
        return "done"

    async def reasons() -> list[str]:
        return [row.reason for row in await client.explain(job.job_id)]

    async with Worker(database, Registry(), name="older") as older:
        job = await client.enqueue("new", max_attempts=1, **keys)
        while await reasons() != ["unknown_kind", "waiting"]:
            await asyncio.sleep(0.02)
        while older.health()["lacks"] != {"UNKNOWN_KIND": "new: no handler of this kind"}:
            await asyncio.sleep(0.02)
        waiting = await client.get(job.job_id)
        assert (waiting.state, waiting.attempts) == ("queued", 0)
        async with Worker(database, newer, name="newer"):
            ended = await done(client, job.job_id)
    assert (ended.state, ended.result, ended.worker) == ("succeeded", "done", "newer")


async def test_otherwise_takes_every_other_kind(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("known")
    async def known() -> str:
        return "known"

    async def other(payload: Any, context: JobContext) -> list[Any]:
        return [context.kind, payload]

    registry.otherwise(other)
    async with Worker(database, registry):
        jobs = await client.enqueue_many([{"kind": "known"}, {"kind": "x", "payload": 1}])
        assert [(await done(client, job.job_id)).result for job in jobs] == ["known", ["x", 1]]


async def test_a_payload_that_does_not_fit_is_dead(database: str, client: AsyncClient) -> None:
    async def handler(payload: Gate) -> None:
        raise AssertionError("it was called")

    registry = Registry()
    registry.handler("a")(handler)
    job = await client.enqueue("a", {"started": 1})
    async with Worker(database, registry):
        ended = await done(client, job.job_id)
    assert (ended.state, ended.last_error_code) == ("dead", "PAYLOAD_INVALID")
    assert ended.last_error is not None and "started" in ended.last_error


async def test_errors_are_cut_and_redacted(database: str, client: AsyncClient) -> None:
    async def handler() -> None:
        raise ValueError(
            "cannot reach https://user:hunter2@example.org with Authorization: Bearer abcdef123456 "
            "and password=hunter2; half \ud800 nul \0 " + "x" * 1000
        )

    job = await outcome_of(client, database, handler)
    assert job.last_error is not None
    assert len(job.last_error) == 512
    assert "hunter2" not in job.last_error
    assert "abcdef" not in job.last_error
    assert "https://***@example.org" in job.last_error


async def test_on_dead_is_called_when_a_job_dies_and_not_before(
    database: str, client: AsyncClient
) -> None:
    calls: list[tuple[str, str, str]] = []
    registry = Registry()

    def on_dead(context: JobContext, code: str, error: str) -> None:
        calls.append((str(context.job_id), code, error))

    @registry.handler(
        "a", max_attempts=2, retry_strategy="fixed", retry_initial_delay=0.01, on_dead=on_dead
    )
    async def handler(context: JobContext) -> None:
        assert calls == []
        raise ValueError(f"attempt {context.attempt}")

    async with Worker(database, registry):
        job = await done(client, (await client.enqueue("a")).job_id)
    assert calls == [(str(job.job_id), "ERROR", "ValueError: attempt 2")]


# ---- timeouts


async def test_a_coroutine_is_stopped_at_its_timeout(database: str, client: AsyncClient) -> None:
    stopped: list[str] = []

    async def handler() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append("stopped")
            raise

    job = await outcome_of(client, database, handler, timeout=0.1)
    assert (job.state, job.last_error_code) == ("dead", "TIMEOUT")
    assert stopped == ["stopped"]


async def test_a_jobs_own_timeout_goes_before_its_kinds(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("a", timeout=3600, max_attempts=1)
    async def handler() -> None:
        await asyncio.Event().wait()

    async with Worker(database, registry):
        job = await client.enqueue("a", timeout=timedelta(milliseconds=100))
        ended = await done(client, job.job_id)
    assert (ended.state, ended.last_error_code) == ("dead", "TIMEOUT")
    assert ended.last_error == "the attempt took longer than 0.1 s"


async def test_each_of_many_jobs_is_stopped_at_its_own_timeout(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()
    started = asyncio.Event()

    @registry.handler("a", max_attempts=1)
    async def handler() -> None:
        started.set()
        await asyncio.Event().wait()

    async with Worker(database, registry, poll=3600, grace=0):
        patient = await client.enqueue("a", timeout=timedelta(hours=1))
        await started.wait()
        jobs = await client.enqueue_many(
            {"kind": "a", "timeout": f"{seconds} s"} for seconds in (0.3, 0.1, 0.2, 0.1)
        )
        ended = [await done(client, job.job_id) for job in jobs]
        assert {(job.state, job.last_error_code) for job in ended} == {("dead", "TIMEOUT")}
        assert (await client.get(patient.job_id)).state == "running"


async def test_a_timeout_is_transient(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("a", timeout=0.1, retry_strategy="fixed", retry_initial_delay=0.01)
    async def handler(context: JobContext) -> int:
        if context.attempt == 1:
            await asyncio.Event().wait()
        return context.attempt

    async with Worker(database, registry):
        ended = await done(client, (await client.enqueue("a")).job_id)
    assert (ended.state, ended.result) == ("succeeded", 2)


async def test_a_thread_that_times_out_is_told_and_keeps_its_slot(
    database: str, client: AsyncClient, tmp_path: Path
) -> None:
    gate = Gate.within(tmp_path)
    told: list[bool] = []
    registry = Registry()

    @registry.handler("a", timeout=0.1, max_attempts=1)
    def handler(context: JobContext) -> str:
        gate.arrive()
        while not gate.is_open:
            time.sleep(0.005)
        told.append(context.cancelled)
        return "too late"

    registry.handler("b")(lambda: None)
    # With polling out of reach, the worker itself must see that the slot is free at last.
    async with Worker(database, registry, concurrency=1, poll=3600):
        job = await done(client, (await client.enqueue("a")).job_id)
        assert (job.state, job.last_error_code) == ("dead", "TIMEOUT")
        other = await client.enqueue("b")
        assert (await client.get(other.job_id)).state == "queued"
        gate.let_through()
        assert (await done(client, other.job_id)).state == "succeeded"
    assert told == [True]
    assert (await client.get(job.job_id)).result is None


# ---- cancelling


async def test_a_running_job_stops_when_it_is_asked_to(
    database: str, client: AsyncClient, tmp_path: Path
) -> None:
    """The lease is so long that no heartbeat is due: the notification tells the worker."""
    gate = Gate.within(tmp_path)
    registry = Registry()

    @registry.handler("a", lease=3600)
    async def handler(context: JobContext) -> None:
        gate.arrive()
        while True:
            context.check_cancelled()
            await asyncio.sleep(0.005)

    async with Worker(database, registry):
        job = await client.enqueue("a")
        await in_state(client, job.job_id, "running")
        assert await client.cancel(job.job_id, "enough") == "cancel_requested"
        ended = await done(client, job.job_id)
    assert (ended.state, ended.cancel_reason) == ("cancelled", "enough")


async def test_a_handler_that_finishes_all_the_same_has_succeeded(
    database: str, client: AsyncClient, tmp_path: Path
) -> None:
    gate = Gate.within(tmp_path)
    registry = Registry()

    @registry.handler("a")
    def handler(context: JobContext) -> str:
        gate.arrive()
        while not context.cancelled:
            time.sleep(0.005)
        return "done"

    async with Worker(database, registry):
        job = await client.enqueue("a")
        await in_state(client, job.job_id, "running")
        await client.cancel(job.job_id)
        ended = await done(client, job.job_id)
    assert (ended.state, ended.result) == ("succeeded", "done")


async def test_a_job_that_fails_after_the_request_is_cancelled(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()

    @registry.handler("a")
    async def handler(context: JobContext) -> None:
        while not context.cancelled:
            await asyncio.sleep(0.005)
        raise RuntimeError("torn")

    async with Worker(database, registry):
        job = await client.enqueue("a")
        await in_state(client, job.job_id, "running")
        await client.cancel(job.job_id)
        assert (await done(client, job.job_id)).state == "cancelled"


async def test_a_handler_cannot_cancel_what_nobody_asked_to(
    database: str, client: AsyncClient
) -> None:
    async def handler() -> None:
        raise Cancelled

    job = await outcome_of(client, database, handler, max_attempts=5)
    assert (job.state, job.last_error_code) == ("dead", "CANCELLED")


async def test_a_waiting_job_in_the_workers_hands_is_not_started(
    database: str, client: AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was claimed ahead and then cancelled never runs."""
    # So that it is not given back before a slow machine comes to cancelling it.
    monkeypatch.setattr(tuning, "PATIENCE", 3600.0)
    await client.configure(lease="1 h")
    gate, started = Gate.within(tmp_path), []
    registry = Registry()

    @registry.handler("quick")
    async def quick() -> None: ...

    @registry.handler("first")
    async def first() -> None:
        while not gate.is_open:
            await asyncio.sleep(0.005)

    @registry.handler("second")
    async def second() -> None:
        started.append(1)

    async with Worker(database, registry, concurrency=1):
        # Quick jobs teach the worker to claim ahead.
        quicks = await client.enqueue_many([{"kind": "quick"}] * 1000)
        await done(client, quicks[-1].job_id)
        jobs = await client.enqueue_many([{"kind": "first", "priority": 1}, {"kind": "second"}])
        await in_state(client, jobs[1].job_id, "running")
        assert await client.cancel(jobs[1].job_id) == "cancel_requested"
        assert (await done(client, jobs[1].job_id)).state == "cancelled"
        assert (await client.get(jobs[0].job_id)).state == "running"
        gate.let_through()
    assert started == []


# ---- progress and log


async def test_progress_and_log_are_stored_while_the_job_runs(
    database: str, client: AsyncClient, tmp_path: Path
) -> None:
    gate = Gate.within(tmp_path)
    registry = Registry()

    @registry.handler("a")
    async def handler(context: JobContext) -> None:
        await context.progress({"done": 1})
        await context.log("INFO", "first")
        gate.arrive()
        while not gate.is_open:
            await asyncio.sleep(0.005)
        context.progress({"done": 2})
        context.log("WARN", "second\0")

    async with Worker(database, registry):
        job = await client.enqueue("a")
        await until_async(lambda: asyncio.to_thread(lambda: gate.has_started))
        assert (await client.get(job.job_id)).progress == {"done": 1}
        assert [line.message for line in await client.logs(job.job_id)] == ["first"]
        gate.let_through()
        ended = await done(client, job.job_id)
    assert ended.progress == {"done": 2}
    lines = [(line.level, line.message) for line in await client.logs(job.job_id)]
    assert lines == [("INFO", "first"), ("WARN", "second\ufffd")]


async def test_a_thread_logs_and_reports_too(database: str, client: AsyncClient) -> None:
    def handler(context: JobContext) -> None:
        for n in range(100):
            context.progress(n)
            context.log("DEBUG", str(n))

    job = await outcome_of(client, database, handler)
    assert job.progress == 99
    lines = [line.message for line in await client.logs(job.job_id)]
    assert lines == [str(n) for n in range(100)]


async def test_a_loop_of_a_plain_function_is_refused(database: str, client: AsyncClient) -> None:
    async def inner(context: JobContext) -> None:
        await context.progress(1)

    def handler(context: JobContext) -> None:
        asyncio.run(inner(context))

    job = await outcome_of(client, database, handler)
    assert job.state == "dead" and job.last_error is not None
    assert "a plain function does not await progress()" in job.last_error


async def test_a_locked_job_locks_no_other_one(database: str, client: AsyncClient) -> None:
    """Records that are written together do not wait for one another with locks: no deadlocks."""
    registry = Registry()
    contexts: list[JobContext] = []
    is_over = asyncio.Event()

    @registry.handler("a")
    async def handler(context: JobContext) -> None:
        contexts.append(context)
        await is_over.wait()

    async with Worker(database, registry), await AsyncConnection.connect(database) as other:
        await client.enqueue_many([{"kind": "a"}] * 2)
        await until_async(lambda: asyncio.sleep(0, len(contexts) == 2))
        first, second = contexts
        lock = "select from jobq_private.job where job_id = %s for update"
        await other.execute(lock, (second.job_id,))
        first.progress(1)
        second.progress(2)

        async def is_written() -> bool:
            return bool((await client.get(first.job_id)).progress == 1)

        await until_async(is_written)
        assert (await client.get(second.job_id)).progress is None
        await other.rollback()
        is_over.set()
        assert (await done(client, second.job_id)).progress == 2


async def test_what_cannot_be_noted_is_refused_at_once(database: str, client: AsyncClient) -> None:
    async def handler(context: JobContext) -> str:
        with pytest.raises(ValueError, match="level"):
            context.log("NOTICE", "x")
        with pytest.raises(InvalidArgument):
            context.progress("x" * 65536)
        with pytest.raises(InvalidArgument):
            context.progress(object())
        return "all refused"

    job = await outcome_of(client, database, handler)
    assert job.result == "all refused"


async def test_an_escape_that_is_text_is_no_nul(database: str, client: AsyncClient) -> None:
    text = r"\u0000 and \\u0000"

    async def handler(context: JobContext) -> Any:
        await context.progress(text)
        return await context.step("said", lambda: text)

    job = await outcome_of(client, database, handler)
    assert (job.result, job.progress) == (text, text), job.last_error


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_a_line_of_a_batch_handler_names_no_single_job(
    database: str, client: AsyncClient, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    lines: list[dict[str, Any]] = []

    def in_thread(payloads: list[Any]) -> None:
        record = logging.makeLogRecord({"msg": "here"})
        lines.append(json.loads(JsonFormatter().format(record)))

    async def in_coroutine(payloads: list[Any]) -> None:
        in_thread(payloads)

    registry = Registry()
    registry.handler("a", batch=2, batch_wait=1)(in_thread if mode == "thread" else in_coroutine)
    jobs = await client.enqueue_many([{"kind": "a"}] * 2)
    async with Worker(database, registry, name="w"):
        for job in jobs:
            await done(client, job.job_id)
    assert [{name: line.get(name) for name in ("kind", "worker", "job_id")} for line in lines] == [
        {"kind": "a", "worker": "w", "job_id": None}
    ]


# ---- transactions


async def test_rows_and_completion_commit_together(database: str, client: AsyncClient) -> None:
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute(LOG_TABLE)
        # A partition that is made later would take the row in by another transaction.
        await connection.execute("select jobq.maintain()")

        async def handler(context: JobContext, connection: AsyncConnection[Any]) -> str:
            await connection.execute(
                "insert into public.processed_log values (%s, 1, 1)", [context.job_id]
            )
            return "ok"

        job = await outcome_of(client, database, handler, transactional=True)
        assert (job.state, job.result) == ("succeeded", "ok")
        cursor = await connection.execute(
            "select a.xmin = p.xmin from jobq_private.job_archive as a, public.processed_log as p"
        )
        assert await cursor.fetchall() == [(True,)], "one transaction wrote both"


async def test_a_failure_takes_the_rows_back(database: str, client: AsyncClient) -> None:
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute(LOG_TABLE)

        def handler(context: JobContext, connection: Connection[Any]) -> None:
            connection.execute(
                "insert into public.processed_log values (%s, 1, 1)", [context.job_id]
            )
            raise Permanent("NO", "not today")

        job = await outcome_of(client, database, handler, transactional=True)
        assert (job.state, job.last_error_code) == ("dead", "NO")
        cursor = await connection.execute("select * from public.processed_log")
        assert await cursor.fetchall() == []


async def test_a_plain_function_may_be_transactional(database: str, client: AsyncClient) -> None:
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute(LOG_TABLE)

        def handler(
            payload: Any, connection: Connection[Any], context: JobContext
        ) -> dict[str, Any]:
            connection.execute(
                "insert into public.processed_log values (%s, 1, 1)", [context.job_id]
            )
            return {"payload": payload}

        job = await outcome_of(client, database, handler, [7], transactional=True)
        assert job.result == {"payload": [7]}
        cursor = await connection.execute("select job_id from public.processed_log")
        assert await cursor.fetchall() == [(job.job_id,)]


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_the_last_records_of_a_transactional_handler_are_kept(
    database: str, client: AsyncClient, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written before the transaction completes the job; afterwards they are refused."""
    registry, given_up = Registry(), 0
    cut = Link._cut

    def counted(link: Link, began_at: float) -> None:
        nonlocal given_up
        given_up += 1
        cut(link, began_at)

    monkeypatch.setattr(Link, "_cut", counted)

    def in_thread(context: JobContext, connection: Connection[Any]) -> None:
        context.step("one", lambda: 1)
        for n in range(10):
            context.progress(n)

    async def in_coroutine(context: JobContext, connection: AsyncConnection[Any]) -> None:
        await context.step("one", lambda: 1)
        for n in range(10):
            context.progress(n)

    handler: Any = in_thread if mode == "thread" else in_coroutine
    registry.handler("a", transactional=True)(handler)

    @registry.handler("fails", transactional=True, max_attempts=1)
    async def fails(context: JobContext, connection: AsyncConnection[Any]) -> None:
        context.progress("first")
        await context.step("one", lambda: 1)
        context.log("INFO", "it fails")
        raise RuntimeError

    async with Worker(database, registry):
        jobs = await client.enqueue_many([{"kind": "a"}] * 50 + [{"kind": "fails"}])
        *ended, failed = [await done(client, job.job_id) for job in jobs]
    assert [job.progress for job in ended] == [9] * 50
    assert (failed.state, failed.progress) == ("dead", "first")
    assert [line.message for line in await client.logs(failed.job_id)] == ["it fails"]
    assert given_up == 0, "no call waits for the lock of its own job"


async def test_a_transactional_handler_locks_limits_only_at_its_end(
    database: str, client: AsyncClient
) -> None:
    async def handler(context: JobContext, connection: AsyncConnection[Any]) -> list[Any]:
        await context.step("one", lambda: 1)
        context.spend(7)
        await context.step("two", lambda: 2)
        async with await AsyncConnection.connect(database) as other:
            query = "select spent from jobq_private.limit_state for update nowait"
            return [float(spent) for (spent,) in await (await other.execute(query)).fetchall()]

    await client.put_queue("default")
    await client.put_budget("queue", "default", 100, "day")
    job = await outcome_of(client, database, handler, transactional=True)
    assert job.last_error is None and job.result == [1.0]
    assert [budget.spent for budget in await client.list_budgets()] == [7]


async def test_a_transactional_handler_that_sleeps_has_recorded_its_progress(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()

    @registry.handler("a", transactional=True)
    async def handler(context: JobContext, connection: AsyncConnection[Any]) -> None:
        await context.step("one", lambda: 1)
        context.progress("half")
        await context.sleep(timedelta(hours=1))

    async with Worker(database, registry):
        job_id = (await client.enqueue("a")).job_id

        async def is_recorded() -> bool:
            job = await client.get(job_id)
            return job.state == "queued" and job.progress == "half"

        await until_async(is_recorded)


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_a_lost_lease_takes_the_rows_back(
    database: str, client: AsyncClient, tmp_path: Path, mode: str
) -> None:
    """Somebody else has the job by the time the handler is done: its rows must not stay."""
    gate = Gate.within(tmp_path)
    registry = Registry()
    insert = "insert into public.processed_log values (%s, %s, 1)"

    async def handler(context: JobContext, connection: AsyncConnection[Any]) -> None:
        await connection.execute(insert, [context.job_id, context.attempt])
        gate.arrive()
        while not gate.is_open:
            await asyncio.sleep(0.005)

    def handler_in_thread(context: JobContext, connection: Connection[Any]) -> None:
        connection.execute(insert, [context.job_id, context.attempt])
        gate.arrive()
        while not gate.is_open:
            time.sleep(0.005)

    chosen = handler if mode == "coroutine" else handler_in_thread
    registry.handler("a", transactional=True)(chosen)
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute(LOG_TABLE)
        async with Worker(database, registry):
            job = await client.enqueue("a")
            await until_async(lambda: asyncio.to_thread(lambda: gate.has_started))
            await connection.execute("select jobq.release(%s, 1, now() + '1 h')", [job.job_id])
            gate.let_through()
        cursor = await connection.execute("select * from public.processed_log")
        assert await cursor.fetchall() == []
    found = await client.get(job.job_id)
    assert (found.state, found.attempts) == ("queued", 0)


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_a_heartbeat_takes_no_job_that_has_just_committed_for_lost(
    database: str, client: AsyncClient, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    """Between the commit and its answer the job has gone; each request to cancel is a beat."""
    registry = Registry()

    async def handler(connection: AsyncConnection[Any]) -> None:
        await connection.execute("select")

    def handler_in_thread(connection: Connection[Any]) -> None:
        connection.execute("select")

    chosen = handler if mode == "coroutine" else handler_in_thread
    registry.handler("a", transactional=True)(chosen)
    caplog.set_level("INFO", "jobq.worker")
    beat = "select jobq_private.notify('jobq_cancel', 'default')"
    left = "select from jobq.job where state <> 'succeeded' limit 1"
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute("select jobq.enqueue('a') from generate_series(1, 200)")
        async with Worker(database, registry, concurrency=8):
            while (await connection.execute(left)).rowcount:
                await connection.execute(beat)
                await asyncio.sleep(0.005)
    ends = [record.message for record in caplog.records if record.message.startswith("job ")]
    assert ends == ["job succeeded"] * 200


async def test_an_open_transaction_holds_up_its_job_alone(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()
    gates = {"succeeds": asyncio.Event(), "fails": asyncio.Event()}

    @registry.handler("gated", max_attempts=1)
    async def gated(payload: str) -> None:
        await gates[payload].wait()
        if payload == "fails":
            raise Permanent("NO", "no")

    @registry.handler("other")
    async def other() -> None:
        pass

    async with Worker(database, registry), await AsyncConnection.connect(database) as operator:
        held = [await client.enqueue("gated", payload) for payload in gates]
        for job in held:
            await in_state(client, job.job_id, "running")
            await operator.execute("select jobq.cancel(%s)", [job.job_id])
        for gate in gates.values():
            gate.set()
        for _ in range(3):
            late = await client.enqueue("other")
            assert (await done(client, late.job_id)).state == "succeeded"
        assert {(await client.get(job.job_id)).state for job in held} == {"running"}
        await operator.commit()
        ended = [await done(client, job.job_id) for job in held]
    assert [job.state for job in ended] == ["succeeded", "cancelled"]
    assert [job.attempts for job in ended] == [1, 1]


# ---- what is kept of a failure


def fails_twice_over() -> None:
    try:
        dict[str, int]()["missing"]
    except KeyError as error:
        raise ValueError("no order; password=hunter2") from error


async def fails_in_coroutine() -> None:
    fails_twice_over()


@pytest.mark.parametrize("mode", ["coroutine", "thread", "process"])
async def test_a_failure_keeps_its_traceback_with_its_chain(
    database: str, client: AsyncClient, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    registry = Registry()
    function = fails_in_coroutine if mode == "coroutine" else fails_twice_over
    registry.handler("bad", max_attempts=1, process=mode == "process")(function)
    async with Worker(database, registry):
        job_id = (await client.enqueue("bad")).job_id
        await done(client, job_id)
    [attempt] = await client.attempts(job_id)
    assert attempt.error_details is not None
    kept = attempt.error_details["traceback"]
    [record] = [r for r in caplog.records if r.getMessage() == "job dead"]
    for text in (kept, JsonFormatter().format(record), PrettyFormatter().format(record)):
        assert "in fails_twice_over" in text
        assert "KeyError: 'missing'" in text and "direct cause" in text
        assert "hunter2" not in text
    assert "jobq/worker" not in kept, "it begins where the handler does"
    assert len(kept) <= 4096


async def test_a_result_may_be_as_large_as_the_database_allows(
    database: str, client: AsyncClient, connect: Callable[[], Connection[Any]]
) -> None:
    """No part of the worker has a limit of its own."""
    registry = Registry()
    registry.handler("large", max_attempts=1)(lambda: "x" * 1_500_000)

    @registry.handler("large_in_transaction", transactional=True, max_attempts=1)
    async def large_in_transaction(connection: AsyncConnection[Any]) -> str:
        return "x" * 1_500_000

    @registry.handler("large_step", max_attempts=1)
    async def large_step(context: JobContext) -> int:
        return len(await context.step("make", lambda: "x" * 1_500_000))

    async with Worker(database, registry):
        for kind in ("large", "large_in_transaction", "large_step"):
            ended = await done(client, (await client.enqueue(kind)).job_id)
            codes = {"RESULT_REFUSED", "STEP_INVALID"}
            assert ended.state == "dead" and ended.last_error_code in codes
        await client.configure(max_payload_bytes=10 * 1024 * 1024)
        for kind in ("large", "large_in_transaction", "large_step"):
            ended = await done(client, (await client.enqueue(kind)).job_id)
            assert ended.state == "succeeded", (kind, ended.last_error)


async def test_a_worker_that_polls_learns_soon_that_a_job_is_to_be_cancelled(
    database: str, client: AsyncClient, tmp_path: Path
) -> None:
    """Its lease is of an hour, so that heartbeats alone would take 20 minutes."""
    gate = Gate.within(tmp_path)
    registry = Registry()

    @registry.handler("polite", lease=3600)
    async def polite(context: JobContext) -> None:
        gate.arrive()
        while not gate.is_open:
            context.check_cancelled()
            await asyncio.sleep(0.005)

    async with Worker(database, registry, listen=False):
        job_id = (await client.enqueue("polite")).job_id
        await until_async(lambda: asyncio.to_thread(lambda: gate.has_started))
        await client.cancel(job_id)
        assert (await done(client, job_id)).state == "cancelled"
        gate.let_through()


# ---- which exceptions are retried


class BusyError(Exception):
    """Of a provider."""


@pytest.mark.parametrize(
    ("options", "error", "states"),
    [
        ({"retry_on": BusyError}, BusyError(), ["retrying", "dead"]),
        ({"retry_on": BusyError}, KeyError("other"), ["dead"]),
        ({"retry_on": (BusyError, LookupError)}, KeyError("a subclass"), ["retrying", "dead"]),
        ({"discard_on": [LookupError]}, KeyError("a subclass"), ["dead"]),
        ({"discard_on": [LookupError]}, BusyError(), ["retrying", "dead"]),
        ({"retry_on": LookupError, "discard_on": KeyError}, KeyError(), ["dead"]),
        ({"retry_on": LookupError}, Retry(in_=0.01), ["retrying", "dead"]),
        ({"discard_on": Exception}, Retry(in_=0.01), ["retrying", "dead"]),
    ],
)
async def test_a_handler_declares_which_exceptions_are_retried(
    database: str, client: AsyncClient, options: Any, error: Exception, states: list[str]
) -> None:
    registry = Registry()

    async def handler() -> None:
        raise error

    register: Any = registry.handler("a", max_attempts=2, retry_delay=lambda *_: 0.01, **options)
    register(handler)
    async with Worker(database, registry):
        job = await client.enqueue("a")
        assert (await done(client, job.job_id)).state == "dead"
    assert [attempt.state for attempt in await client.attempts(job.job_id)] == states


async def test_a_function_says_when_an_exception_is_retried(
    database: str, client: AsyncClient
) -> None:
    asked: list[tuple[str, int]] = []
    registry = Registry()

    def delay(error: Exception, attempt: int) -> float | timedelta | None:
        asked.append((str(error), attempt))
        return timedelta(seconds=0.01) if attempt < 3 else 3600

    @registry.handler("a", retry_delay=delay, retry_initial_delay=900)
    def handler() -> None:
        raise BusyError("busy")

    async with Worker(database, registry):
        job = await client.enqueue("a")
        await until_async(lambda: has_asked(asked, 3))

        async def waits() -> bool:
            return (await client.get(job.job_id)).attempts == 3 and (
                await client.get(job.job_id)
            ).state == "retrying"

        await until_async(waits)
    assert asked == [("busy", 1), ("busy", 2), ("busy", 3)]
    wait = (await client.get(job.job_id)).run_at - datetime.now(UTC)
    assert timedelta(minutes=58) < wait <= timedelta(hours=1)


async def test_an_error_of_retry_delay_does_not_replace_that_of_the_handler(
    database: str, client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()

    @registry.handler("a", retry_delay=lambda error, _: error.seconds, retry_initial_delay=900)
    def handler() -> None:
        raise BusyError("busy")

    async with Worker(database, registry):
        job = await in_state(client, (await client.enqueue("a")).job_id, "retrying")
    assert job.last_error == "BusyError: busy"
    assert job.run_at - datetime.now(UTC) > timedelta(minutes=5)
    [attempt] = await client.attempts(job.job_id)
    broken = "AttributeError: 'BusyError' object has no attribute 'seconds'"
    assert attempt.error_details and attempt.error_details["retry_delay"] == broken
    assert "BusyError" in attempt.error_details["traceback"]
    assert broken in caplog.text


async def has_asked(asked: list[Any], number: int) -> bool:
    return len(asked) >= number


def test_only_exceptions_are_retried_or_discarded() -> None:
    with pytest.raises(TypeError, match="classes of exceptions"):
        Registry().handler("a", retry_on="KeyError")(lambda: None)  # type: ignore[arg-type]
