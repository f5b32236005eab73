"""Durable steps in handlers: what is recorded is not done again, and what waits holds nothing."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from waiting import until_async

from jobq import AsyncClient, Client, EventTimeout, JobContext, Permanent, Registry, Retry
from jobq.errors import InvalidArgument, PayloadTooLarge, StepInvalid
from jobq.worker import Worker
from jobq_testing import run_due

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from uuid import UUID

    from jobq import Job
    from jobq.registry.typed import HandlerOptions

SOON = timedelta(milliseconds=1)


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


async def in_state(client: AsyncClient, job_id: UUID, *states: str) -> Job:
    async def look() -> Job | None:
        job = await client.get(job_id)
        return job if job.state in states else None

    job = await until_async(look, f"for {job_id} to be {states}")
    assert job is not None
    return job


async def done(client: AsyncClient, job_id: UUID) -> Job:
    return await in_state(client, job_id, "succeeded", "dead", "cancelled")


async def outcome_of(database: str, client: AsyncClient, registry: Registry) -> Job:
    """Have one job of kind flow run to its end."""
    async with Worker(database, registry):
        return await done(client, (await client.enqueue("flow")).job_id)


def registered(mode: str, steps: Callable[[JobContext], Any], retries: int = 2) -> Registry:
    """A registry whose handler, of a mode, does two steps and fails until its attempts are up.

    Args:
        mode: coroutine, thread, or either in a transaction.
        steps: a plain function of the context, called as each step.
        retries: how many attempts fail behind the steps.
    """
    registry = Registry()
    options: HandlerOptions = {"retry_strategy": "fixed", "retry_initial_delay": SOON}

    def last(context: JobContext, value: Any) -> Any:
        if context.attempt <= retries:
            raise Retry(in_=SOON)
        return value

    if mode == "coroutine":

        @registry.handler("flow", **options)
        async def flow(payload: Any, context: JobContext) -> Any:
            one = await context.step("one", steps, context)
            two = await context.step("two", steps, context)
            return last(context, [one, two])

    else:

        @registry.handler("flow", **options)
        def flow_in_thread(payload: Any, context: JobContext) -> Any:
            one = context.step("one", steps, context)
            two = context.step("two", steps, context)
            return last(context, [one, two])

    return registry


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_a_recorded_step_is_not_done_again(
    database: str, client: AsyncClient, mode: str
) -> None:
    done_by: list[int] = []

    def step(context: JobContext) -> list[int]:
        done_by.append(context.attempt)
        return [len(done_by)]

    job = await outcome_of(database, client, registered(mode, step))
    assert (job.state, job.attempt, job.result) == ("succeeded", 3, [[1], [2]])
    assert done_by == [1, 1]
    steps = await client.list_steps(job.job_id)
    assert [(s.name, s.value, s.attempt) for s in steps] == [
        ("one", [1], 1),
        ("two", [2], 1),
    ]


async def test_a_step_may_be_a_coroutine_and_fail(database: str, client: AsyncClient) -> None:
    registry = Registry()
    calls: list[str] = []

    async def shaky(name: str, *, fails: bool) -> str:
        await asyncio.sleep(0)
        calls.append(name)
        if fails:
            raise Retry(in_=SOON)
        return name

    @registry.handler("flow")
    async def flow(payload: Any, context: JobContext) -> Any:
        first = await context.step("first", shaky, "first", fails=False)
        return [
            first,
            await context.step("second", shaky, "second", fails=context.attempt == 1),
        ]

    job = await outcome_of(database, client, registry)
    assert job.result == ["first", "second"]
    assert calls == ["first", "second", "second"]


async def test_a_plain_handler_has_no_coroutines_as_steps(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()

    async def step() -> None: ...

    @registry.handler("flow", max_attempts=1)
    def flow(context: JobContext) -> None:
        context.step("one", step)

    job = await outcome_of(database, client, registry)
    assert (job.state, job.last_error_code) == ("dead", "ERROR")
    assert "must be plain functions" in str(job.last_error)
    assert await client.list_steps(job.job_id) == []


async def test_steps_of_one_name_are_numbered_even_side_by_side(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()
    calls: list[int] = []

    async def square(n: int) -> int:
        await asyncio.sleep(0.001 * (3 - n))
        calls.append(n)
        return n * n

    @registry.handler("flow")
    async def flow(payload: Any, context: JobContext) -> Any:
        squares = await asyncio.gather(*(context.step("square", square, n) for n in range(3)))
        if context.attempt == 1:
            raise Retry(in_=SOON)
        return squares

    job = await outcome_of(database, client, registry)
    assert job.result == [0, 1, 4]
    assert len(calls) == 3
    names = {s.name: s.value for s in await client.list_steps(job.job_id)}
    assert names == {"square": 0, "square#2": 1, "square#3": 4}


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_a_step_in_a_transaction_commits_with_its_rows(
    database: str, client: AsyncClient, mode: str
) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("create table charge (attempt integer)")
    registry = Registry()
    options: HandlerOptions = {"transactional": True}
    insert = "insert into charge values (%s)"

    if mode == "coroutine":

        @registry.handler("flow", **options)
        async def flow(
            payload: Any, context: JobContext, connection: psycopg.AsyncConnection[Any]
        ) -> Any:
            async def charge() -> int:
                await connection.execute(insert, [context.attempt])
                return context.attempt

            charged = await context.step("charge", charge)
            if context.attempt == 1:
                raise Retry(in_=SOON)
            answer = await context.wait_for("approval", 60)
            return [charged, answer, context.attempt]

    else:

        @registry.handler("flow", **options)
        def flow_in_thread(
            payload: Any, context: JobContext, connection: psycopg.Connection[Any]
        ) -> Any:
            def charge() -> int:
                connection.execute(insert, [context.attempt])
                return context.attempt

            charged = context.step("charge", charge)
            if context.attempt == 1:
                raise Retry(in_=SOON)
            answer = context.wait_for("approval", 60)
            return [charged, answer, context.attempt]

    async with Worker(database, registry):
        job_id = (await client.enqueue("flow")).job_id
        await in_state(client, job_id, "queued")
        await until_async(partial(waits, client, job_id), "for the wait")
        assert await client.signal(job_id, "approval", {"by": "ada"})
        job = await done(client, job_id)
    assert job.result == [
        2,
        {"by": "ada"},
        3,
    ]  # the first attempt's charge was undone with it
    with psycopg.connect(database) as connection:
        assert connection.execute("select attempt from charge").fetchall() == [(2,)]


async def waits(client: AsyncClient, job_id: UUID) -> bool:
    """Whether a job has been given back to wait."""
    job = await client.get(job_id)
    return job.state == "queued" and job.attempt > 0 and job.run_at > datetime.now(UTC)


async def idle(worker: Worker) -> bool:
    """Whether a worker runs nothing."""
    return worker.health()["running"] == 0


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_a_wait_holds_nothing_and_ends_with_the_event(
    database: str, client: AsyncClient, mode: str
) -> None:
    registry = Registry()
    if mode == "coroutine":

        @registry.handler("flow")
        async def flow(payload: Any, context: JobContext) -> Any:
            return [
                await context.wait_for("paid", 60),
                await context.wait_for("paid"),
                "end",
            ]

    else:

        @registry.handler("flow")
        def flow_in_thread(payload: Any, context: JobContext) -> Any:
            return [context.wait_for("paid", 60), context.wait_for("paid"), "end"]

    async with Worker(database, registry, concurrency=1) as worker:
        jobs = [(await client.enqueue("flow")).job_id for _ in range(3)]
        for job_id in jobs:
            await until_async(partial(waits, client, job_id), "for the wait")
        await until_async(partial(idle, worker), "for the worker to hold nothing")
        assert await client.emit("paid", {"euro": 5})
        assert not await client.emit("paid", {"euro": 6})
        for job_id in jobs:
            job = await done(client, job_id)
            assert job.result == [{"euro": 5}, {"euro": 5}, "end"]
            assert (job.attempts, job.attempt) == (1, 2)
        early = (await client.enqueue("flow")).job_id
        assert (await done(client, early)).attempt == 1


async def test_a_wait_times_out_the_same_in_each_attempt(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()

    @registry.handler("flow")
    async def flow(payload: Any, context: JobContext) -> Any:
        if payload["is_caught"]:
            try:
                await context.wait_for("never", 0.2)
            except EventTimeout:
                if context.attempt < 3:
                    raise Retry(in_=SOON) from None
                return "late"
        await asyncio.sleep(0.3)  # by then the worker rests, and must learn when this is due
        return await context.wait_for("never", timedelta(seconds=0.2))

    async with Worker(database, registry, poll=600):
        caught = (await client.enqueue("flow", {"is_caught": True})).job_id
        job = await done(client, caught)
        assert (job.result, job.attempt) == ("late", 3)
        uncaught = (await client.enqueue("flow", {"is_caught": False})).job_id
        job = await done(client, uncaught)
    assert (job.state, job.last_error_code, job.attempts) == (
        "dead",
        "EVENT_TIMEOUT",
        1,
    )


@pytest.mark.parametrize("is_moment", [False, True])
async def test_a_sleep_goes_on_behind_the_steps(
    database: str, client: AsyncClient, *, is_moment: bool
) -> None:
    registry = Registry()
    calls: list[datetime] = []

    def note() -> str:
        calls.append(datetime.now(UTC))
        return "noted"

    @registry.handler("flow")
    async def flow(payload: Any, context: JobContext) -> Any:
        await context.step("before", note)
        pause = timedelta(seconds=0.3)
        await context.sleep(datetime.now(UTC) + pause if is_moment else pause)
        await context.step("after", note)
        if context.attempt == 2:
            raise Retry(in_=SOON)
        return context.attempt

    async with Worker(database, registry, poll=60):
        job_id = (await client.enqueue("flow")).job_id
        assert (await done(client, job_id)).result == 3
    before, after = calls
    assert after - before >= timedelta(seconds=0.3)


UNRECORDABLE: dict[str, Any] = {
    "not JSON": {1, object()},
    "NUL": "\0",
    "too large": "x" * 1_048_600,
    "too deep": json.loads("[" * 200 + "]" * 200),
    "huge": 10**400,
}


@pytest.mark.parametrize("value", UNRECORDABLE.values(), ids=UNRECORDABLE)
async def test_a_step_that_cannot_be_recorded_kills_its_job(
    database: str, client: AsyncClient, value: object
) -> None:
    job = await outcome_of(database, client, registered("coroutine", lambda _context: value))
    assert (job.state, job.last_error_code, job.attempt) == ("dead", "STEP_INVALID", 1)


def test_a_step_is_not_named_as_waits_are(database: str) -> None:
    registry = Registry()

    @registry.handler("flow")
    def flow(_payload: Any, context: JobContext) -> None:
        context.step("event:q", int)

    with psycopg.connect(database) as connection:
        Client(connection).enqueue("flow")
        [ran] = run_due(connection, registry)
        assert "not begin with event:" in str(ran.error)


def returned(value: object, _context: JobContext) -> object:
    return value


def test_such_steps_kill_their_jobs_in_run_due_too(database: str) -> None:
    with psycopg.connect(database) as connection:
        for value in UNRECORDABLE.values():
            job_id = Client(connection).enqueue("flow").job_id
            [ran] = run_due(connection, registered("thread", partial(returned, value)))
            assert isinstance(ran.error, StepInvalid)
            assert Client(connection).get(job_id).last_error_code == "STEP_INVALID"


def test_a_name_that_is_taken_gets_a_number_that_is_free(database: str) -> None:
    registry = Registry()

    @registry.handler("flow")
    def flow(_payload: Any, context: JobContext) -> list[str]:
        asked = ["r", "r#2", "r", "r", "r#2", "r#3"]
        values = [context.step(name, str, n) for n, name in enumerate(asked)]
        with pytest.raises(StepInvalid):
            [context.step("x" * 256, dict) for _ in range(2)]
        return values

    with psycopg.connect(database) as connection:
        Client(connection).enqueue("flow")
        [ran] = run_due(connection, registry)
        assert ran.result == list("012345")
        names = connection.execute("select name from jobq_private.step").fetchall()
        assert {n for (n,) in names} == {
            "r", "r#2", "r#3", "r#4", "r#2#2", "r#3#2", "x" * 256
        }  # fmt: skip


@pytest.mark.parametrize("name", ["", "x" * 257, "event:paid", "a\0", None])
async def test_a_step_must_have_a_name(database: str, client: AsyncClient, name: Any) -> None:
    registry = Registry()
    caught: list[BaseException] = []

    @registry.handler("flow")
    async def flow(payload: Any, context: JobContext) -> Any:
        try:
            await context.step(name, dict)
        except StepInvalid as error:
            caught.append(error)
            raise

    job = await outcome_of(database, client, registry)
    assert (job.state, len(caught)) == ("dead", 1)


@pytest.mark.parametrize(
    ("event", "timeout"),
    [
        ("", 1),
        ("paid", timedelta(seconds=-1)),
        ("paid", timedelta(days=40_000)),
        ("paid", 1e20),
        ("paid", math.nan),
        ("paid", "5 s"),
        (None, "5 s"),
        (None, None),
        (None, 1e20),
        (None, timedelta(days=900_000)),
        (None, datetime(9999, 1, 1, tzinfo=UTC)),
        (None, datetime(2030, 1, 1)),
    ],
)
def test_a_wait_that_cannot_be_kills_its_job(
    database: str, event: str | None, timeout: Any
) -> None:
    registry = Registry()

    @registry.handler("flow")
    def flow(_payload: Any, context: JobContext) -> Any:
        return context.sleep(timeout) if event is None else context.wait_for(event, timeout)

    with psycopg.connect(database) as connection:
        job_id = Client(connection).enqueue("flow").job_id
        [ran] = run_due(connection, registry)
        says = {
            "": "the name of an event",
            "paid": "timeout must be",
            None: "a sleep must|the moment",
        }
        assert re.match(says[event], str(ran.error))
        job = Client(connection).get(job_id)
        assert (job.state, job.last_error_code, job.attempt) == ("dead", "STEP_INVALID", 1)


async def test_a_value_that_the_database_alone_refuses_harms_no_other_step(
    database: str, client: AsyncClient
) -> None:
    await client.configure(max_payload_bytes=2048)
    registry = Registry()

    @registry.handler("flow")
    async def flow(payload: dict[str, int], context: JobContext) -> Any:
        return len(await context.step("make", lambda: "x" * payload["size"]))

    async with Worker(database, registry):
        jobs = [(await client.enqueue("flow", {"size": s})).job_id for s in (10, 4000, 20)]
        ended = [await done(client, job_id) for job_id in jobs[::2]]
        bad = await in_state(client, jobs[1], "retrying", "dead")
    assert [job.result for job in ended] == [10, 20]
    assert (bad.state, bad.last_error_code) == ("dead", "STEP_INVALID")


async def test_bad_events_are_refused(client: AsyncClient) -> None:
    with pytest.raises(InvalidArgument):
        await client.emit("x" * 257)
    with pytest.raises(InvalidArgument):
        await client.emit("paid", object())
    with pytest.raises(PayloadTooLarge):
        await client.emit("paid", "x" * 1_048_600)


def in_a_process(payload: Any, context: JobContext) -> Any:
    first = context.step("process", os.getpid)
    context.progress({"attempt": context.attempt})
    context.log("INFO", "here")
    if context.attempt == 1:
        raise Retry(in_=SOON)
    return [first, context.wait_for("go", 60), context.attempt]


def too_late(payload: Any, context: JobContext) -> Any:
    return context.wait_for("never", 0.01)


async def test_a_handler_in_a_process_has_steps_too(database: str, client: AsyncClient) -> None:
    registry = Registry()
    registry.handler("flow", process=True)(in_a_process)
    registry.handler("late", process=True)(too_late)
    async with Worker(database, registry, processes=1):
        job_id = (await client.enqueue("flow")).job_id
        await until_async(partial(waits, client, job_id), "for the wait")
        await client.signal(job_id, "go", [1])
        job = await done(client, job_id)
        late = await done(client, (await client.enqueue("late")).job_id)
    [recorded] = [s.value for s in await client.list_steps(job_id) if s.name == "process"]
    assert job.result == [recorded, [1], 3]
    assert recorded != os.getpid()
    assert job.progress == {"attempt": 3}
    assert "here" in [line.message for line in await client.logs(job_id)]
    assert (late.state, late.last_error_code) == ("dead", "EVENT_TIMEOUT")


def test_run_due_records_steps_and_waits(database: str) -> None:
    registry = Registry()
    calls: list[str] = []

    def note(name: str) -> str:
        calls.append(name)
        return name

    @registry.handler("flow")
    async def flow(payload: Any, context: JobContext) -> Any:
        await context.step("one", note, "one")
        if context.attempt == 1:
            raise Retry(in_=0)
        return await context.wait_for("paid", 60)

    @registry.handler("plain")
    def plain(payload: Any, context: JobContext) -> Any:
        return context.step("two", note, "two")

    with psycopg.connect(database) as connection:
        client = Client(connection)
        job_id = client.enqueue("flow").job_id
        client.enqueue("plain")
        ran = run_due(connection, registry)
        assert [(r.kind, r.state) for r in ran] == [
            ("flow", "retrying"), ("plain", "succeeded"), ("flow", "queued"),
        ]  # fmt: skip
        assert run_due(connection, registry) == []
        client.emit("paid", 5)
        [ended] = run_due(connection, registry)
        assert (ended.job_id, ended.result, ended.error) == (job_id, 5, None)
        assert calls == ["one", "two"]
        connection.rollback()


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_a_step_is_retried_and_the_count_survives(
    database: str, client: AsyncClient, mode: str
) -> None:
    calls: list[int] = []
    registry = Registry()

    def charge(context: JobContext) -> str:
        calls.append(context.attempt)
        if len(calls) < 4:
            raise RuntimeError(f"call {len(calls)}")
        return "charged"

    async def in_coroutine(context: JobContext) -> Any:
        return await context.step("charge", charge, context, retries=3, retry_delay=0.01)

    def in_thread(context: JobContext) -> Any:
        return context.step("charge", charge, context, retries=3, retry_delay=0.01)

    registry.handler("flow", max_attempts=1)(in_coroutine if mode == "coroutine" else in_thread)
    job = await outcome_of(database, client, registry)
    assert (job.state, job.result, len(calls)) == ("succeeded", "charged", 4)
    saved = {s.name: s.value for s in await client.list_steps(job.job_id)}
    assert saved["charge"] == "charged"
    errors = [saved[f"charge!{n}"]["error"] for n in (1, 2, 3)]
    assert errors == [f"RuntimeError: call {n}" for n in (1, 2, 3)]


def test_a_step_is_not_a_failed_call_of_another_one(database: str) -> None:
    registry = Registry()
    calls = []

    def fails() -> None:
        calls.append(1)
        raise RuntimeError

    @registry.handler("flow")
    def flow(context: JobContext) -> None:
        context.step("x!1", lambda: 1)
        if context.attempt == 1:
            raise Retry(in_=0)
        context.step("x", fails, retries=1, retry_delay=0)

    with psycopg.connect(database) as connection:
        client = Client(connection)
        client.enqueue("flow")
        for _ in range(9):
            run_due(connection, registry)
    assert len(calls) == 2


def test_the_pause_before_a_step_is_retried_is_an_hour_at_most(database: str) -> None:
    registry = Registry()

    @registry.handler("flow")
    def flow(context: JobContext) -> None:
        context.step("never", lambda: 1 / 0, retries=9, retry_delay=timedelta.max)

    with psycopg.connect(database) as connection:
        client = Client(connection)
        job_id = client.enqueue("flow").job_id
        for _ in range(2):
            [ran] = run_due(connection, registry)
            assert (ran.error, client.get(job_id).state) == (None, "queued")
            connection.execute("select jobq_internal.advance_clock('1 hour')")
        connection.rollback()


async def test_a_step_whose_retries_are_used_up_or_whose_outcome_is_final_fails(
    database: str, client: AsyncClient
) -> None:
    calls: list[str] = []
    registry = Registry()

    async def hang(error: Exception | None) -> None:
        calls.append(type(error).__name__)
        if error is not None:
            raise error
        await asyncio.sleep(60)

    @registry.handler("flow", max_attempts=1)
    async def flow(context: JobContext) -> None:
        try:
            await context.step("slow", hang, None, retries=1, retry_delay=0, timeout=0.02)
        except TimeoutError:
            await context.step("final", hang, Permanent("NO"), retries=5, retry_delay=0)

    job = await outcome_of(database, client, registry)
    assert (job.state, job.last_error_code) == ("dead", "NO")
    assert calls.count("NoneType") >= 2
    assert calls.count("Permanent") == 1
