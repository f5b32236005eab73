"""`run_due`: the jobs of a test run inside its transaction, and nothing stays behind."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from jobq import Cancelled, Client, JobContext, Permanent, Registry, Retry, Snooze, Unable
from jobq.testing import run_due

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


def test_unknown_kinds_and_bad_payloads_are_dead(connection: Connection) -> None:
    registry = Registry()

    @registry.handler("typed")
    def typed(payload: list[int]) -> int:
        return sum(payload)

    client = Client(connection)
    client.enqueue("nobody")
    client.enqueue("typed", ["x"])
    client.enqueue("typed", [1, 2])
    ran = run_due(connection, registry)
    codes = [client.get(r.job_id).last_error_code for r in ran]
    assert codes == ["UNKNOWN_KIND", "PAYLOAD_INVALID", None]
    assert ran[2].result == 3
