"""Handlers that behave badly: each costs its own job an attempt, and nobody else anything."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from waiting import until, until_async
from worker_process import working

from jobq import AsyncClient, Client
from jobq.database import Pool
from jobq.registry import JobContext, Permanent, Registry, Snooze, Unable
from jobq.worker import EXIT_FAILED, EXIT_RECYCLE, Worker, pools, tuning

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from uuid import UUID

    import psycopg
    from psycopg import AsyncConnection

    from jobq.models import Job

    Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


async def done(client: AsyncClient, job_id: UUID) -> Job:
    async def look() -> Job | None:
        job = await client.get(job_id)
        return job if job.is_finished else None

    job = await until_async(look, f"for the end of {job_id}")
    assert job is not None
    return job


async def outcome_of(
    database: str, client: AsyncClient, function: Callable[..., Any], **options: Any
) -> Job:
    """Run one job of a bad handler beside a good one, which must succeed."""
    registry = Registry()
    registry.handler("bad", **{"max_attempts": 1, **options})(function)
    registry.handler("good")(lambda: "fine")
    async with Worker(database, registry, grace=1):
        job = await client.enqueue("bad")
        ended = await done(client, job.job_id)
        good = await client.enqueue("good")
        assert await client.result(good.job_id, timeout=30) == "fine"
    return ended


# ---- what it raises


async def cancels_itself() -> None:
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    await task


async def cancels_its_own_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


def raises(error: BaseException) -> Callable[[], None]:
    def handler() -> None:
        raise error

    return handler


def raises_in_coroutine(error: BaseException) -> Callable[[], Any]:
    async def handler() -> None:
        raise error

    return handler


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


ERRORS = [
    asyncio.CancelledError(),
    concurrent.futures.CancelledError(),
    StopIteration(),
    StopAsyncIteration(),
    GeneratorExit(),
    KeyboardInterrupt(),
    SystemExit(3),
    UnspeakableError(),
]


@pytest.mark.parametrize(
    "handler",
    [
        cancels_itself,
        cancels_its_own_task,
        *[raises(error) for error in ERRORS],
        *[raises_in_coroutine(error) for error in ERRORS if not isinstance(error, StopIteration)],
    ],
    ids=[
        "task",
        "own task",
        *map(repr, ERRORS),
        *[f"async {e!r}" for e in ERRORS if e != ERRORS[2]],
    ],
)
async def test_whatever_is_raised_is_a_failure_that_counts(
    database: str, client: AsyncClient, handler: Callable[..., Any]
) -> None:
    job = await outcome_of(
        database,
        client,
        handler,
        max_attempts=2,
        retry_strategy="fixed",
        retry_initial_delay=0.01,
    )
    assert (job.state, job.last_error_code, job.attempt) == ("dead", "ERROR", 2)


async def test_a_snooze_beyond_the_calendar_is_settled(database: str, client: AsyncClient) -> None:
    registry = Registry()
    registry.handler("a")(raises(Snooze(timedelta.max)))
    async with Worker(database, registry):
        job_id = (await client.enqueue("a")).job_id

        async def is_put_off() -> bool:
            job = await client.get(job_id)
            return job.state == "queued" and job.attempt == 1

        await until_async(is_put_off)


async def test_what_the_worker_lacks_costs_no_attempt(
    database: str, client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()
    registry.handler("a", max_attempts=1)(raises(Unable("NO_DRIVER", "no driver of X", in_=60)))
    async with Worker(database, registry, metrics_port=0) as worker:
        job_id = (await client.enqueue("a")).job_id

        async def is_given_back() -> bool:
            return bool(worker.health()["lacks"])

        await until_async(is_given_back)
        job = await client.get(job_id)
        assert (job.state, job.attempts) == ("queued", 0)
        assert job.run_at - job.created_at > timedelta(seconds=50)
        assert worker.health()["lacks"] == {"NO_DRIVER": "a: no driver of X"}
        assert b'worker_jobs_unable_total{code="NO_DRIVER"} 1.0' in (worker.metrics_text() or b"")
    assert "this worker cannot run a: no driver of X (NO_DRIVER)" in caplog.text


# ---- hanging


def hang() -> None:
    threading.Event().wait()


def hang_in_process(seconds: str) -> None:
    subprocess.run(["sleep", seconds], check=False)


def quick() -> str:
    return "fine"


def becomes_another_program() -> None:
    os.execv("/bin/true", ["true"])


def signals_itself() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


def ends_its_group() -> None:
    os.killpg(os.getpgid(0), signal.SIGTERM)


def closes_all_descriptors() -> None:
    os.closerange(3, 4096)


def stops_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def never_matches() -> None:
    re.match(r"(a+)+$", "a" * 40 + "b")


@pytest.mark.parametrize(
    ("handler", "code"),
    [
        (becomes_another_program, "PROCESS_DIED"),
        (signals_itself, "PROCESS_DIED"),
        (ends_its_group, "PROCESS_DIED"),
        (closes_all_descriptors, "PROCESS_DIED"),
        (stops_itself, "TIMEOUT"),
        (never_matches, "TIMEOUT"),
    ],
)
async def test_what_would_reach_the_worker_costs_a_process_alone(
    database: str, client: AsyncClient, handler: Callable[..., Any], code: str
) -> None:
    job = await outcome_of(database, client, handler, process=True, timeout=5)
    assert (job.state, job.last_error_code) == ("dead", code)


async def test_a_process_that_hangs_is_killed_and_others_wait_without_harm(
    database: str, client: AsyncClient
) -> None:
    """A job's time begins when it runs, not while it waits for a process."""
    registry = Registry()
    registry.handler("hang", process=True, timeout=4, max_attempts=1)(hang_in_process)
    registry.handler("quick", process=True, timeout=3.5, max_attempts=1)(quick)
    async with Worker(database, registry, processes=1):
        seconds = f"1000.{os.getpid()}"  # like no other run's on this machine
        hung = await client.enqueue("hang", seconds, priority=9)
        others = [await client.enqueue("quick") for _ in range(2)]
        ended = await done(client, hung.job_id)
        assert (ended.state, ended.last_error_code) == ("dead", "TIMEOUT")
        for other in others:
            assert await client.result(other.job_id, timeout=30) == "fine"
    sleeping = subprocess.run(  # noqa: ASYNC221
        ["pgrep", "-f", f"^sleep {seconds}$"],
        check=False,
        capture_output=True,
    )
    assert sleeping.stdout == b"", "what it started is killed with it"


@pytest.mark.prove
async def test_the_late_end_of_an_attempt_is_not_that_of_the_next(
    database: str, client: AsyncClient
) -> None:
    """The first attempt returns while the second runs, which must keep its lease."""
    registry = Registry()
    gates = [threading.Event(), threading.Event()]
    started = [threading.Event(), threading.Event()]

    @registry.handler(
        "a", timeout=10, lease=3, max_attempts=2, retry_strategy="fixed", retry_initial_delay=0.01
    )
    def handler(context: JobContext) -> int:
        started[context.attempt - 1].set()
        gates[context.attempt - 1].wait()
        return context.attempt

    async with Worker(database, registry, concurrency=10):
        job_id = (await client.enqueue("a")).job_id
        await until_async(lambda: asyncio.sleep(0, started[1].is_set()))
        gates[0].set()
        await asyncio.sleep(4)  # longer than the lease, shorter than the timeout
        gates[1].set()
        assert await client.result(job_id, timeout=30) == 2
    assert [a.error_code for a in await client.attempts(job_id)] == ["TIMEOUT", None]


async def test_a_worker_that_has_lost_its_slots_ends_to_be_started_afresh(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "STUCK_SECONDS", 0.5)
    registry, may_end = Registry(), asyncio.Event()
    registry.handler("hang", timeout=0.2, max_attempts=1)(hang)

    @registry.handler("slow")
    async def slow() -> str:
        await may_end.wait()
        return "fine"

    worker = Worker(database, registry, concurrency=4, metrics_port=0)
    async with worker:
        patient = await client.enqueue("slow")
        for _ in range(2):
            await client.enqueue("hang")

        async def is_told() -> bool:
            return worker.health()["stuck"] == 2

        await until_async(is_told)
        assert worker._parts is not None
        await worker._parts.queries.heartbeat([], worker.stuck)
        [told] = await client.list_workers()
        assert told.stuck == 2
        assert b"worker_slots_stuck 2.0" in (worker.metrics_text() or b"")
        assert worker._task is not None
        may_end.set()
        assert await asyncio.wait_for(asyncio.shield(worker._task), 30) == EXIT_RECYCLE
    assert (await client.get(patient.job_id)).result == "fine", "what runs may finish"


def test_a_coroutine_that_holds_up_the_loop_is_interrupted(database: str, tmp_path: Path) -> None:
    with (
        Client(database) as client,
        working(database, tmp_path, target="hostile_handlers:registry") as worker,
    ):
        patient = client.enqueue("wait_for_long")
        blocked = client.enqueue("loop_coroutine", max_attempts=1)
        until(lambda: client.get(blocked.job_id).is_finished, "for its end")
        job = client.get(blocked.job_id)
        assert job.state == "dead"
        assert job.last_error is not None and "LoopBlockedError" in job.last_error
        assert client.result(patient.job_id, timeout=60) == 1, "no lease was lost"
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log


def test_what_a_handler_does_to_its_process_ends_neither_worker_nor_log(
    database: str, tmp_path: Path
) -> None:
    with (
        Client(database) as client,
        working(database, tmp_path, target="hostile_handlers:registry") as worker,
    ):
        for kind in ("close_standard_error", "stop_the_loop", "leave_a_task_that_exits"):
            job_id = client.enqueue(kind, queue="default").job_id
            until(lambda: client.get(job_id).state == "succeeded", "for its end")  # noqa: B023
            until(lambda: str(job_id) in worker.log, "for the line about it")  # noqa: B023
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log


def test_a_worker_whose_tasks_are_cancelled_ends_with_its_jobs_settled(
    database: str, tmp_path: Path
) -> None:
    with (
        Client(database) as client,
        working(database, tmp_path, "--grace", "1", target="hostile_handlers:registry") as worker,
    ):
        patient = client.enqueue("wait_for_long", max_attempts=2).job_id
        until(lambda: client.get(patient).state == "running", "for its start")
        spoiler = client.enqueue("cancel_every_task").job_id
        assert worker.wait() == EXIT_FAILED, worker.log
        assert client.get(spoiler).state == "succeeded"
        assert client.get(patient).state in {"queued", "retrying"}, "it is given back"
        assert "CRITICAL" in worker.log


async def test_a_worker_that_is_cancelled_gives_its_jobs_back(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()
    registry.handler("a")(asyncio.Event().wait)
    task = asyncio.create_task(Worker(database, registry).run(handle_signals=False))
    job_id = (await client.enqueue("a")).job_id

    async def runs() -> bool:
        return (await client.get(job_id)).state == "running"

    await until_async(runs)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    job = await client.get(job_id)
    assert (job.state, job.attempts) == ("queued", 0)


# ---- connections


async def test_a_handler_may_close_its_connection(database: str, client: AsyncClient) -> None:
    async def handler(connection: AsyncConnection[Any]) -> None:
        await connection.close()

    job = await outcome_of(database, client, handler, transactional=True)
    assert (job.state, job.last_error_code) == ("dead", "ERROR")


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_a_pooled_connection_that_the_server_closed_costs_no_attempt(
    database: str, client: AsyncClient, connect: Callable[[], Connection], mode: str
) -> None:
    connection = connect()
    those = (
        "from pg_stat_activity where application_name in ('jobq handler', 'jobq client')"
        " and datname = current_database()"
    )
    registry = Registry()

    async def handler(connection: AsyncConnection[Any]) -> None:
        await connection.execute("select 1")

    def handler_in_thread(connection: Connection) -> None:
        connection.execute("select 1")

    chosen = handler if mode == "coroutine" else handler_in_thread
    registry.handler("a", transactional=True, max_attempts=1)(chosen)
    async with Worker(database, registry):
        for _ in range(3):
            job = await client.enqueue("a")
            assert await client.result(job.job_id, timeout=30) is None
            connection.execute(f"select pg_terminate_backend(pid) {those}")
            until(lambda: connection.execute(f"select {those}").fetchall() == [], "for their end")


@pytest.mark.prove
async def test_an_idle_worker_holds_two_connections_and_a_busy_one_four(
    database: str,
    client: AsyncClient,
    connect: Callable[[], Connection],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = connect()
    query = (
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and application_name in ('jobq worker', 'jobq listener')"
    )
    registry = Registry()
    most = 0

    @registry.handler("a", lease=1)
    async def handler(context: JobContext) -> None:
        context.log("INFO", "a line")

    async with Worker(database, registry):
        jobs = await client.enqueue_many([{"kind": "a"}] * 5000)
        while not (await client.get(jobs[-1].job_id)).is_finished:
            [row] = connection.execute(query).fetchall()
            most = max(most, row[0])
        assert most <= 4
        monkeypatch.setattr(tuning, "CALL_SECONDS", 2.0)  # the others are closed soon

        async def are_two() -> bool:
            return connection.execute(query).fetchall() == [(2,)]

        await until_async(are_two, "for the others to be closed")


async def test_handlers_connections_that_none_needs_are_closed(
    database: str,
    client: AsyncClient,
    connect: Callable[[], Connection],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "CALL_SECONDS", 3.0)
    connection = connect()
    those = (
        "select count(*) from pg_stat_activity where application_name = 'jobq handler'"
        " and datname = current_database()"
    )
    registry = Registry()

    @registry.handler("a", transactional=True)
    async def handler(connection: AsyncConnection[Any]) -> int:
        return len(await (await connection.execute("select 1")).fetchall())

    @registry.handler("b", transactional=True)
    def handler_in_thread(connection: Connection) -> int:
        return len(connection.execute("select 1").fetchall())

    async with Worker(database, registry):
        for _ in range(2):
            for kind in ("a", "b"):
                job = await client.enqueue(kind)
                assert await client.result(job.job_id, timeout=30) == 1

            async def are_closed() -> bool:
                return connection.execute(those).fetchall() == [(0,)]

            await until_async(are_closed, "for their end")


async def test_the_first_transactional_handlers_in_threads_share_their_connections(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)
    made: list[Pool] = []

    class Slow(Pool):
        def __init__(self, *args: Any, **options: Any) -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.5)
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(pools, "Pool", Slow)
    registry = Registry()

    @registry.handler("refused", transactional=True)
    def handler(connection: Connection) -> None:
        raise Permanent("REFUSED", "as it should end")

    jobs = [await client.enqueue("refused") for _ in range(2)]
    async with Worker(database, registry):
        for job in jobs:
            assert (await done(client, job.job_id)).last_error_code == "REFUSED"
    assert len(made) == 1


# ---- talking


async def test_a_chatty_handler_holds_up_nobody_and_has_a_quota(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "MOST_LINES", 3000)
    registry = Registry()
    stop = threading.Event()

    @registry.handler("chatty", max_attempts=1)
    def chatty(context: JobContext) -> None:
        said = 0
        while said <= tuning.MOST_LINES or not stop.is_set():
            context.log("INFO", "x" * 100)
            said += 1
            time.sleep(0.00005)

    @registry.handler("good")
    async def good(context: JobContext) -> None:
        context.log("INFO", "one line")

    async with Worker(database, registry):
        loud = await client.enqueue("chatty")
        for _ in range(20):
            job = await client.enqueue("good")
            await client.result(job.job_id, timeout=30)
            assert [line.message for line in await client.logs(job.job_id)] == ["one line"]
        assert not (await client.get(loud.job_id)).is_finished
        stop.set()
        await client.result(loud.job_id, timeout=60)
    lines = [line.message for line in await client.logs(loud.job_id)]
    assert len(lines) <= 3001
    assert lines[-1].endswith("lines more were left out")


# ---- what cannot be read


async def test_a_job_that_cannot_be_read_costs_nobody_else_anything(
    database: str, client: AsyncClient, connect: Callable[[], Connection]
) -> None:
    """Its time is before our era, its metadata nested deeply; its last words fail, too."""
    connection = connect()
    registry = Registry()
    words: list[str] = []

    def on_dead(context: JobContext, code: str, error: str) -> None:
        words.append(code)

    @registry.handler("a", max_attempts=1, on_dead=on_dead)
    async def handler(context: JobContext) -> None:
        raise ValueError

    registry.handler("good")(lambda: "fine")
    connection.execute("set session_replication_role = replica")
    connection.execute("alter domain jobq_private.instant drop constraint job_run_at_check")
    good = await client.enqueue("good", run_at=None, priority=-1)
    for change in (
        "run_at = '0044-03-15 BC'",
        "metadata = (repeat('{\"a\":', 3000) || '1' || repeat('}', 3000))::jsonb",
        "payload = (repeat('[', 3000) || repeat(']', 3000))::jsonb",
    ):
        job = await client.enqueue("a")
        connection.execute(f"update jobq_private.job set {change} where job_id = %s", [job.job_id])
    async with Worker(database, registry):
        assert await client.result(good.job_id, timeout=30) == "fine"
        query = "select state, last_error_code from jobq_private.job_archive where kind = 'a'"

        async def all_dead() -> list[Any]:
            rows = connection.execute(query).fetchall()
            return rows if len(rows) == 3 else []

        rows = await until_async(all_dead, "for their end")
        assert {row[0] for row in rows} == {"dead"}
        later = await client.enqueue("good")
        assert await client.result(later.job_id, timeout=30) == "fine"
