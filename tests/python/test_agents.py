"""Long jobs: calls of other jobs, messages, streams and forks, with real workers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from waiting import until, until_async
from worker_handlers import Gate

from jobq import (
    AsyncClient,
    ChildFailed,
    Client,
    EventTimeout,
    JobContext,
    Permanent,
    Registry,
    Retry,
)
from jobq.errors import IllegalState, InvalidArgument, JobFailed
from jobq.worker import Worker, tuning
from jobq_testing import run_due

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SOON = timedelta(milliseconds=1)


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


async def result(client: AsyncClient, kind: str, payload: Any = None) -> Any:
    return await client.result((await client.enqueue(kind, payload)).job_id, timeout=20)


def tools() -> Registry:
    """A registry with jobs to call."""
    registry = Registry()

    @registry.handler("double")
    def double(number: int) -> int:
        return 2 * number

    @registry.handler("broken")
    def broken(_payload: Any) -> None:
        raise Permanent("BROKEN", "it does not work")

    return registry


# ---- calls


async def test_a_call_returns_the_result_of_the_called_job(
    database: str, client: AsyncClient
) -> None:
    registry = tools()

    @registry.handler("agent")
    async def agent(_payload: Any, context: JobContext) -> Any:
        one = await context.call("double", 1)
        return [one, *await context.gather(context.call("double", 5), context.call("double", 7))]

    async with Worker(database, registry):
        assert await result(client, "agent") == [2, 10, 14]
    assert sorted(j.kind for j in await client.list_jobs()) == [
        "agent",
        "double",
        "double",
        "double",
    ]


async def test_a_job_that_calls_many_is_resumed_once(database: str, client: AsyncClient) -> None:
    registry = tools()
    runs = 0

    @registry.handler("agent")
    async def agent(_payload: Any, context: JobContext) -> Any:
        nonlocal runs
        runs += 1
        return await context.gather(*(context.call("double", n) for n in range(20)))

    async with Worker(database, registry, concurrency=3):
        assert await result(client, "agent") == [2 * n for n in range(20)]
    assert runs == 2


async def test_a_refused_call_fails_only_its_own_job(database: str, client: AsyncClient) -> None:
    """Although the calls of many jobs are made together."""
    registry = tools()

    @registry.handler("agent")
    async def agent(kind: str, context: JobContext) -> Any:
        try:
            return await context.call(kind, 4)
        except InvalidArgument as error:
            return f"refused: {error.code}"

    jobs = [{"kind": "agent", "payload": kind} for kind in ["double", "", "double", ""]]
    enqueued = await client.enqueue_many(jobs)
    async with Worker(database, registry):
        results = [await client.result(job.job_id, timeout=20) for job in enqueued]
    assert results == [8, "refused: INVALID_ARGUMENT", 8, "refused: INVALID_ARGUMENT"]


@pytest.mark.parametrize("mode", ["thread", "process", "transaction"])
async def test_a_plain_handler_calls_too(database: str, client: AsyncClient, mode: str) -> None:
    registry = tools()
    if mode == "transaction":

        @registry.handler("agent", transactional=True)
        def agent(_payload: Any, connection: psycopg.Connection[Any], context: JobContext) -> Any:
            del connection
            return plain(context)
    else:
        registry.handler("agent", process=mode == "process")(plain_agent)
    async with Worker(database, registry):
        assert await result(client, "agent") == [2, 10, 14]


def plain_agent(_payload: Any, context: JobContext) -> Any:
    return plain(context)


def plain(context: JobContext) -> list[int]:
    one = context.call("double", 1)
    five, seven = context.start("double", 5), context.start("double", 7)
    return [one, *context.gather(five, seven)]


async def test_the_failure_of_a_called_job_is_raised(database: str, client: AsyncClient) -> None:
    registry = tools()

    @registry.handler("careful")
    async def careful(_payload: Any, context: JobContext) -> Any:
        try:
            await context.call("broken")
        except ChildFailed as error:
            return [error.state, error.error_code, str(error.job_id)]

    @registry.handler("careless")
    async def careless(_payload: Any, context: JobContext) -> Any:
        await context.gather(context.call("double", 1), context.call("broken"))

    async with Worker(database, registry):
        state, code, job_id = await result(client, "careful")
        assert (state, code) == ("dead", "BROKEN")
        assert (await client.get(job_id)).kind == "broken"
        with pytest.raises(JobFailed) as raised:
            await result(client, "careless")
    assert raised.value.code == "CHILD_FAILED"
    assert raised.value.job.attempts == 1
    assert "BROKEN: it does not work" in str(raised.value)


async def test_cancelling_a_job_cancels_what_it_has_called(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()

    @registry.handler("agent")
    async def agent(_payload: Any, context: JobContext) -> None:
        await context.gather(
            context.call("tool", queue="nobody"), context.call("tool", queue="nobody", cancel=False)
        )

    async with Worker(database, registry):
        job_id = (await client.enqueue("agent")).job_id

        async def called() -> Any:
            return (await client.get(job_id)).attempt and await client.list_jobs(queue="nobody")

        jobs = await until_async(called, "for the calls")
        assert [job.state for job in jobs] == ["queued", "queued"]
        await client.cancel(job_id)

        async def cancelled() -> Any:
            states = [job.state for job in await client.list_jobs(queue="nobody")]
            return states if "cancelled" in states else None

        assert sorted(await until_async(cancelled, "for the cancellation")) == [
            "cancelled",
            "queued",
        ]
    graph: Any = await client.graph(job_id)
    assert sorted(edge["after_failure"] for edge in graph["edges"]) == ["call", "detach"]


async def test_a_job_with_calls_is_called_once_however_often_its_caller_is_interrupted(
    database: str, client: AsyncClient
) -> None:
    registry = tools()

    @registry.handler("agent", retry_strategy="fixed", retry_initial_delay=SOON, max_attempts=9)
    async def agent(_payload: Any, context: JobContext) -> Any:
        child = await context.start("double", 4)
        if context.attempt < 4:
            raise Retry(in_=SOON)
        [value] = await context.gather(child)
        return value

    async with Worker(database, registry):
        assert await result(client, "agent") == 8
    assert len(await client.list_jobs(kind="double")) == 1


def test_no_end_of_a_called_job_is_missed(database: str) -> None:
    """It ends, and is looked at, in a transaction that commits after the wait has begun."""
    with (
        psycopg.connect(database, autocommit=True) as waiting,
        psycopg.connect(database, autocommit=True) as ending,
    ):
        claim = "select job_id from jobq.claim('{default}', 'w')"
        waiting.execute("select jobq.enqueue('agent')")
        [(job_id,)] = waiting.execute(claim).fetchall()
        call = "select outcome from jobq.call_children(%s, %s, %s)"
        children = '[{"name": "a", "kind": "tool"}]'
        waiting.execute("select jobq.start_children(%s, 1, %s)", [job_id, children])
        [(child_id,)] = waiting.execute(claim).fetchall()
        with ending.transaction():
            ending.execute("select jobq.complete(%s, 1)", [child_id])
            ending.execute("select jobq_private.resolve()")
            assert waiting.execute(call, [job_id, 1, children]).fetchall() == [("waiting",)]

        def is_due() -> bool:
            return waiting.execute(claim).fetchall() == [(job_id,)]

        until(is_due, "for the caller to be due")
        assert waiting.execute(call, [job_id, 2, children]).fetchall() == [("arrived",)]


CLAIM = "select job_id from jobq.claim('{default}', 'w', %s)"
CALL = "select outcome, ends from jobq.call_children(%s, %s, %s)"
TOOLS = '[{"name": "a", "kind": "tool"}, {"name": "b", "kind": "tool"}]'


def calling(session: psycopg.Connection[Any]) -> tuple[Any, list[Any]]:
    """Return a job that waits for two others, and these, which run."""
    session.execute("select jobq.enqueue('agent')")
    [(job_id,)] = session.execute(CLAIM, [1]).fetchall()
    assert session.execute(CALL, [job_id, 1, TOOLS]).fetchall() == [("waiting", None)]
    return job_id, [child_id for (child_id,) in session.execute(CLAIM, [2]).fetchall()]


@pytest.mark.parametrize("last", [0, 1])
def test_the_last_of_two_ends_that_commit_resumes_the_caller(database: str, last: int) -> None:
    """Neither of the two transactions sees both ends."""
    with (
        psycopg.connect(database, autocommit=True) as session,
        psycopg.connect(database) as first,
        psycopg.connect(database) as second,
    ):
        job_id, children = calling(session)
        ending = [first, second]
        for connection, child_id in zip(ending, children, strict=True):
            connection.execute("select jobq.complete(%s, 1)", [child_id])
        ending[1 - last].commit()
        assert session.execute(CLAIM, [1]).fetchall() == []
        ending[last].commit()
        until(lambda: session.execute(CLAIM, [1]).fetchall() == [(job_id,)], "for the caller")
        [(outcome, ends)] = session.execute(CALL, [job_id, 2, TOOLS]).fetchall()
        assert outcome == "arrived"
        assert [end["state"] for end in ends] == ["succeeded", "succeeded"]


def test_a_caller_that_waits_with_one_snapshot_is_not_resumed_before_the_end(
    database: str,
) -> None:
    with psycopg.connect(database, autocommit=True) as session:
        session.execute("select jobq.enqueue('agent')")
        [(job_id,)] = session.execute(CLAIM, [1]).fetchall()
        session.execute("select jobq.start_children(%s, 1, %s)", [job_id, TOOLS])
        [(child_id,), _] = session.execute(CLAIM, [2]).fetchall()
        wait = "select outcome from jobq.wait_for(%s, 1, 'job_ended:' || %s)"
        session.execute("begin isolation level repeatable read")
        assert session.execute(wait, [job_id, child_id]).fetchall() == [("waiting",)]
        session.execute("commit")
        assert session.execute(CLAIM, [1]).fetchall() == []
        session.execute("select jobq.complete(%s, 1)", [child_id])
        until(lambda: session.execute(CLAIM, [1]).fetchall() == [(job_id,)], "for the caller")


def test_an_end_that_is_undone_resumes_no_caller(database: str) -> None:
    """It resumes once the job ends again, also in a transaction with one snapshot."""
    with (
        psycopg.connect(database, autocommit=True) as session,
        psycopg.connect(database) as ending,
    ):
        job_id, children = calling(session)
        session.execute("select jobq.complete(%s, 1)", [children[0]])
        complete = "select jobq.complete(%s, 1)"
        ending.execute(complete, [children[1]])
        ending.rollback()
        assert session.execute(CLAIM, [1]).fetchall() == []
        ending.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        ending.execute(complete, [children[1]])
        ending.commit()
        until(lambda: session.execute(CLAIM, [1]).fetchall() == [(job_id,)], "for the caller")


async def test_calls_need_valid_arguments(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("agent")
    async def agent(what: str, context: JobContext) -> None:
        match what:
            case "payload":
                await context.call("double", object())
            case "gather":
                await context.gather("double")
            case "source":
                await context.wait_any(7)  # type: ignore[arg-type]
            case "mailbox":
                await context.receive("x" * 201)
            case "nothing":
                assert await context.gather() == []

    async with Worker(database, registry):
        for what in ("payload", "gather", "source", "mailbox"):
            with pytest.raises(JobFailed) as raised:
                await result(client, "agent", what)
            assert raised.value.code == "STEP_INVALID", what
        await result(client, "agent", "nothing")


# ---- messages, and the first of several


async def test_messages_are_received_in_their_order(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("agent")
    async def agent(_payload: Any, context: JobContext) -> list[Any]:
        heard: list[Any] = []
        while (message := await context.receive("chat")) is not None:
            heard.append(message)
            try:
                await context.receive("other", 0)
            except EventTimeout:
                heard.append("-")
        return heard

    async with Worker(database, registry):
        job_id = (await client.enqueue("agent")).job_id
        for number in range(1, 6):
            assert await client.send_message(job_id, "chat", number) == number
        await client.send_message(job_id, "other", "x")
        await client.send_message(job_id, "chat")
        heard = await client.result(job_id, timeout=20)
        assert [value for value in heard if value != "-"] == [1, 2, 3, 4, 5]
        with pytest.raises(IllegalState):
            await client.send_message(job_id, "chat", 6)


async def test_a_message_after_a_timeout_is_still_received(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()

    @registry.handler("agent")
    async def agent(_payload: Any, context: JobContext) -> Any:
        try:
            await context.receive("chat", 0.01)
        except EventTimeout:
            return await context.receive("chat")

    async with Worker(database, registry):
        job_id = (await client.enqueue("agent")).job_id

        async def timed_out() -> Any:
            return await client.list_steps(job_id)

        await until_async(timed_out, "for the timeout")
        await client.send_message(job_id, "chat", "late")
        assert await client.result(job_id, timeout=20) == "late"


async def test_concurrent_senders_get_numbers_without_gaps(
    database: str, client: AsyncClient
) -> None:
    job_id = (await client.enqueue("agent")).job_id
    numbers = await asyncio.gather(*(client.send_message(job_id, "chat", n) for n in range(40)))
    assert sorted(numbers) == list(range(1, 41))


async def test_the_first_of_several_wins(database: str, client: AsyncClient) -> None:
    registry = tools()

    @registry.handler("agent")
    async def agent(_payload: Any, context: JobContext) -> list[Any]:
        slow = await context.start("slow", queue="nobody")
        got: list[Any] = []
        for _ in range(3):
            first = await context.wait_any(slow, "stop", context.mailbox("chat"), timeout=60)
            got.append([type(first.source).__name__, first.value])
        quick = await context.wait_any(slow, context.call("double", 4))
        got.append(quick.value)
        try:
            await context.wait_any(slow, "never", timeout=SOON)
        except EventTimeout:
            got.append("timeout")
        return got

    async with Worker(database, registry):
        job_id = (await client.enqueue("agent")).job_id
        await client.send_message(job_id, "chat", 1)
        await client.send_message(job_id, "chat", 2)

        async def received() -> Any:
            return len(await client.list_steps(job_id)) == 3

        await until_async(received, "for both messages")
        await client.signal(job_id, "stop", "now")
        assert await client.result(job_id, timeout=20) == [
            ["Mailbox", 1], ["Mailbox", 2], ["str", "now"], 8, "timeout"
        ]  # fmt: skip


# ---- streams


@pytest.mark.parametrize("mode", ["coroutine", "thread", "process", "transaction"])
async def test_a_stream_can_be_followed(database: str, client: AsyncClient, mode: str) -> None:
    registry = Registry()
    if mode == "coroutine":

        @registry.handler("agent")
        async def agent(_payload: Any, context: JobContext) -> None:
            for n in range(1000):
                context.stream("a").write(n)
            await context.stream("b").write("done")
    elif mode == "transaction":

        @registry.handler("agent", transactional=True)
        def in_transaction(
            _payload: Any, connection: psycopg.Connection[Any], context: JobContext
        ) -> None:
            del connection
            write_plainly(None, context)
    else:
        registry.handler("agent", process=mode == "process")(write_plainly)
    async with Worker(database, registry):
        job_id = (await client.enqueue("agent")).job_id
        read = [chunk async for chunk in client.stream(job_id, "a")]
    assert [chunk.value for chunk in read] == list(range(1000))
    assert [chunk.cursor for chunk in read[-2:]] == ["1-999", "1-1000"]
    with Client(database) as waiting:
        rest = list(waiting.stream(job_id, "a", after="1-998"))
        assert [chunk.value for chunk in rest] == [998, 999]
        assert [(s.stream, s.chunks) for s in waiting.list_streams(job_id)] == [
            ("a", 1000), ("b", 1)
        ]  # fmt: skip


def write_plainly(_payload: Any, context: JobContext) -> None:
    for n in range(1000):
        context.stream("a").write(n)
    context.stream("b").write("done")


@pytest.mark.parametrize("mode", ["thread", "process"])
async def test_a_chunk_of_a_plain_function_does_not_wait_for_the_next_one(
    database: str, client: AsyncClient, tmp_path: Path, mode: str
) -> None:
    registry, gate = Registry(), Gate.within(tmp_path)
    registry.handler("agent", process=mode == "process", max_attempts=1)(write_and_think)
    async with Worker(database, registry):
        job_id = (await client.enqueue("agent", asdict(gate))).job_id
        read: list[Any] = []
        async for chunk in client.stream(job_id, "a"):
            read.append(chunk.value)
            if len(read) == 2:
                assert (await client.get(job_id)).state == "running"
                gate.let_through()
    assert read == [1, 2, 3]


def write_and_think(payload: Gate, context: JobContext) -> None:
    context.stream("a").write(1)
    context.stream("a").write(2)
    deadline = time.monotonic() + 30
    while not payload.is_open and time.monotonic() < deadline:
        time.sleep(0.01)
    context.stream("a").write(3)
    raise ValueError("what was written is stored nevertheless")


async def test_chunks_are_stored_before_their_step(database: str, client: AsyncClient) -> None:
    """An attempt that is interrupted behind a step has lost nothing of it."""
    registry = Registry()

    @registry.handler("agent", max_attempts=2, retry_strategy="fixed", retry_initial_delay=SOON)
    async def agent(_payload: Any, context: JobContext) -> None:
        def write() -> int:
            for n in range(10):
                context.stream("a").write(n)
            return 10

        await context.step("write", write)
        if context.attempt == 1:
            raise Retry(in_=SOON)
        context.stream("a").write("end")

    async with Worker(database, registry):
        job_id = (await client.enqueue("agent")).job_id
        read = [(c.generation, c.value) async for c in client.stream(job_id, "a")]
    assert read == [*((1, n) for n in range(10)), (2, "end")]


async def test_a_listening_reader_is_told_at_once(database: str) -> None:
    registry = Registry()
    begun, said = asyncio.Event(), asyncio.Event()

    @registry.handler("agent")
    async def agent(_payload: Any, context: JobContext) -> None:
        begun.set()
        for n in range(3):
            await said.wait()
            said.clear()
            await context.stream("a").write(n)

    async with (
        AsyncClient(database, listen_database=database) as client,
        Worker(database, registry),
    ):
        job_id = (await client.enqueue("agent")).job_id
        await begun.wait()
        heard: list[Any] = []

        def read_waiting() -> None:
            with Client(database, listen_database=database) as waiting:
                heard.extend(c.value for c in waiting.stream(job_id, "a"))

        reading = asyncio.create_task(asyncio.to_thread(read_waiting))
        values: list[Any] = []
        said.set()
        async for chunk in client.stream(job_id, "a"):
            values.append(chunk.value)
            said.set()
        await reading
    assert values == heard == [0, 1, 2]


async def test_an_attempt_that_has_lost_its_job_writes_nothing_more(
    database: str, client: AsyncClient
) -> None:
    job_id = (await client.enqueue("agent")).job_id
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select jobq.claim_job(%s, 'w')", [job_id])
        connection.execute("select jobq.append(%s, 1, 'a', '[1]')", [job_id])
        connection.execute("select jobq.release(%s, 1)", [job_id])
        with pytest.raises(psycopg.Error, match="lost its lease"):
            connection.execute("select jobq.append(%s, 1, 'a', '[2]')", [job_id])
    page = await client.read_stream(job_id, "a")
    assert [chunk.value for chunk in page.chunks] == [1]
    assert not page.is_ended
    with pytest.raises(InvalidArgument):
        await client.read_stream(job_id, "a", "x")


# ---- forks, and tests of handlers


async def test_a_fork_continues_behind_the_recorded_steps(
    database: str, client: AsyncClient
) -> None:
    registry = tools()
    ran: list[str] = []

    @registry.handler("agent")
    async def agent(_payload: Any, context: JobContext) -> Any:
        one = await context.step("one", note, ran, "one")
        await context.sleep(SOON)
        called = await context.call("double", 4)
        return [one, called, await context.step("two", note, ran, "two")]

    async with Worker(database, registry):
        first = (await client.enqueue("agent")).job_id
        assert await client.result(first, timeout=20) == ["one", 8, "two"]
        copy = await client.fork(first, "two")
        assert await client.result(copy, timeout=20) == ["one", 8, "two"]
    assert ran == ["one", "two", "two"]
    assert len(await client.list_jobs(kind="double")) == 1


async def test_a_started_job_can_be_pinned_to_its_release(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each time either worker may claim it, so it must come back more often than each 15 s.
    monkeypatch.setattr(tuning, "RELEASE_WAIT_LAST", 0.5)
    ran: list[str] = []

    def of(release: str) -> Worker:
        registry = Registry()

        @registry.handler("agent", pin_release=True)
        async def agent(_payload: Any, context: JobContext) -> str:
            ran.append(release)
            await context.wait_for("go")
            return release

        return Worker(database, registry, release=release)

    async with of("old"):
        job_id = (await client.enqueue("agent")).job_id

        async def waits() -> bool:
            return len(ran) == 1 and (await client.get(job_id)).state == "queued"

        await until_async(waits, "for the wait")
    async with of("new"):
        await client.emit("go")

        async def refused() -> bool:
            reasons = [found.reason for found in await client.explain(job_id)]
            job = await client.get(job_id)
            is_back = job.state == "queued" and job.attempts == 0
            return is_back and job.attempt > 2 and reasons[:1] == ["release"]

        await until_async(refused, "for the other release to return it")
        async with of("old"):
            assert await client.result(job_id, timeout=20) == "old"
    assert set(ran) == {"old"}


def note(ran: list[str], name: str) -> str:
    ran.append(name)
    return name


def test_handlers_that_call_can_be_tested(database: str) -> None:
    registry = tools()

    @registry.handler("agent")
    def agent(_payload: Any, context: JobContext) -> Any:
        context.stream("log").write("begun")
        return [context.call("double", 4), context.receive("chat")]

    with psycopg.connect(database) as connection:
        client = Client(connection)
        job_id = client.enqueue("agent").job_id
        assert [ran.kind for ran in run_due(connection, registry)] == ["agent", "double", "agent"]
        client.send_message(job_id, "chat", "hi")
        [ran] = run_due(connection, registry)
        assert ran.result == [8, "hi"]
        assert [c.value for c in client.read_stream(job_id, "log").chunks] == ["begun"] * 3
