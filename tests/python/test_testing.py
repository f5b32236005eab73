"""`run_due`: the jobs of a test run inside its transaction, and nothing stays behind."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from jobq import Client, JobContext, Permanent, Registry, Retry, Snooze
from jobq.errors import InvalidArgument
from jobq.testing import run_due

if TYPE_CHECKING:
    from collections.abc import Iterator

    Connection = psycopg.Connection[tuple[Any, ...]]


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


def test_details_that_are_not_json_are_told(connection: Connection) -> None:
    """A worker would leave them out."""
    registry = Registry()

    @registry.handler("a")
    def handler() -> None:
        raise Retry(details={"bad": object()})

    Client(connection).enqueue("a")
    with pytest.raises(InvalidArgument):
        run_due(connection, registry)


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
