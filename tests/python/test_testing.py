"""`run_due`: the jobs of a test run inside its transaction, and nothing stays behind."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from jobq import Cancelled, Client, JobContext, Permanent, Registry, Retry, Snooze, Unable
from jobq.errors import JobNotFound, NotPermitted
from jobq_testing import advance, assert_enqueued, fresh_database, run_due, run_due_async

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Connection = psycopg.Connection[tuple[Any, ...]]


def raising(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    with psycopg.connect(database) as connection:
        yield connection
        connection.rollback()


def test_due_jobs_run_and_the_rollback_takes_all_back(
    database: str, connection: Connection
) -> None:
    registry = Registry()

    @registry.handler("a")
    async def handler(payload: dict[str, Any], context: JobContext) -> Any:
        await context.log("INFO", "hello")
        context.progress(1)
        Client(connection).enqueue("b", payload)
        return payload

    @registry.handler("b", transactional=True)
    def other(payload: dict[str, Any], connection: Connection) -> str:
        connection.execute("create table public.made (n int)")
        return str(payload)

    client = Client(connection)
    client.enqueue("a", {"n": 1})
    client.enqueue("a", run_at=None, queue="other")
    ran = run_due(connection, registry)
    assert [(r.kind, r.state, r.result) for r in ran] == [
        ("a", "succeeded", {"n": 1}),
        ("b", "succeeded", "{'n': 1}"),
    ]
    assert [line.message for line in client.logs(ran[0].job_id)] == ["hello"]
    connection.execute("select * from public.made")
    connection.rollback()
    with Client(database) as other_client:
        assert other_client.list_jobs() == []


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (ValueError("no"), "retrying", "ERROR"),
        (Retry("later", in_=60, code="LATER"), "retrying", "LATER"),
        (Permanent("GONE", "for good"), "dead", "GONE"),
        (Snooze(timedelta(hours=1)), "queued", None),
    ],
)
def test_a_failure_is_settled_and_its_rows_are_gone(
    connection: Connection, error: Exception, state: str, code: str | None
) -> None:
    registry = Registry()

    @registry.handler("a", transactional=True)
    def handler(connection: Connection) -> None:
        connection.execute("create table public.made (n int)")
        raise error

    Client(connection).enqueue("a")
    [ran] = run_due(connection, registry)
    assert (ran.state, ran.error) == (state, error)
    assert Client(connection).get(ran.job_id).last_error_code == code
    assert connection.execute("select to_regclass('public.made')").fetchone() == (None,)


@pytest.mark.parametrize("outcome", [Retry("busy", details={"n": 1}), Permanent("NO", details={})])
def test_an_outcome_may_say_more(connection: Connection, outcome: Retry | Permanent) -> None:
    registry = Registry()

    @registry.handler("a")
    def handler() -> None:
        raise outcome

    client = Client(connection)
    job = client.enqueue("a")
    run_due(connection, registry)
    [attempt] = client.attempts(job.job_id)
    assert attempt.error_details == outcome.details


@pytest.mark.parametrize(
    ("does", "state", "code"),
    [
        (object, "dead", "RESULT_INVALID"),
        (lambda: "nul \0", "dead", "RESULT_INVALID"),
        (lambda: next(iter(())), "retrying", "ERROR"),
        (raising(Retry(details={"bad": object()})), "retrying", "RETRY"),
        (raising(Cancelled()), "dead", "CANCELLED"),
        (raising(SystemExit(3)), "retrying", "ERROR"),
        (raising(Unable("NO_DRIVER", "none here")), "queued", None),
    ],
)
def test_what_a_worker_would_make_of_it_is_made_of_it_here(
    connection: Connection, does: Callable[[], Any], state: str, code: str | None
) -> None:
    registry = Registry()

    @registry.handler("a", transactional=True)
    def handler(connection: Connection) -> Any:
        connection.execute("create table public.made (n int)")
        return does()

    Client(connection).enqueue("a")
    [ran] = run_due(connection, registry)
    job = Client(connection).get(ran.job_id)
    assert (job.state, job.last_error_code) == (state, code)
    assert connection.execute("select to_regclass('public.made')").fetchone() == (None,)


def test_a_failure_can_be_raised(connection: Connection) -> None:
    registry = Registry()

    @registry.handler("a")
    def handler() -> None:
        raise ZeroDivisionError

    Client(connection).enqueue("a")
    with pytest.raises(ZeroDivisionError):
        run_due(connection, registry, reraise=True)


def test_unknown_kinds_wait_and_bad_payloads_are_dead(connection: Connection) -> None:
    registry = Registry()

    @registry.handler("typed")
    def typed(payload: list[int]) -> int:
        return sum(payload)

    client = Client(connection)
    client.enqueue_many([{"kind": "nobody"}] * 2)
    client.enqueue("typed", ["x"])
    client.enqueue("typed", [1, 2])
    ran = run_due(connection, registry)
    assert [(r.kind, r.state) for r in ran] == [
        ("nobody", "queued"),
        ("typed", "dead"),
        ("typed", "succeeded"),
    ]
    assert client.get(ran[1].job_id).last_error_code == "PAYLOAD_INVALID"
    assert ran[2].result == 3


def test_a_transactional_coroutine_works_on_the_tests_connection(connection: Connection) -> None:
    registry = Registry()

    @registry.handler("writes", transactional=True, max_attempts=1)
    async def writes(payload: bool, connection: psycopg.AsyncConnection[Any]) -> str:
        await connection.execute("create table public.made (n int)")
        async with connection.transaction():
            await connection.execute("insert into public.made values (1)")
        if payload:
            raise Permanent("NO")
        return "made"

    client = Client(connection)
    client.enqueue("writes", payload=True)
    client.enqueue("writes", payload=False)
    ran = run_due(connection, registry)
    assert [(r.state, r.result) for r in ran] == [("dead", None), ("succeeded", "made")]
    assert connection.execute("select n from public.made").fetchall() == [(1,)]


async def test_in_a_coroutine_handlers_run_in_its_event_loop(database: str) -> None:
    registry = Registry()
    loop = asyncio.get_running_loop()
    said: list[Any] = []

    @registry.before
    async def before(context: JobContext) -> None:
        said.append((context.kind, asyncio.get_running_loop() is loop))

    @registry.handler("awaited", transactional=True)
    async def awaited(connection: psycopg.AsyncConnection[Any]) -> bool:
        await connection.execute("create table public.made (n int)")
        return asyncio.get_running_loop() is loop

    @registry.handler("plain", transactional=True)
    def plain(connection: Connection) -> bool:
        connection.execute("insert into public.made values (1)")
        return threading.current_thread() is threading.main_thread()

    @registry.handler("batch", batch=10)
    async def batch(payloads: list[int]) -> list[int]:
        return [n + 1 for n in payloads]

    @registry.handler("failing", batch=10, max_attempts=1)
    def failing(payloads: list[int]) -> list[Any]:
        return [ValueError(f"no {n}") for n in payloads]

    @registry.after
    def after(context: JobContext, result: object) -> None:
        if context.kind == "batch":
            said.append(result)

    @registry.on_error
    def on_error(_context: JobContext, error: BaseException) -> None:
        said.append(str(error))

    async with await psycopg.AsyncConnection.connect(database) as connection:
        for kind in ("awaited", "plain", "batch", "failing"):
            await connection.execute("select jobq.enqueue(%s, '1', max_attempts => 1)", [kind])
        assert_enqueued(connection, "awaited", 1)
        assert advance(connection, 60) == 4
        ran = await run_due_async(connection, registry)
        assert [(r.kind, r.result) for r in ran] == [
            ("awaited", True), ("plain", False), ("batch", 2), ("failing", None),
        ]  # fmt: skip
        rows = await connection.execute("select n from public.made")
        assert await rows.fetchall() == [(1,)]
        await connection.rollback()
    assert said == [
        ("awaited", True), ("plain", True), ("batch", True), 2, ("failing", True), "no 1",
    ]  # fmt: skip


async def test_run_due_in_an_event_loop_says_what_to_use(database: str) -> None:
    with (
        psycopg.connect(database) as connection,
        pytest.raises(RuntimeError, match="run_due_async"),
    ):
        run_due(connection, Registry())


@pytest.mark.parametrize("is_awaited", [False, True])
def test_on_dead_is_called(connection: Connection, *, is_awaited: bool) -> None:
    registry = Registry()
    said: list[str] = []

    def on_dead(context: JobContext, code: str, error: str) -> None:
        said.append(f"{context.kind} {code} {error}")

    async def awaited(context: JobContext, code: str, error: str) -> None:
        on_dead(context, code, error)

    @registry.handler("a", max_attempts=2, on_dead=awaited if is_awaited else on_dead)
    def handler(payload: Any, context: JobContext) -> None:
        raise Retry("again", in_=60)

    Client(connection).enqueue("a", max_attempts=2)
    assert [r.state for r in run_due(connection, registry)] == ["retrying"]
    assert said == []
    advance(connection, 61)
    assert [r.state for r in run_due(connection, registry)] == ["dead"]
    assert said == ["a RETRY again"]


def test_time_passes_when_the_test_says_so(connection: Connection) -> None:
    registry = Registry()
    registry.handler("a")(lambda: None)
    client = Client(connection)
    now = datetime.now(UTC)
    client.enqueue("a", run_at=now + timedelta(hours=1))
    late = client.enqueue(
        "a", run_at=now + timedelta(days=2), expires_at=now + timedelta(days=3)
    ).job_id
    assert run_due(connection, registry) == []
    assert advance(connection, timedelta(hours=2)) == 2
    assert [r.state for r in run_due(connection, registry)] == ["succeeded"]
    advance(connection, timedelta(days=4))
    assert run_due(connection, registry) == []
    assert client.get(late).last_error_code == "EXPIRED"
    connection.execute("set role jobq_operator")
    with pytest.raises(NotPermitted):
        advance(connection, 1)


def test_what_was_enqueued_is_asserted(connection: Connection) -> None:
    client = Client(connection)
    client.enqueue("mail", {"to": "ada", "more": {"n": 1, "m": 2}}, queue="q")
    client.enqueue("mail", {"to": "bob"})
    [job] = assert_enqueued(connection, "mail", {"more": {"n": 1}})
    assert job.payload["to"] == "ada"
    assert len(assert_enqueued(connection, "mail", count=2)) == 2
    assert_enqueued(connection, "mail", queue="q")
    assert_enqueued(connection, "other", count=0)
    with pytest.raises(AssertionError, match="found 0; of this kind there are:\n  q queued"):
        assert_enqueued(connection, "mail", {"to": "eve"})
    client.cancel(job.job_id)
    assert_enqueued(connection, "mail")


def test_a_job_without_a_trace_succeeds(connection: Connection) -> None:
    registry = Registry()
    registry.handler("a", keep_succeeded=0)(lambda: 1)
    client = Client(connection)
    registry.declare(client)
    client.enqueue("a")
    [ran] = run_due(connection, registry)
    assert (ran.state, ran.result) == ("succeeded", None)
    with pytest.raises(JobNotFound):
        client.get(ran.job_id)


@pytest.mark.prove
def test_fresh_databases_are_made_of_a_template(database: str) -> None:
    with fresh_database(database) as first, fresh_database(database) as second:
        with psycopg.connect(first) as connection:
            Client(connection).enqueue("a")
        with psycopg.connect(second) as connection:
            assert_enqueued(connection, "a", count=0)
    with psycopg.connect(database) as connection:
        names = connection.execute("select datname from pg_database order by 1").fetchall()
    assert sum(name.startswith("jobq_template_") for (name,) in names) == 1
    assert not any(name.startswith("jobq_test_") for (name,) in names)
