"""The client: what it returns, what it raises, and whose transaction it works in."""

from __future__ import annotations

import inspect
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest

from jobq import AsyncClient, Client, Graph, Registry, errors
from jobq.errors import (
    Conflict,
    DatabaseUnavailable,
    IllegalState,
    InvalidArgument,
    JobCancelled,
    JobFailed,
    JobNotFound,
    NotDeployed,
    NotFound,
    NotPermitted,
    PayloadInvalid,
    PayloadTooLarge,
    QueueFull,
    translate,
)
from jobq.models import STATES, Enqueued, Job, record
from jobq_embedded import Server
from servers import DEBIAN_15

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from servers import Cluster

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    with Client(database) as client:
        yield client


@pytest.fixture(scope="module")
def refused(cluster: Cluster) -> Iterator[Client]:
    """A client for calls that leave nothing: they share a database."""
    with cluster.database() as url, Client(url) as client:
        yield client


def finish(connection: Connection, kind: str = "a") -> None:
    """Claim and complete the next job, as a worker would."""
    connection.execute(
        "select jobq.complete(job_id, attempt, '{\"n\": 1}') from jobq.claim('{default}', 'w')"
    )


LISTS: list[tuple[str, Callable[[Client], object]]] = [
    ("kind", lambda client: client.enqueue(["a"])),  # type: ignore[arg-type]
    ("kind", lambda client: client.enqueue(b"a")),  # type: ignore[arg-type]
    ("kind", lambda client: client.enqueue(("a",), idempotency_key="k")),  # type: ignore[arg-type]
    ("queue", lambda client: client.enqueue("a", queue={"q": 1})),  # type: ignore[arg-type]
    ("dedup_key", lambda client: client.enqueue("a", dedup_key=["k"])),  # type: ignore[arg-type]
    (
        "concurrency_key",
        lambda client: client.enqueue("a", concurrency_key=["k"]),  # type: ignore[arg-type]
    ),
    ("kind", lambda client: client.enqueue_many([{"kind": "a"}, {"kind": ["a"]}])),
    ("queue", lambda client: client.enqueue_many([{"kind": "a", "queue": ["q"]}])),
    ("kind", lambda client: client.enqueue_graph({"jobs": [{"name": "n", "kind": ["a"]}]})),
    ("kind", lambda _: Graph().add(["a"])),  # type: ignore[arg-type]
    ("kind", lambda _: Registry().handler(["a"])),  # type: ignore[call-overload]
    ("queue", lambda _: Registry().handler("a", queue=["q"])),  # type: ignore[call-overload]
    ("kind", lambda client: client.put_kind(["a"])),  # type: ignore[arg-type]
    ("queue", lambda client: client.put_queue(["q"])),  # type: ignore[arg-type]
    ("queue", lambda client: client.pause(["q"])),  # type: ignore[arg-type]
    ("kind", lambda client: client.list_jobs(kind=["a"])),  # type: ignore[arg-type]
    ("queue", lambda client: client.cancel_many(queue=["q"])),  # type: ignore[arg-type]
    ("kind", lambda client: client.find(["a"], "k")),  # type: ignore[arg-type]
    (
        "kind",
        lambda client: client.create_schedule("s", ["a"], every=60),  # type: ignore[arg-type]
    ),
    ("name", lambda client: client.create_schedule(["s"], "a", every=60)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(
    ("name", "call"), LISTS, ids=[f"{n} {name}" for n, (name, _) in enumerate(LISTS)]
)
def test_a_list_is_no_text(refused: Client, name: str, call: Callable[[Client], object]) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name} must be one text: "):
        call(refused)


@pytest.mark.parametrize("jobs", ["ab", b"ab", {"kind": "a"}, [{"kind": "a"}, None]], ids=repr)
def test_what_is_no_job_is_refused(refused: Client, jobs: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^each job must be an object: "):
        refused.enqueue_many(jobs)


def test_an_enqueue_selects_one_value(connect: Connect) -> None:
    connection = connect()
    connection.prepare_threshold = 0
    assert Client(connection).enqueue("a", {"n": 1}, queue="q").created
    prepared = connection.execute("select statement from pg_prepared_statements").fetchall()
    assert [text for (text,) in prepared if "enqueue" in text] == [
        'select "jobq"."enqueue"("kind" => $1, "payload" => $2, "queue" => $3)'
    ]


@pytest.mark.parametrize(
    "keys", [{}, {"idempotency_key": "k", "dedup_key": "d", "dedup": "replace"}]
)
def test_a_job_is_enqueued_and_read_back_with_every_option(
    client: Client, keys: dict[str, Any]
) -> None:
    run_at = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    job = client.enqueue(
        "a",
        {"n": [1, 2.5, None, "ü"]},
        queue="q",
        run_at=run_at,
        priority=7,
        max_attempts=9,
        timeout=timedelta(seconds=90),
        metadata={"m": True},
        expires_at=run_at + timedelta(days=1),
        cost=2.5,
        **keys,
    )
    found = client.get(job.job_id)
    assert job.created
    assert found.job_id == job.job_id
    assert (found.kind, found.queue, found.state) == ("a", "q", "queued")
    assert found.payload == {"n": [1, 2.5, None, "ü"]}
    assert found.cost == 2.5
    assert found.run_at == run_at
    assert found.expires_at == run_at + timedelta(days=1)
    assert (found.priority, found.max_attempts) == (7, 9)
    assert found.timeout == timedelta(seconds=90)
    assert (found.idempotency_key, found.dedup_key) == (
        keys.get("idempotency_key"),
        keys.get("dedup_key"),
    )
    assert found.metadata == {"m": True}
    assert not found.is_finished


@pytest.mark.parametrize(
    "options",
    [
        {"kind": None},
        {"kind": ""},
        {"kind": "a\0"},
        {"kind": "\ud800"},
        {"payload": object()},
        {"payload": {"a": "\0"}},
        {"queue": "q" * 129},
        {"priority": 2**40},
        {"priority": 1.5},
        {"max_attempts": 0},
        {"timeout": "soon"},
        {"timeout": timedelta(seconds=-5)},
        {"run_at": "infinity"},
        {"metadata": [1]},
    ],
)
@pytest.mark.parametrize("keys", [{}, {"idempotency_key": "k"}])
def test_what_cannot_be_enqueued_is_an_invalid_argument(
    refused: Client, options: dict[str, Any], keys: dict[str, str]
) -> None:
    job = {"kind": "a", **options, **keys}
    with pytest.raises(InvalidArgument):
        refused.enqueue(**job)
    with pytest.raises(InvalidArgument):
        refused.enqueue_many([{"kind": "b"}, job])
    assert refused.list_jobs() == []


@pytest.mark.parametrize("value", [float("nan"), [1, float("inf")], {"a": {"b": -float("inf")}}])
def test_numbers_that_json_has_not_are_refused(client: Client, value: Any) -> None:
    """They would become null without a word."""
    for call in (
        lambda: client.enqueue("a", value),
        lambda: client.enqueue("a", {}, metadata={"v": value}),
        lambda: client.enqueue_many([{"kind": "a", "payload": value}]),
    ):
        with pytest.raises(InvalidArgument, match="NaN"):
            call()
    assert client.get(client.enqueue("a", {"v": None, "n": 1e300}).job_id).payload["v"] is None


def test_defaults_are_the_databases(client: Client) -> None:
    found = client.get(client.enqueue("a").job_id)
    assert (found.queue, found.priority, found.max_attempts) == ("default", 0, 5)
    assert found.payload == {}


@dataclass
class Point:
    x: int
    at: datetime


def test_a_payload_may_be_a_dataclass(client: Client) -> None:
    job = client.enqueue("a", Point(1, datetime(2026, 1, 1, tzinfo=UTC)))
    assert client.get(job.job_id).payload == {"x": 1, "at": "2026-01-01T00:00:00Z"}


def test_a_key_that_is_held_gives_its_job(client: Client) -> None:
    first = client.enqueue("a", idempotency_key="k")
    assert client.enqueue("a", {"other": 1}, idempotency_key="k") == Enqueued(first.job_id, False)
    assert client.enqueue("b", idempotency_key="k").created


def test_a_key_leads_to_its_job(client: Client) -> None:
    job = client.enqueue("a", idempotency_key="k")
    assert client.find("a", "k") == job.job_id
    assert client.find("b", "k") is None


def test_many_jobs_come_back_in_their_order(client: Client) -> None:
    first = client.enqueue("a", idempotency_key="k")
    found = client.enqueue_many(
        [{"kind": "b"}, {"kind": "a", "idempotency_key": "k"}, {"kind": "c", "queue": None}]
    )
    assert [job.created for job in found] == [True, False, True]
    assert found[1].job_id == first.job_id
    assert [client.get(job.job_id).kind for job in found] == ["b", "a", "c"]


def test_jobs_are_listed_newest_first_and_by_pages(client: Client) -> None:
    ids = [client.enqueue(kind, queue="q").job_id for kind in "aabb"]
    client.cancel(ids[3])
    assert [job.job_id for job in client.list_jobs()] == ids[::-1]
    page = client.list_jobs(max_jobs=2)
    rest = client.list_jobs(before=page[-1].job_id)
    assert [job.job_id for job in rest] == [ids[1], ids[0]]
    assert [job.job_id for job in client.list_jobs(kind="b", state="cancelled")] == [ids[3]]
    assert client.list_jobs(queue="other") == []


def test_a_finished_job_shows_result_and_attempts(client: Client, connect: Connect) -> None:
    job = client.enqueue("a")
    finish(connect())
    found = client.get(job.job_id)
    assert (found.state, found.result, found.is_finished) == ("succeeded", {"n": 1}, True)
    [attempt] = client.attempts(job.job_id)
    assert (attempt.attempt, attempt.state, attempt.worker) == (1, "succeeded", "w")
    assert attempt.duration is not None and attempt.duration > timedelta(0)


def test_cancel_is_three_way(client: Client, connect: Connect) -> None:
    waiting, running = client.enqueue("a", priority=0), client.enqueue("a", priority=1)
    connect().execute("select jobq.claim('{default}', 'w')")
    assert client.cancel(waiting.job_id, "why") == "cancelled"
    assert client.get(waiting.job_id).cancel_reason == "why"
    assert client.cancel(running.job_id) == "cancel_requested"
    assert client.cancel(waiting.job_id) == "already_finished"


def test_redrive_brings_dead_and_cancelled_jobs_back(client: Client, connect: Connect) -> None:
    cancelled = client.enqueue("a").job_id
    client.cancel(cancelled)
    assert client.redrive(cancelled) == "queued"
    assert client.get(cancelled).state == "queued"
    child = client.enqueue("a", after=[cancelled]).job_id
    client.cancel(child)
    assert client.redrive(child) == "blocked"
    connect().execute(
        "select jobq.fail(job_id, attempt, 'x', 'BAD', false) from jobq.claim('{default}', 'w')"
    )
    assert client.redrive_many(kind="b") == []
    assert client.redrive_many(kind="a", error_code="BAD") == [cancelled]


def test_a_finished_job_is_rerun_and_another_gets_more_attempts(
    client: Client, connect: Connect
) -> None:
    job_id = client.enqueue("a", {"n": 1}, max_attempts=1).job_id
    connection = connect()
    connection.execute("select jobq.claim('{default}', 'w')")
    connection.execute("select jobq.fail(%s, 1, 'x')", [job_id])
    client.redrive(job_id, max_attempts=2)
    client.change_many([job_id], max_attempts=3)
    assert client.get(job_id).max_attempts == 3
    connection.execute("select jobq.complete(job_id, attempt) from jobq.claim('{default}', 'w')")
    copy = client.get(client.rerun(job_id))
    assert (copy.state, copy.payload) == ("queued", {"n": 1})
    assert copy.metadata["rerun_of"] == str(job_id)


def test_many_jobs_are_changed_cancelled_and_deleted(client: Client) -> None:
    first, second, third = (
        client.enqueue("a", n, queue="q", metadata={"tenant": n}).job_id for n in (1, 2, 3)
    )
    later = datetime.now(UTC) + timedelta(hours=1)
    assert client.change_many(
        [first], run_at=later, priority=5, payload={"n": 4}, timeout=timedelta(seconds=3)
    ) == [first]
    job = client.get(first)
    assert (job.run_at, job.priority, job.payload, job.timeout) == (
        later,
        5,
        {"n": 4},
        timedelta(seconds=3),
    )
    assert client.change_many(queue="q", run_now=True, to_queue="r", dry_run=True) == [
        first,
        second,
        third,
    ]
    assert client.change_many(metadata={"tenant": 2}, run_now=True, to_queue="r") == [second]
    assert client.get(second).queue == "r"
    (cancelled,) = client.cancel_many(queue="q", max_jobs=1, reason="why")
    assert (cancelled.job_id, cancelled.outcome) == (first, "cancelled")
    assert client.delete_many([str(first), second]) == [second, first]
    assert [job.job_id for job in client.list_jobs()] == [third]
    with pytest.raises(InvalidArgument):
        client.delete_many()
    with pytest.raises(JobNotFound):
        client.change_many([second], priority=1)


def test_call_returns_the_result_and_refuses_an_open_transaction(
    client: Client, connect: Connect
) -> None:
    with pytest.raises(TimeoutError):
        client.call("a", timeout=0.01)
    with pytest.raises(InvalidArgument, match="timeout"):
        client.call("a", timeout="1")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="list"):
        client.work("default")
    dead = "select jobq.fail(job_id, attempt, 'x', 'BAD', false) from jobq.claim('{default}', 'w')"
    connect().execute(dead)
    connection = connect()
    connection.execute("create function public.same(n jsonb) returns jsonb language sql return n")
    client.put_kind("same", run="public.same")
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(client.call, "same", {"n": 1}, 20, priority=5)
        while not client.work():
            pass
        assert answer.result() == {"n": 1}
    with connection.transaction(), pytest.raises(InvalidArgument):
        Client(connection).call("same")
    assert len(client.list_jobs()) == 2


def test_a_schedule_is_run_now(client: Client) -> None:
    client.create_schedule("nightly", "a", cron="0 3 * * *", payload={"n": 1})
    assert client.get(client.run_schedule("nightly")).payload == {"n": 1}


def test_logs_explain_and_stats(client: Client, connect: Connect) -> None:
    job = client.enqueue("a")
    connect().execute("select jobq.log(%s, 0, 'INFO', 'hello')", [job.job_id])
    assert [(line.level, line.message) for line in client.logs(job.job_id)] == [("INFO", "hello")]
    client.pause("default", "lunch")
    assert client.explain(job.job_id)[0].reason == "paused"
    [stats] = client.queue_stats()
    assert (stats.queue, stats.queued, stats.is_paused) == ("default", 1, True)
    client.resume("default")
    assert client.explain(job.job_id)[0].reason == "no_worker"


def test_definitions_take_effect(client: Client) -> None:
    client.configure(max_attempts=4, lease="10 s")
    client.put_queue("q", max_attempts=3)
    client.put_kind("a", queue="q", timeout=timedelta(seconds=5), retry_jitter=0.5)
    settings = client.settings("a")
    assert (settings["queue"], settings["max_attempts"]) == ("q", 3)
    assert (settings["timeout"], settings["lease"]) == ("00:00:05", "00:00:10")
    assert settings["retry_jitter"] == 0.5
    assert client.settings("b")["max_attempts"] == 4


SCHEMA = {"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}}


@pytest.mark.parametrize(
    ("error", "code", "call"),
    [
        (JobNotFound, "JOB_NOT_FOUND", lambda c: c.get(uuid4())),
        (InvalidArgument, "INVALID_ARGUMENT", lambda c: c.get("no uuid")),
        (InvalidArgument, "INVALID_ARGUMENT", lambda c: c.enqueue("a", priority=99999)),
        (InvalidArgument, "INVALID_ARGUMENT", lambda c: c.enqueue("a", "nul \0")),
        (InvalidArgument, "INVALID_ARGUMENT", lambda c: c.list_jobs(kind="\ud800")),
        (InvalidArgument, "INVALID_ARGUMENT", lambda c: c.enqueue("a", object())),
        (InvalidArgument, "INVALID_ARGUMENT", lambda c: c.enqueue("a", timeout="soon")),
        (InvalidArgument, "INVALID_ARGUMENT", lambda c: c.enqueue_many([{"kind": "a", "x": 1}])),
        (PayloadTooLarge, "PAYLOAD_TOO_LARGE", lambda c: c.enqueue("a", "x" * 1048577)),
        (PayloadInvalid, "PAYLOAD_INVALID", lambda c: c.enqueue("typed", {"to": 1})),
        (PayloadInvalid, "SCHEMA_INVALID", lambda c: c.put_kind("a", payload_schema={"x": 1})),
        (NotFound, "QUEUE_NOT_FOUND", lambda c: c.resume("nowhere")),
        (QueueFull, "QUEUE_FULL", lambda c: c.enqueue_many([{"kind": "a", "queue": "tiny"}] * 2)),
        (IllegalState, "ILLEGAL_STATE", lambda c: c.redrive(c.enqueue("a").job_id)),
    ],
)
def test_refusals_are_exceptions_with_codes(
    client: Client, error: type[errors.JobqError], code: str, call: Callable[[Client], object]
) -> None:
    client.put_kind("typed", payload_schema=SCHEMA)
    client.put_queue("tiny", max_depth=1)
    with pytest.raises(error) as caught:
        call(client)
    assert caught.value.code == code
    if caught.value.sqlstate:
        assert isinstance(caught.value.__cause__, psycopg.Error)
        assert caught.value.sqlstate == caught.value.__cause__.sqlstate


def test_a_refusal_carries_detail_and_hint(client: Client) -> None:
    with pytest.raises(JobNotFound) as caught:
        client.get(UUID(int=0))
    assert "00000000-0000-0000-0000-000000000000" in caught.value.detail
    assert "retention" in caught.value.hint


def test_every_error_of_the_database_has_a_class(connect: Connect) -> None:
    codes = connect().execute("select distinct sqlstate, code from jobq.error").fetchall()
    assert len(codes) > 10
    for sqlstate, code in codes:
        with pytest.raises(errors.JobqError) as caught, translate():
            connect().execute("select jobq_private.raise_error(%s, 'detail')", [code])
        assert type(caught.value) is not errors.JobqError, f"{sqlstate} {code} has no class"
        assert (caught.value.code, caught.value.sqlstate) == (code, sqlstate)


def test_a_raw_illegal_change_is_an_illegal_state(client: Client, connect: Connect) -> None:
    job = client.enqueue("a")
    with pytest.raises(IllegalState) as caught, translate():
        connect().execute("update jobq.job set state = 'succeeded' where job_id = %s", [job.job_id])
    assert caught.value.sqlstate == "23503"


def test_the_callers_transaction_decides(database: str, client: Client) -> None:
    with psycopg.connect(database) as connection:
        job = Client(connection).enqueue("a")
        with pytest.raises(JobNotFound):
            client.get(job.job_id)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        connection.rollback()
        with pytest.raises(JobNotFound):
            client.get(job.job_id)
        kept = Client(connection).enqueue("a")
    assert client.get(kept.job_id).state == "queued"


def test_closing_a_client_leaves_the_callers_connection_open(connect: Connect) -> None:
    connection = connect()
    Client(connection).close()
    assert not connection.closed


def test_a_dead_server_is_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable), translate():
        psycopg.connect("postgresql://127.0.0.1:1/x", connect_timeout=2)


def test_a_wrong_password_is_not_permitted(database: str) -> None:
    url = psycopg.conninfo.make_conninfo(database, password="wrong")
    with pytest.raises(NotPermitted), translate():
        psycopg.connect(url)


def test_a_missing_password_is_not_permitted(database: str) -> None:
    url = psycopg.conninfo.make_conninfo(database, password="", passfile="/dev/null")
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(url)
    caught.value.args = ("fe_sendauth: kein Passwort angegeben",)  # as a libpq in German says it
    assert isinstance(errors.of_database(caught.value), NotPermitted)


@pytest.mark.skipif(not DEBIAN_15.is_dir(), reason="the wheels of PostgreSQL speak English only")
def test_a_server_that_speaks_german_is_never_misread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its refusals, which have no SQLSTATE here, count as a lost server: to be tried again."""
    monkeypatch.setenv("LANGUAGE", "de")
    settings = {"lc_messages": "C.UTF-8"}
    with Server(tmp_path / "db", "15", DEBIAN_15, settings=settings, durable=False) as server:
        for given in ({"password": "wrong"}, {"dbname": "nowhere"}):
            url = psycopg.conninfo.make_conninfo(server.url, **given)
            with pytest.raises(DatabaseUnavailable) as refused, translate():
                psycopg.connect(url)
            assert re.search("fehlgeschlagen|existiert nicht", refused.value.message)
        test_a_missing_password_is_not_permitted(server.url)
        with pytest.raises(NotDeployed) as caught, Client(server.url) as client:
            client.enqueue("a")
        assert "existiert nicht" in caught.value.message


def test_a_database_without_jobq_is_not_deployed(empty_database: str) -> None:
    with Client(empty_database) as client, pytest.raises(NotDeployed) as caught:
        client.enqueue("a")
    assert "jobq deploy" in caught.value.hint


def test_a_role_without_the_right_is_not_permitted(connect: Connect) -> None:
    connection = connect()
    connection.execute("set role jobq_producer")
    with pytest.raises(NotPermitted):
        Client(connection).pause("default")


def test_result_waits_for_the_end(client: Client, connect: Connect) -> None:
    job = client.enqueue("a")
    with pytest.raises(TimeoutError):
        client.result(job.job_id, timeout=0.05)
    finish(connect())
    assert client.result(job.job_id, timeout=60) == {"n": 1}


def test_result_raises_what_became_of_the_job(client: Client, connect: Connect) -> None:
    cancelled = client.enqueue("a")
    client.cancel(cancelled.job_id, "no need")
    with pytest.raises(JobCancelled, match="no need"):
        client.result(cancelled.job_id)
    dead = client.enqueue("a")
    connect().execute(
        "select jobq.fail(job_id, attempt, 'broke', 'BAD', false) from jobq.claim('{default}', 'w')"
    )
    with pytest.raises(JobFailed, match="broke") as caught:
        client.result(dead.job_id)
    assert caught.value.code == "BAD"
    assert caught.value.job.job_id == dead.job_id


async def test_the_async_client_does_the_same(database: str, connect: Connect) -> None:
    async with AsyncClient(database) as client:
        job = await client.enqueue("a", {"n": 1})
        assert (await client.get(job.job_id)).payload == {"n": 1}
        finish(connect())
        assert await client.result(job.job_id, timeout=60) == {"n": 1}
        with pytest.raises(JobNotFound):
            await client.get(uuid4())
        with pytest.raises(TimeoutError):
            await client.result((await client.enqueue("a")).job_id, timeout=0.01)


async def test_the_async_client_works_in_the_callers_transaction(database: str) -> None:
    async with await psycopg.AsyncConnection.connect(database) as connection:
        job = await AsyncClient(connection).enqueue("a")
        await connection.rollback()
        with pytest.raises(JobNotFound):
            await AsyncClient(connection).get(job.job_id)


def test_both_clients_have_the_same_methods_and_signatures() -> None:
    def methods(kind: type) -> dict[str, str]:
        return {
            name: str(inspect.signature(method))
            .replace(" ", "")
            .replace("AsyncGenerator[Event,None]", "Generator[Event,None,None]")
            .replace("AsyncGenerator[Chunk,None]", "Generator[Chunk,None,None]")
            for name, method in inspect.getmembers(kind, callable)
            if not name.startswith("_")
        }

    assert methods(Client)["get"].endswith("->jobq.models.generated.Job")
    both = methods(Client).keys() | methods(AsyncClient).keys()
    for name in both - {"run"}:
        assert methods(Client)[name] == methods(AsyncClient)[name], name


def test_columns_that_a_newer_database_adds_are_ignored(connect: Connect) -> None:
    with connect().cursor(row_factory=record(Enqueued)) as cursor:
        cursor.execute("select 7 as news, false as created, gen_random_uuid() as job_id")
        found = cursor.fetchone()
    assert isinstance(found, Enqueued)
    assert found.created is False


def test_the_record_of_a_job_has_every_column_of_the_view(connect: Connect) -> None:
    cursor = connect().execute("select * from jobq.job limit 0")
    assert [column.name for column in cursor.description or ()] == list(Job.__slots__)


def test_the_states_are_the_databases(connect: Connect) -> None:
    found = connect().execute(
        "select from_state from jobq_private.transition"
        " union select to_state from jobq_private.transition"
    )
    assert {state for [state] in found} == set(STATES)


def test_a_conflict_is_told(client: Client, connect: Connect) -> None:
    dead = client.enqueue("a", dedup_key="d")
    connect().execute(
        "select jobq.fail(job_id, attempt, 'x', 'BAD', false) from jobq.claim('{default}', 'w')"
    )
    client.enqueue("a", dedup_key="d")
    with pytest.raises(Conflict):
        client.redrive(dead.job_id)


def test_what_is_no_object_is_refused(client: Client) -> None:
    no_object: Any = "x"
    for member in ("on_success", "on_end", "on_first_death"):
        with pytest.raises(InvalidArgument, match=f"{member} must be an object"):
            client.open_batch(**{member: no_object})
    with pytest.raises(InvalidArgument, match="graph must be an object"):
        client.create_schedule("s", "a", "@daily", graph=no_object)
    with pytest.raises(InvalidArgument, match="graph must be an object"):
        client.enqueue_graph(no_object)
