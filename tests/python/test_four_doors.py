"""Bad input is refused alike in SQL, Python, over HTTP and by commands, and changes nothing."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner
from http_api import SETTINGS, Api, opened

from jobq import Client
from jobq.errors import JobqError
from jobq_cli import main

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

NOBODY = str(uuid4())
JOB = "the job"
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """Something that must be refused.

    Attributes:
        code: the symbolic code.
        sqlstate: its SQLSTATE.
        sql: the statement.
        python: the call.
        http: method, path, body and status.
        cli: the arguments of `jobq`.
        words: what the refusal must tell, wherever it is told.
        usage: whether the command line sees by itself that it cannot be meant.
    """

    code: str
    sqlstate: str
    sql: str
    python: Callable[[Client, str], object]
    http: tuple[str, str, dict[str, Any], int]
    cli: list[str]
    words: str = ""
    usage: bool = False


CASES = {
    "change an unknown job": Case(
        "JOB_NOT_FOUND", "JQ001",
        f"select * from jobq.change_many('{{\"run_at\": \"now\"}}', '{{{NOBODY}}}')",
        lambda c, _: c.change_many([NOBODY], run_now=True),
        ("POST", "/jobs:change", {"job_ids": [NOBODY], "changes": {"run_now": True}}, 404),
        ["change", NOBODY, "--now"], NOBODY,
    ),
    "cancel an unknown job": Case(
        "JOB_NOT_FOUND", "JQ001",
        f"select * from jobq.cancel_many('{{{JOB},{NOBODY}}}')",
        lambda c, job: c.cancel_many([job, NOBODY]),
        ("POST", "/jobs:cancel", {"job_ids": [JOB, NOBODY]}, 404),
        ["cancel", JOB, NOBODY], NOBODY,
    ),
    "delete an unknown job": Case(
        "JOB_NOT_FOUND", "JQ001",
        f"select * from jobq.delete_many('{{{JOB},{NOBODY}}}')",
        lambda c, job: c.delete_many([job, NOBODY]),
        ("POST", "/jobs:delete", {"job_ids": [JOB, NOBODY]}, 404),
        ["delete", JOB, NOBODY], NOBODY,
    ),
    "redrive an unknown job": Case(
        "JOB_NOT_FOUND", "JQ001",
        f"select jobq.redrive('{NOBODY}')",
        lambda c, _: c.redrive(NOBODY),
        ("POST", f"/jobs/{NOBODY}/redrive", {}, 404),
        ["redrive", NOBODY],
    ),
    "change without saying which": Case(
        "INVALID_ARGUMENT", "22023",
        "select * from jobq.change_many('{\"run_at\": \"now\"}')",
        lambda c, _: c.change_many(run_now=True),
        ("POST", "/jobs:change", {"changes": {"run_now": True}}, 400),
        ["change", "--now"], usage=True,
    ),
    "nothing is to change": Case(
        "INVALID_ARGUMENT", "22023",
        f"select * from jobq.change_many('{{\"run_at\": null}}', '{{{JOB}}}')",
        lambda c, job: c.change_many([job]),
        ("POST", "/jobs:change", {"job_ids": [JOB], "changes": {"run_at": None}}, 400),
        ["change", JOB],
    ),
    "now and later": Case(
        "INVALID_ARGUMENT", "22023",
        f"select * from jobq.change_many('{{\"run_at\": \"now\", \"run_now\": 1}}', '{{{JOB}}}')",
        lambda c, job: c.change_many([job], run_now=True, run_at=LATER),
        ("POST", "/jobs:change",
            {"job_ids": [JOB], "changes": {"run_now": True, "run_at": LATER.isoformat()}}, 400),
        ["change", JOB, "--now", "--run-at", "2100-01-01"],
    ),
    "cancel without saying which": Case(
        "INVALID_ARGUMENT", "22023",
        "select * from jobq.cancel_many()",
        lambda c, _: c.cancel_many(),
        ("POST", "/jobs:cancel", {}, 400),
        ["cancel"], usage=True,
    ),
    "delete without saying which": Case(
        "INVALID_ARGUMENT", "22023",
        "select * from jobq.delete_many()",
        lambda c, _: c.delete_many(),
        ("POST", "/jobs:delete", {}, 400),
        ["delete"], usage=True,
    ),
    "a state alone does not say which": Case(
        "INVALID_ARGUMENT", "22023",
        "select * from jobq.delete_many(state => 'queued')",
        lambda c, _: c.delete_many(state="queued"),
        ("POST", "/jobs:delete", {"state": "queued"}, 400),
        ["delete", "--state", "queued"], usage=True,
    ),
    "an empty list of ids says none": Case(
        "INVALID_ARGUMENT", "22023",
        "select * from jobq.delete_many(max_jobs => 0, queue => 'q')",
        lambda c, _: c.delete_many(queue="q", max_jobs=0),
        ("POST", "/jobs:delete", {"queue": "q", "max_jobs": 0}, 400),
        ["delete", "--queue", "q", "--limit", "0"], usage=True,
    ),
    "a payload for a job that has run": Case(
        "IMMUTABLE", "JQ002",
        f"select * from jobq.change_many('{{\"payload\": {{\"n\": 2}}}}', '{{{JOB}}}')",
        lambda c, job: c.change_many([job], payload={"n": 2}),
        ("POST", "/jobs:change", {"job_ids": [JOB], "changes": {"payload": {"n": 2}}}, 409),
        ["change", JOB, "--payload", '{"n": 2}'],
    ),
    "a payload for a job that has run, at a dry run": Case(
        "IMMUTABLE", "JQ002",
        f"select * from jobq.change_many('{{\"payload\": 2}}', '{{{JOB}}}', dry_run => true)",
        lambda c, job: c.change_many([job], payload=2, dry_run=True),
        ("POST", "/jobs:change",
            {"job_ids": [JOB], "changes": {"payload": 2}, "dry_run": True}, 409),
        ["change", JOB, "--payload", "2", "--dry-run"], "has already run",
    ),
    "metadata that is no object": Case(
        "INVALID_ARGUMENT", "22023",
        "select * from jobq.delete_many(metadata => '5')",
        lambda c, _: c.delete_many(metadata=5),  # type: ignore[arg-type]
        ("POST", "/jobs:delete", {"metadata": 5}, 400),
        ["delete", "--metadata", "5"],
    ),
    "a queue that is no text": Case(
        "INVALID_ARGUMENT", "22023",
        f"select * from jobq.change_many('{{\"queue\": 5}}', '{{{JOB}}}')",
        lambda c, job: c.change_many([job], to_queue=5),  # type: ignore[arg-type]
        ("POST", "/jobs:change", {"job_ids": [JOB], "changes": {"queue": 5}}, 400),
        ["change", JOB, "--to-queue", "q" * 129],
    ),
    "a function with its arguments": Case(
        "FUNCTION_NOT_FOUND", "JQ007",
        "select jobq.put_kind('k', run => 'app.other(integer)')",
        lambda c, _: c.put_kind("k", run="app.other(integer)"),
        ("POST", "/kinds", {"kind": "k", "run": "app.other(integer)"}, 422),
        ["declare", "k", "--run", "app.other(integer)"], "app.other(integer)",
    ),
    "no time at all": Case(
        "INVALID_ARGUMENT", "22023",
        "select jobq.put_kind('k', timeout => '0')",
        lambda c, _: c.put_kind("k", timeout="0"),
        ("POST", "/kinds", {"kind": "k", "timeout_ms": 0}, 400),
        ["declare", "k", "--timeout", "0"],
    ),
    "a function that is not there": Case(
        "FUNCTION_NOT_FOUND", "JQ007",
        "select jobq.put_kind('k', run => 'app.nothing')",
        lambda c, _: c.put_kind("k", run="app.nothing"),
        ("POST", "/kinds", {"kind": "k", "run": "app.nothing"}, 422),
        ["declare", "k", "--run", "app.nothing"], "found: none",
    ),
    "a function with another signature": Case(
        "FUNCTION_NOT_FOUND", "JQ007",
        "select jobq.put_kind('k', run => 'app.other')",
        lambda c, _: c.put_kind("k", run="app.other"),
        ("POST", "/kinds", {"kind": "k", "run": "app.other"}, 422),
        ["declare", "k", "--run", "app.other"], "found: (n integer) returns jsonb",
    ),
    "a function that the log-in may not execute": Case(
        "FUNCTION_DENIED", "42501",
        "select jobq.put_kind('k', run => 'app.guarded')",
        lambda c, _: c.put_kind("k", run="app.guarded"),
        ("POST", "/kinds", {"kind": "k", "run": "app.guarded"}, 403),
        ["declare", "k", "--run", "app.guarded"], "app.guarded",
    ),
}  # fmt: skip
# What the HTTP API calls a code of the database's.
RENAMED = {"INVALID_ARGUMENT": "INVALID_REQUEST"}


@dataclass(frozen=True)
class House:
    """A database with a job that has run and waits again, and the log-in that comes."""

    database: str
    url: str
    job: str

    def state(self) -> list[Any]:
        """Return all that bad input might change."""
        with psycopg.connect(self.database) as connection:
            return [
                connection.execute(query).fetchall()
                for query in (
                    "select j::text from jobq_private.job as j order by 1",
                    "select k::text from jobq_private.kind as k order by 1",
                    "select a::text from jobq_private.audit as a where action <> 'create_api_key'",
                )
            ]

    def meant(self, what: Any) -> Any:
        """Put the job's id where a case means it."""
        return json.loads(json.dumps(what).replace(JOB, self.job))


@pytest.fixture
def house(database: str) -> House:
    login = f"visitor_{uuid4().hex[:12]}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"create role {login} login password 'p' in role jobq_operator")
        connection.execute(
            f"grant jobq_producer, jobq_worker, jobq_reader to {login};"
            "create schema app; grant usage on schema app to public;"
            "create function app.other(n integer) returns jsonb language sql return to_jsonb(n);"
            "create function app.guarded(p jsonb) returns jsonb language sql return p;"
            "revoke execute on function app.guarded from public;"
        )
        row = connection.execute("select jobq.enqueue('work', queue => 'q')").fetchone()
        connection.execute(
            "select jobq.fail(job_id, attempt, 'x') from jobq.claim('{q}', 'w') as c"
        )
    assert row is not None
    url = psycopg.conninfo.make_conninfo(database, user=login, password="p")
    return House(database, url, str(row[0]))


@asynccontextmanager
async def server(house: House) -> AsyncIterator[Api]:
    """Open the HTTP API as the log-in, with a key that the operator made."""
    async with opened(house.url, SETTINGS) as api:
        yield api


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


async def test_what_is_refused_is_refused_alike_and_changes_nothing(
    house: House, case: Case
) -> None:
    before = house.state()

    with psycopg.connect(house.url, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as by_sql:
            connection.execute(case.sql.replace(JOB, house.job))
        diagnosis = by_sql.value.diag
        assert (by_sql.value.sqlstate, diagnosis.constraint_name) == (case.sqlstate, case.code)
        assert case.words in (diagnosis.message_detail or "")

    with Client(house.url) as client, pytest.raises(JobqError) as by_python:
        case.python(client, house.job)
    assert by_python.value.code == case.code
    assert case.words in by_python.value.detail

    method, path, body, status = house.meant(case.http)
    async with server(house) as api:
        answer = await api.ask(method, path, json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == RENAMED.get(case.code, case.code)
    assert case.words in json.dumps(error, ensure_ascii=False)

    done = CliRunner().invoke(main, [*house.meant(case.cli), "--database", house.url])
    assert done.exit_code == (2 if case.usage else 1), done.output
    if not case.usage:
        assert case.code in done.output
        assert case.words in done.output.replace("\n", " ")

    assert house.state() == before
