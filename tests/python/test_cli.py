"""The command line: what it prints, and how it fails."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner
from commands import invoked
from waiting import until
from worker_process import HERE, working

from jobq import Client
from jobq.calls.options import KindOptions
from jobq.errors import NotFound
from jobq.models import DeclaredKind, JobPage
from jobq_cli import main, terminal
from jobq_cli.commands import EXTRAS
from jobq_cli.doctor import show_findings
from jobq_cli.jobs import pages
from jobq_http import create_key
from jobq_http.queues import NewKind
from jobq_operations.doctor import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    with Client(database) as client:
        yield client


@pytest.fixture
def jobq(database: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that runs a jobq command on the test's database."""
    return partial(invoked, database)


@pytest.fixture
def program(database: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """As jobq, but a process of its own, which takes half a second."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "jobq_cli", *arguments],
            env={**os.environ, "DATABASE_URL": database, "PYTHONPATH": str(HERE)},
            text=True,
            check=False,
            timeout=60,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    return run


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What a command that succeeded has printed."""
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.prove
@pytest.mark.parametrize(
    ("unbuffered", "commands"), [("", ["sql", "--help", "queues", "top --once"]), ("1", ["sql"])]
)
def test_what_cannot_be_written_is_told_in_a_line(
    program: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    unbuffered: str,
    commands: list[str],
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    for command in commands:
        with Path("/dev/full").open("w") as full:
            done = program(*command.split(), stdout=full, stderr=subprocess.PIPE)
        said = "Error: cannot write: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, said), command
    with (tmp_path / "jobq.sql").open("w") as file:
        done = program("sql", stdout=file, stderr=subprocess.PIPE, preexec_fn=limit)
    assert (done.returncode, done.stderr) == (1, "Error: cannot write: File too large\n")


@pytest.mark.prove
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_ends_a_command_without_a_word(
    database: str, monkeypatch: pytest.MonkeyPatch, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    command = [sys.executable, "-m", "jobq_cli", "sql"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(2) == b"--"
        process.stdout.close()
        assert process.wait(60) == 1
        assert process.stderr.read() == b""


def test_a_job_is_enqueued_listed_and_shown(jobq: Any, client: Client) -> None:
    job_id = said(jobq("enqueue", "greet", '{"name": "Ada"}', "--queue", "q", "--priority", "3"))
    job = client.get(job_id)
    assert (job.kind, job.payload, job.queue, job.priority) == ("greet", {"name": "Ada"}, "q", 3)
    table = said(jobq("jobs", "--state", "queued"))
    assert job_id in table and "greet" in table
    [row] = [json.loads(line) for line in said(jobq("jobs", "--json")).splitlines()]
    assert (row["job_id"], row["payload"]) == (job_id, {"name": "Ada"})
    shown = said(jobq("show", job_id))
    assert '{"name": "Ada"}' in shown
    assert "no_worker" in said(jobq("explain", job_id))


def test_events_and_signals_are_brought_and_steps_shown(
    jobq: Any, client: Client, database: str
) -> None:
    job_id = said(jobq("enqueue", "greet"))
    assert said(jobq("emit", "paid", '{"euro": 5}')) == "emitted"
    assert "already emitted" in said(jobq("emit", "paid"))
    assert said(jobq("signal", job_id, "approval", "-", input='{"by": "ada"}')) == "sent"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select jobq.claim_job(%s, 'w')", [job_id])
        connection.execute("select jobq.save_step(%s, 1, 'charge', '[7]')", [job_id])
        for event, payload in (("paid", {"euro": 5}), ("approval", {"by": "ada"})):
            wait = connection.execute(
                "select payload from jobq.wait_for(%s, 1, %s)", [job_id, event]
            )
            assert wait.fetchone() == (payload,)
    shown = said(jobq("show", job_id))
    assert "charge" in shown and "event:approval" in shown
    steps = json.loads(said(jobq("show", job_id, "--json")))["steps"]
    assert [step["name"] for step in steps] == ["charge", "event:paid", "event:approval"]
    assert jobq("emit", "paid", "{").returncode == 2
    assert "JOB_NOT_FOUND" in jobq("signal", "00000000-0000-0000-0000-000000000000", "a").stderr


def test_questions_are_listed_and_answered(jobq: Any, database: str) -> None:
    first, second = (said(jobq("enqueue", "refund", "--queue", "money")) for _ in range(2))
    form = '{"type": "object", "properties": {"cents": {"type": "integer"}}}'
    ask = "select outcome, payload from jobq.ask(%s, %s, 'sure', 'Are you sure?', %s)"
    with psycopg.connect(database, autocommit=True) as connection:
        for job_id in (first, second):
            connection.execute("select jobq.claim_job(%s, 'w')", [job_id])
            connection.execute(ask, [job_id, 1, form])
        assert "Are you sure?" in said(jobq("waits"))
        assert "limit of 1 questions reached" in jobq("waits", "--limit", "1").stderr
        rows = [json.loads(line) for line in said(jobq("waits", "--json")).splitlines()]
        assert {(row["job_id"], row["name"], row["question"]) for row in rows} == {
            (first, "sure", "Are you sure?"), (second, "sure", "Are you sure?"),
        }  # fmt: skip
        assert rows[0]["form"] == json.loads(form)
        assert said(jobq("waits", "--json", "--queue", "other")) == ""
        unfit = jobq("answer", first, "sure", "--data", "7")
        assert (unfit.returncode, "PAYLOAD_INVALID" in unfit.stderr) == (1, True)
        details = ("--reason", "a regular customer", "--by", "ada")
        done = jobq("answer", first, "sure", "--data", "-", *details, input='{"cents": 5}')
        assert said(done) == "answered"
        assert said(jobq("answer", second, "sure", "--reject")) == "answered"
        assert said(jobq("waits", "--json")) == ""
        assert "QUESTION_CLOSED" in jobq("answer", second, "sure").stderr
        assert "QUESTION_NOT_FOUND" in jobq("answer", second, "other").stderr
        answers = []
        for job_id in (first, second):
            connection.execute("select jobq.claim_job(%s, 'w')", [job_id])
            answers += connection.execute(ask, [job_id, 2, form]).fetchall()
    approved, rejected = (payload for outcome, payload in answers if outcome == "arrived")
    assert (approved["is_approved"], approved["data"]) == (True, {"cents": 5})
    assert approved["reason"] == "a regular customer" and approved["by"].endswith("ada")
    assert (rejected["is_approved"], rejected["data"]) == (False, None)


def test_subscribers_get_a_job_for_what_is_published(jobq: Any, client: Client) -> None:
    assert said(jobq("publish", "paid")) == ""
    said(jobq("subscriptions", "add", "paid", "receipt", "--queue", "mail"))
    row = json.loads(said(jobq("subscriptions", "list", "--json")))
    assert (row["event"], row["kind"], row["queue"]) == ("paid", "receipt", "mail")
    job_id, kind = said(jobq("publish", "paid", '{"n": 1}', "--idempotency-key", "k")).split()
    assert (kind, client.get(job_id).payload) == ("receipt", {"n": 1})
    said(jobq("subscriptions", "remove", "paid", "receipt"))
    assert client.list_subscriptions() == []


def test_a_payload_comes_from_standard_input_too(jobq: Any, client: Client) -> None:
    job_id = said(jobq("enqueue", "a", "-", input="[1, 2]"))
    assert client.get(job_id).payload == [1, 2]


def test_a_held_key_is_told(jobq: Any) -> None:
    first = said(jobq("enqueue", "a", "--idempotency-key", "k"))
    again = jobq("enqueue", "a", "--idempotency-key", "k")
    assert said(again) == first
    assert "already" in again.stderr


def test_enqueue_can_wait_for_the_result(jobq: Any, database: str, tmp_path: Path) -> None:
    with working(database, tmp_path):
        words = said(jobq("enqueue", "echo", '{"n": 1}', "--wait", "20")).splitlines()
    assert json.loads(words[1]) == {"n": 1}


def test_cancel_and_redrive(jobq: Any, client: Client) -> None:
    job_id = str(client.enqueue("a").job_id)
    assert said(jobq("cancel", job_id, "--reason", "why")) == "cancelled"
    again = jobq("cancel", job_id)
    assert (again.returncode, again.stdout.strip()) == (1, "already_finished")
    assert said(jobq("redrive", job_id)) == job_id
    assert client.get(job_id).state == "queued"
    said(jobq("change", job_id, "--max-attempts", "9"))
    assert jobq("redrive", "--kind", "a", "--max-attempts", "8").returncode == 2
    client.cancel(job_id)
    copy = said(jobq("rerun", job_id))
    assert client.get(copy).metadata["rerun_of"] == job_id
    said(jobq("redrive", job_id, "--max-attempts", "8"))
    assert (client.get(job_id).max_attempts, client.get(copy).max_attempts) == (8, 9)


def test_jobs_are_changed_cancelled_and_deleted(jobq: Any, client: Client) -> None:
    ids = [str(client.enqueue("a", queue=queue).job_id) for queue in "qqr"]
    said(jobq("change", ids[0], "--run-at", "2126-01-01", "--payload", '{"n": 2}'))
    assert client.get(ids[0]).payload == {"n": 2}
    assert client.get(ids[0]).run_at.year == 2126
    assert said(jobq("change", "--queue", "q", "--now", "--dry-run")).split() == ids[:2]
    said(jobq("change", "--queue", "q", "--now", "--to-queue", "s", "--limit", "1"))
    assert client.get(ids[0]).queue == "s"
    assert said(jobq("cancel", "--queue", "q")) == f"{ids[1]} cancelled"
    assert said(jobq("delete", "--queue", "r", "--reason", "purge")) == ids[2]
    assert said(jobq("delete", "--kind", "a", "--state", "cancelled")) == ids[1]
    assert [str(job.job_id) for job in client.list_jobs()] == [ids[0]]
    for nothing in (["change", "--now"], ["cancel", "--dry-run"], ["cancel"], ["delete"]):
        refused = jobq(*nothing)
        assert refused.returncode == 2
        assert "pass a JOB_ID, --queue, --kind or --metadata" in refused.stderr
    refused = jobq("change", ids[0])
    assert refused.returncode == 1 and "INVALID_ARGUMENT" in refused.stderr


def test_enqueue_has_the_options_of_the_function(jobq: Any, client: Client) -> None:
    options = [
        "--run-at",
        "2126-01-01T09:30:00.5+01:00",
        "--expires-at",
        "2127-01-01",
        "--timeout",
        "3 s",
        "--metadata",
        '{"tenant": 1}',
    ]
    job_id = said(jobq("enqueue", "a", *options, "--dedup-key", "k", "--dedup", "replace"))
    job = client.get(job_id)
    assert (job.run_at, job.timeout, job.metadata["tenant"]) == (
        datetime(2126, 1, 1, 8, 30, 0, 500_000, tzinfo=UTC),
        timedelta(seconds=3),
        1,
    )
    newer = said(jobq("enqueue", "a", "--dedup-key", "k", "--dedup", "replace"))
    assert newer != job_id
    assert client.get(job_id).state == "cancelled"
    assert jobq("enqueue", "a", "--delay", "1", "--run-at", "2126-01-01").returncode == 2
    assert "2030-03-16T08:00:00Z" in jobq("enqueue", "a", "--run-at", "tomorrow").stderr


CREATED = {
    "name": "books",
    "kind": "close_books",
    "payload": [1],
    "cron": "0 3 * * *",
    "time_zone": "Asia/Kolkata",
    "gap": "skip",
    "fold": "once",
    "missed": "latest",
    "catch_up": timedelta(hours=2),
    "jitter": timedelta(seconds=30),
    "starts_at": datetime(2126, 1, 1, tzinfo=UTC),
    "ends_at": datetime(2127, 1, 1, tzinfo=UTC),
    "queue": "q",
    "priority": 3,
    "timeout": timedelta(seconds=5),
    "max_attempts": 4,
    "dedup": "replace",
    "dedup_key": "k",
    "concurrency_key": "acme",
    "metadata": {"tenant": 1},
    "graph": {"jobs": [{"name": "mail", "kind": "mail"}]},
}


def test_a_schedule_is_created_with_the_options_of_the_function(
    database: str, client: Client
) -> None:
    def create(*words: str) -> str:
        command = ["schedules", "create", *words]
        done = CliRunner().invoke(main, command, env={"DATABASE_URL": database})
        assert done.exit_code == 0, done.output
        return done.output.strip()

    given = {
        "--zone": "Asia/Kolkata",
        "--gap": "skip",
        "--fold": "once",
        "--missed": "latest",
        "--catch-up": "2 h",
        "--jitter": "30 s",
        "--starts-at": "2126-01-01",
        "--ends-at": "2127-01-01",
        "--queue": "q",
        "--priority": "3",
        "--timeout": "5 s",
        "--max-attempts": "4",
        "--dedup": "replace",
        "--dedup-key": "k",
        "--concurrency-key": "acme",
        "--metadata": '{"tenant": 1}',
        "--graph": '{"jobs": [{"name": "mail", "kind": "mail"}]}',
    }
    words = [word for option in given.items() for word in option]
    command = ("books", "close_books", "[1]", "--cron", "0 3 * * *", *words)
    schedule_id = create(*command)
    assert create(*command) == schedule_id
    stored = client.get_schedule(schedule_id)
    assert {name: getattr(stored, name) for name in CREATED} == CREATED
    create("poll", "poll", "--every", "15 min", "--from-completion")
    assert client.get_schedule("poll").from_completion


def test_a_schedule_that_cannot_be_meant_is_refused(database: str, client: Client) -> None:
    lonely = '{"jobs": [{"name": "a", "kind": "k", "after": ["nobody"]}]}'
    for options, words in (
        (["--cron", "99 * * * *"], "INVALID_CRON"),
        (["--cron", "0 3 * * *", "--zone", "Mars/Base"], "INVALID_TIME_ZONE"),
        ([], "INVALID_ARGUMENT"),
        (["--cron", "@daily", "--graph", lonely], "JOB_NOT_FOUND"),
        (["--cron", "@daily", "--graph", '{"jobs": 5}'], "INVALID_ARGUMENT"),
        (["--cron", "@daily", "--graph", "[]"], "not a JSON object"),
        (["--cron", "@daily", "--metadata", "{"], "not JSON"),
    ):
        command = ["schedules", "create", "books", "close_books", *options]
        done = CliRunner().invoke(main, command, env={"DATABASE_URL": database})
        assert words in done.output
        assert done.exit_code == (2 if "not" in words else 1)
    assert client.list_schedules() == []


def test_a_kind_that_nothing_needs_is_forgotten(jobq: Any, client: Client) -> None:
    client.put_kind("mail", max_attempts=9)
    job_id = client.enqueue("mail").job_id
    refused = jobq("delete-kind", "mail")
    assert refused.returncode == 1 and "HAS_DEPENDENTS" in refused.stderr
    client.cancel(job_id)
    said(jobq("delete-kind", "mail"))
    assert client.list_kinds() == []
    with pytest.raises(NotFound):
        client.delete_kind("mail")


def test_functions_of_the_database_are_run_until_none_is_due(
    jobq: Any, client: Client, connect: Callable[[], Connection]
) -> None:
    connect().execute("create function public.twice(n jsonb) returns jsonb language sql return n")
    client.put_kind("twice", run="public.twice")
    jobs = client.enqueue_many([{"kind": "twice", "payload": n} for n in range(3)])
    rows = said(jobq("work", "--limit", "2", "--until-empty", "--json")).splitlines()
    assert {json.loads(row)["job_id"] for row in rows} == {str(job.job_id) for job in jobs}
    assert client.get(jobs[2].job_id).result == 2
    with pytest.raises(NotFound):
        client.put_kind("twice", run="public.nothing")


def test_many_dead_jobs_are_redriven(
    jobq: Any, client: Client, connect: Callable[[], Connection]
) -> None:
    jobs = client.enqueue_many([{"kind": "a"}] * 3)
    connect().execute(
        "select jobq.fail(job_id, attempt, 'x', 'BAD', false) from jobq.claim('{default}', 'w', 2)"
    )
    redriven = said(jobq("redrive", "--kind", "a", "--error-code", "BAD")).splitlines()
    assert set(redriven) == {str(job.job_id) for job in jobs[:2]}
    assert jobq("redrive").returncode == 2
    assert jobq("redrive", str(jobs[0].job_id), "--kind", "a", "--tree", "all").returncode == 2


def test_jobs_that_are_named_are_redriven_by_the_endpoint_as_it_is_now(
    jobq: Any, client: Client, connect: Callable[[], Connection]
) -> None:
    put = "select from jobq.put_endpoint('hook', 'HTTP', jsonb_build_object('url', %s::text))"
    connect().execute(put, ["http://old"])
    ids = [str(client.enqueue("hook").job_id) for _ in range(3)]
    connect().execute(put, ["http://new"])

    def fail(job_id: str) -> None:
        connect().execute(
            "select jobq.fail(job_id, attempt, 'x', retryable => false)"
            " from jobq.claim_job(%s, 'w')",
            [job_id],
        )

    for job_id in ids:
        fail(job_id)
    assert said(jobq("redrive", ids[0], "--latest")) == ids[0]
    assert set(said(jobq("redrive", *ids, "--latest", "--dry-run")).split()) == set(ids[1:])
    assert set(said(jobq("redrive", *ids, "--limit", "5")).split()) == set(ids[1:])
    rows = connect().execute(
        "select j.delivery_version = k.delivery_version from jobq_private.job as j"
        " join jobq_private.kind as k using (kind) order by j.job_id"
    )
    assert [is_latest for (is_latest,) in rows] == [True, False, False]


def test_queues_are_shown_paused_and_resumed(jobq: Any, client: Client) -> None:
    client.enqueue("a")
    said(jobq("pause", "default", "--reason", "lunch"))
    [stats] = [json.loads(line) for line in said(jobq("queues", "--json")).splitlines()]
    assert (stats["queue"], stats["queued"], stats["is_paused"]) == ("default", 1, True)
    said(jobq("resume", "default"))
    assert "default" in said(jobq("queues"))
    assert not client.queue_stats()[0].is_paused
    said(jobq("pause", "--kind", "a", "--reason", "lunch"))
    assert [(k.kind, k.pause_reason) for k in client.list_kinds()] == [("a", "lunch")]
    said(jobq("resume", "--kind", "a"))
    said(jobq("pause", "*"))
    assert [k.kind for k in client.list_kinds()] == ["*"]
    said(jobq("resume", "*"))
    assert client.list_kinds() == []
    for nothing in (["pause"], ["resume"], ["pause", "default", "--kind", "a"]):
        assert jobq(*nothing).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("show", "00000000-0000-0000-0000-000000000000"), 1, "JOB_NOT_FOUND"),
        (("show", "x"), 1, "a job id must be a UUID"),
        (("enqueue", "a", "{"), 2, "not JSON"),
        (("enqueue", "a", "--priority", "99999"), 1, "INVALID_ARGUMENT"),
        (("enqueue", "a", "--priority", "3000000000"), 1, "out of range"),
        (("enqueue", "a", "--max-attempts", "0"), 1, ": --max-attempts must be from 1"),
        (("limits", "put", "q", "k", "--max-running", "-1"), 1, ": --max-running must be from 1"),
        (("enqueue", "a", "--timeout", "x"), 1, ": --timeout must be a duration, such as '30 s'"),
        (("enqueue", "a", "--cost", "x"), 1, ": --cost must be a number"),
        (("declare", "a", "--retry-preset", "x"), 1, ": --retry-preset: standard, "),
        (("budgets", "put", "queue", "q", "x"), 2, "'x' is no amount from 0 to 1000000000000000"),
        (("cluster", "list"), 1, "this database is no router"),
        (("cluster", "drain", "1"), 1, "jobq cluster init"),
        (("conformance", "no-such-program"), 2, "no-such-program is no program"),
        (("events", "--listen-database", "x"), 2, "'--listen-database': missing"),
        (("resume", "nowhere"), 1, "QUEUE_NOT_FOUND"),
        (("worker", "--listen-database", "x"), 2, "'--listen-database' (env var: "),
        (("worker", "--queue", "a=x"), 2, "a=x is not NAME=NUMBER"),
        (("worker", "--weight", "default=x"), 2, "default=x is not NAME=NUMBER"),
        (("worker", "nowhere:registry"), 2, "nowhere"),
        (("worker", "worker_handlers:wait"), 2, "not a jobq.Registry"),
        (("enqueue", "a", "--wait", "0.1"), 1, "has not ended"),
        (("jobs", "--state", "lost"), 2, "lost"),
        (("nothing",), 2, "No such command"),
        (("keys", "create", "k", "--scope", "read", "--days", "9999999"), 2, "--days"),
        (
            ("keys", "create", "k", "--scope", "read", "--requests-per-second", "2147483648"),
            2,
            "--requests-per-second",
        ),
    ],
)
def test_a_failure_is_a_line_and_a_status(
    jobq: Any, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = jobq(*arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("worker", ":"), "TARGET"),
        (("worker", ".x:y"), "TARGET"),
        (("worker", "--queue", "a", "--weight", "a=-1"), "weight must be a number above 0"),
        (("worker", "--queue", "a", "--weight", "a=nan"), "weight must be a number above 0"),
        (
            ("worker", "--queue", "a", "--queue", "b", "--weight", "a=0"),
            "weight must be a number above 0",
        ),
        (("worker", "--queue", "a", "--weight", "b=1"), "not among the queues: b"),
        (("worker", "--queue", "a=0"), "max_in_process must be at least 1"),
        (("worker", "--queue", "a=x"), "--queue"),
        (("worker", "--queue", ""), "must have 1 to 128 characters"),
        (("worker", "--queue", "=1"), "must have 1 to 128 characters"),
        (("worker", "--queue", "x" * 129), "must have 1 to 128 characters"),
        (("worker", "--queue", "a", "--queue", "*=2"), "queues must be named"),
        (("worker", "--queue", "a=2", "--queue", "b*"), "queues must be named"),
        (("worker", "--queue", "a*", "--sleepy"), "queues of a sleepy worker must be named"),
        (("worker", "--grace", "nan"), "nan is not a number of seconds"),
        (("enqueue", "a", "--delay", "nan"), "nan is not a number of seconds"),
        (("enqueue", "a", "--delay", "1e20"), "--delay"),
        (("enqueue", "a", "[" * 100_000), "not JSON"),
        (("enqueue", "a", "--wait", "inf"), "inf is not a number of seconds"),
        (("jobs", "--database", "nowhere"), 'missing "="'),
        (("http", "--database", "nowhere"), 'missing "="'),
        (("run", "--database", "nowhere"), 'missing "="'),
        (("schedules", "--database", "nowhere", "show", "x"), 'missing "="'),
        (("schedules", "show", "x", "--database", "nowhere"), 'missing "="'),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: tuple[str, ...], words: str) -> None:
    nobody = {"DATABASE_URL": "postgresql://127.0.0.1:1/x"}
    done = CliRunner().invoke(main, arguments, env=nobody)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    assert words in done.output


def test_a_console_whose_port_is_taken_is_a_line(jobq: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = jobq("console", "--port", str(port))
    assert done.returncode == 1
    assert f"cannot listen on port {port}" in done.stderr


def test_help_needs_no_database() -> None:
    groups = {
        name: command for name, command in main.commands.items() if hasattr(command, "commands")
    }
    assert groups.keys() >= {"grants", "schedules"}
    for group, command in groups.items():
        for name in command.commands:
            done = CliRunner().invoke(main, [group, name, "--help"], env={"DATABASE_URL": None})
            assert (done.exit_code, done.output[:6]) == (0, "Usage:"), done.output


def test_a_schedule_is_named_with_the_database_before_or_after(database: str) -> None:
    for arguments in (
        ["schedules", "--database", database, "show", "nightly"],
        ["schedules", "show", "nightly", "--database", database],
    ):
        done = CliRunner().invoke(main, arguments, env={"DATABASE_URL": None})
        assert "SCHEDULE_NOT_FOUND" in done.output
    done = CliRunner().invoke(main, ["schedules", "show", "x"], env={"DATABASE_URL": None})
    assert "DATABASE_URL" in done.output and done.exit_code == 2


def test_every_command_that_lists_has_json(database: str, client: Client) -> None:
    job_id = str(client.enqueue("a").job_id)
    client.create_schedule("nightly", "a", "0 3 * * *")
    client.grant_queue("jobq_worker", "default", "work")
    client.put_limit("default", "k", 1)
    client.put_budget("queue", "default", 100)
    with psycopg.connect(database) as connection:
        create_key(connection, "ci")
    for command in (
        "jobs",
        "queues",
        "schedules",
        "schedules versions nightly",
        "schedules preview nightly",
        "preview @daily",
        "grants list",
        "keys list",
        f"explain {job_id}",
        f"show {job_id}",
        "settings a",
        "limits list",
        "budgets list",
    ):
        words = command.split()
        groups = {"schedules", "grants", "keys", "limits", "budgets"}
        words.insert(2 if words[1:] and words[0] in groups else 1, "--json")
        done = CliRunner().invoke(main, words, env={"DATABASE_URL": database})
        assert done.exit_code == 0, (command, done.output)
        rows = [json.loads(line) for line in done.output.splitlines()]
        assert rows and all(isinstance(row, dict) for row in rows), command
    listed = CliRunner().invoke(main, ["secrets", "list", "--json"], env={"DATABASE_URL": database})
    assert (listed.exit_code, listed.output) == (0, "")


def test_a_queue_that_nobody_has_heard_of_is_not_paused_by_mistake(
    database: str, client: Client
) -> None:
    client.enqueue("a")
    for name in ("defaultt", "def*"):  # only '*' stands for others: for all
        done = CliRunner().invoke(main, ["pause", name], env={"DATABASE_URL": database})
        assert done.exit_code == 1
        assert "QUEUE_NOT_FOUND" in done.output and "--new" in done.output
    assert [queue.queue for queue in client.queue_stats()] == ["default"]
    for arguments in (["pause", "default"], ["pause", "later", "--new"]):
        done = CliRunner().invoke(main, arguments, env={"DATABASE_URL": database})
        assert done.exit_code == 0, done.output
    assert {q.queue for q in client.queue_stats() if q.is_paused} == {"default", "later"}


def test_a_kind_that_nobody_has_heard_of_is_paused_with_a_warning(
    jobq: Any, client: Client
) -> None:
    client.enqueue("a")
    client.put_kind("b")
    for kind, is_known in (("a", True), ("b", True), ("typo", False)):
        done = jobq("pause", "--kind", kind)
        assert (done.returncode, "not declared" in done.stderr) == (0, not is_known)
    assert {each.kind for each in client.list_kinds() if each.paused_at} == {"a", "b", "typo"}


def test_held_keys_are_listed(jobq: Any, client: Client) -> None:
    said(jobq("limits", "hold", "mail", "acme", "--seconds", "60", "--reason", "asked to"))
    row = json.loads(said(jobq("limits", "held", "mail", "--json")))
    assert (row["concurrency_key"], row["kind"], row["reason"]) == ("acme", None, "asked to")
    assert "asked to" in said(jobq("limits", "held", "mail"))
    said(jobq("limits", "release", "mail", "acme"))
    assert said(jobq("limits", "held", "mail", "--json")) == ""


def test_a_server_that_is_not_there_is_told_quickly(jobq: Any) -> None:
    done = jobq("jobs", "--database", "postgresql://127.0.0.1:1/x")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "DATABASE_UNAVAILABLE" in done.stderr
    assert "refused" in done.stderr
    assert len(done.stderr.splitlines()) <= 3


def test_a_database_must_be_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jobq_cli", "jobs"],
        env={name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "DATABASE_URL" in done.stderr


def test_a_database_without_jobq_is_told(empty_database: str, jobq: Any) -> None:
    done = jobq("jobs", "--database", empty_database)
    assert done.returncode == 1
    assert "jobq deploy" in done.stderr


def test_help_names_every_command(jobq: Any) -> None:
    listed = said(jobq("--help"))
    for command in "worker enqueue jobs show cancel redrive queues pause resume explain".split():
        assert f"\n  {command} " in listed


def test_queues_are_granted_listed_and_taken_back(jobq: Any, client: Client) -> None:
    for queue, privilege in (("orders", "work"), ("orders", "enqueue"), ("*", "work")):
        assert said(jobq("grants", "grant", "jobq_producer", queue, privilege)) == ""
    said(jobq("grants", "revoke", "jobq_producer", "*", "work"))
    rows = [line.split() for line in said(jobq("grants", "list")).splitlines()]
    assert rows == [
        ["grantee", "queue", "privilege"],
        ["jobq_producer", "orders", "enqueue"],
        ["jobq_producer", "orders", "work"],
    ]
    listed = [json.loads(line) for line in said(jobq("grants", "list", "--json")).splitlines()]
    assert listed == [asdict(grant) for grant in client.list_queue_grants()]


def test_grants_are_enforced_and_no_longer(jobq: Any, connect: Callable[[], Connection]) -> None:
    connection = connect()
    query = "select relforcerowsecurity and relrowsecurity from pg_class where oid = %s::regclass"
    for options, is_on in (((), True), (("--off",), False)):
        said(jobq("grants", "enforce", *options))
        assert connection.execute(query, ["jobq_private.job"]).fetchone() == (is_on,)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("nobody-at-all", "orders", "work"), "INVALID_ARGUMENT"),
        (("jobq_producer", "", "work"), "INVALID_ARGUMENT"),
        (("jobq_producer", "orders", "all"), "is not one of"),
    ],
)
def test_a_grant_that_cannot_be_meant_is_refused(
    jobq: Any, arguments: tuple[str, ...], reason: str
) -> None:
    done = jobq("grants", "grant", *arguments)
    assert done.returncode != 0
    assert reason in done.stderr


def test_a_name_with_a_line_break_makes_no_line_of_its_own(
    jobq: Any, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = "x\nok    everything            is well"
    client.put_kind(kind)
    job_id = client.enqueue(kind).job_id
    child = client.enqueue(kind, after=[job_id]).job_id
    client.subscribe("paid", kind)
    client.pause_kind(kind, kind)
    show_findings([Finding("kinds", False, kind, kind, "failure")], is_json=False)
    commands = [("explain", str(job_id)), ("show", str(child)), ("publish", "paid"), ("events",)]
    commands.insert(3, ("cancel", "--kind", kind))
    outputs = [capsys.readouterr().out, *(said(jobq(*command)) for command in commands)]
    assert not [text for text in outputs if re.search("^ok    everything", text, re.MULTILINE)]


def test_kinds_queues_and_workers_are_lists(jobq: Any, client: Client) -> None:
    assert (said(jobq("kinds")), said(jobq("queues", "--declared"))) == ("kind", "queue")
    client.put_kind("mail", queue="q", keep_succeeded=timedelta(0))
    client.put_queue("q", max_depth=9)
    client.pause("p", "because")
    head, row = said(jobq("kinds")).splitlines()
    assert head.split() == ["kind", "queue", "keep_succeeded", "is_endpoint", "updated_at"]
    assert row.split()[:3] == ["mail", "q", "0:00:00"]
    [kind] = client.list_kinds()
    assert json.loads(said(jobq("kinds", "--json")))["keep_succeeded"] == "0:00:00"
    assert (kind.kind, kind.keep_succeeded, kind.keep_dead) == ("mail", timedelta(0), None)
    declared = [
        json.loads(line) for line in said(jobq("queues", "--declared", "--json")).split("\n")
    ]
    assert [(row["queue"], row["max_depth"], row["pause_reason"]) for row in declared] == [
        ("p", None, "because"),
        ("q", 9, None),
    ]
    client.put_kind("mail", rate_limit=3, payload_schema={"type": "object"})
    client.pause_kind("mail", "audit")
    head, *_ = said(jobq("kinds")).splitlines()
    shown = ["kind", "rate_limit", "is_endpoint", "updated_at", "paused_at", "pause_reason"]
    assert head.split() == shown
    head, *_ = said(jobq("queues", "--declared")).splitlines()
    assert head.split() == ["queue", "max_depth", "paused_at", "pause_reason", "updated_at"]
    assert said(jobq("workers", "--json")) == ""


def test_settings_show_what_holds(jobq: Any, client: Client) -> None:
    client.put_kind("mail", queue="q", keep_succeeded=timedelta(hours=1))
    client.put_queue("q", max_attempts=7)
    rows = dict(line.split(maxsplit=1) for line in said(jobq("settings", "mail")).splitlines()
                if " " in line)  # fmt: skip
    assert (rows["queue"], rows["max_attempts"], rows["keep_succeeded"]) == ("q", "7", "01:00:00")
    assert json.loads(said(jobq("settings", "--json"))) == client.settings()
    assert json.loads(said(jobq("settings", "mail", "--queue", "z", "--json"))) == client.settings(
        "mail", "z"
    )


def test_all_that_a_kind_may_say_is_declared_and_listed_by_every_door(
    jobq: Any, client: Client
) -> None:
    said_of_a_kind = {"kind", *KindOptions.__annotations__}
    declared = {parameter.name for parameter in main.commands["declare"].params}
    assert declared - {"database_url"} == said_of_a_kind
    assert {name.removesuffix("_ms") for name in NewKind.__struct_fields__} == said_of_a_kind
    assert said_of_a_kind <= {*DeclaredKind.__dataclass_fields__}
    options = ("--ordered", "true", "--on-dead", "hold", "--concurrency-key", "customer")
    said(jobq("declare", "k", *options, "--key-max-running", "2", "--key-rate-limit", "9"))
    [kind] = client.list_kinds()
    assert (kind.ordered, kind.on_dead, kind.key_max_running) == (True, "hold", 2)
    assert (kind.concurrency_key, kind.key_rate_limit) == (["customer"], 9)


@pytest.mark.parametrize("option", ["concurrency-key", "cost", "dedup-key"])
def test_a_path_in_the_syntax_of_sql_or_json_is_refused(
    jobq: Any, client: Client, option: str
) -> None:
    for path in ("{user_id}", "{{user_id},{day}}", "user,id", "[]"):
        refused = jobq("declare", "k", f"--{option}", path)
        assert refused.returncode == 2
        assert "repeat the option for the path of a nested member" in refused.stderr
    assert client.list_kinds() == []
    said(jobq("declare", "k", f"--{option}", "user", f"--{option}", "id"))
    assert getattr(client.list_kinds()[0], option.replace("-", "_")) == ["user", "id"]


def test_what_producers_write_gives_a_terminal_no_orders(jobq: Any, client: Client) -> None:
    evil = "a\x1b[2J\x1b]0;title\x07\x9b31m\r\x7f\u202eb"
    client.put_kind(evil, queue=evil)
    client.pause(evil, evil)
    job = client.enqueue(evil, {evil: evil}, queue=evil, metadata={"a": evil})
    for arguments in (
        ("jobs",), ("jobs", "--json"), ("show", str(job.job_id)), ("explain", str(job.job_id)),
        ("kinds",), ("queues",), ("queues", "--declared"), ("queues", "--json"), ("doctor",),
        ("top", "--once"), ("change", str(job.job_id), "--to-queue", evil * 9),
    ):  # fmt: skip
        done = jobq(*arguments)
        printed = done.stdout + done.stderr
        assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", printed) is None, arguments
        assert "\\u001b[2J" in printed or arguments[0] in {"doctor", "change", "top"}, arguments
        if "--json" in arguments:
            assert evil in json.loads(printed).values()


def test_commands_print_by_what_escapes() -> None:
    free = {"terminal.py", "commands.py", "deploy.py", "watch.py"}
    found = [
        path.name
        for path in Path(terminal.__file__).parent.glob("*.py")
        if path.name not in free and re.search(r"click\.echo|\bprint\(", path.read_text())
    ]
    assert found == ["top.py"]  # by rich, whose cells are escaped


def test_a_worker_ends_when_nothing_is_due(program: Any, client: Client) -> None:
    jobs = client.enqueue_many({"kind": "echo", "payload": n} for n in range(3))
    later = client.enqueue("echo", run_at=datetime.now(UTC) + timedelta(days=1))
    done = program("worker", "worker_handlers:registry", "--until-empty", "--no-metrics")
    assert done.returncode == 0, done.stderr
    assert [client.get(job.job_id).result for job in jobs] == [0, 1, 2]
    assert client.get(later.job_id).state == "queued"


def test_a_worker_works_without_standard_streams(database: str, client: Client) -> None:
    """No connection gets their numbers, at which uvloop would abort the process."""
    jobs = client.enqueue_many({"kind": "echo", "payload": n} for n in range(3))
    command = [sys.executable, "-m", "jobq_cli", "worker", "worker_handlers:registry"]
    done = subprocess.run(
        [
            "sh",
            "-c",
            'exec "$@" <&- >&- 2>&-',
            "sh",
            *command,
            "--until-empty",
            "--no-metrics",
        ],
        env={**os.environ, "DATABASE_URL": database, "PYTHONPATH": str(HERE)},
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    assert [client.get(job.job_id).result for job in jobs] == [0, 1, 2]


@pytest.mark.prove
def test_a_watching_worker_starts_afresh_when_code_changes(
    database: str, client: Client, tmp_path: Path
) -> None:
    code = "from jobq import Registry\nregistry = Registry()\nregistry.handler('a')(lambda: {})\n"
    (tmp_path / "app.py").write_text(code.format(1))
    command = [sys.executable, "-m", "jobq_cli", "worker", "app:registry", "--watch"]
    process = subprocess.Popen(
        [*command, "--no-metrics"], cwd=tmp_path, env={**os.environ, "DATABASE_URL": database}
    )
    try:
        assert client.call("a", timeout=60) == 1
        (tmp_path / "app.py").write_text(code.format("'two'"))
        until(lambda: client.call("a", timeout=60) == "two", "for the new code")
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()


@pytest.mark.prove
@pytest.mark.parametrize("signalled", ["SIGINT", "SIGTERM", "SIGHUP", "SIGINT in a terminal"])
def test_a_signal_to_its_group_lets_a_watching_worker_finish_its_jobs(
    database: str, client: Client, tmp_path: Path, signalled: str
) -> None:
    name, _, has_terminal = signalled.partition(" ")
    (tmp_path / "app.py").write_text(
        "from time import sleep\nfrom jobq import Registry\nregistry = Registry()\n"
        "registry.handler('a')(lambda: sleep(2))\n"
    )
    program = [sys.executable, "-m", "jobq_cli", "worker", "app:registry", "--watch"]
    command = ["env", "--default-signal=HUP", *program]  # the tests may run under nohup
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*command, "--no-metrics"], cwd=tmp_path, env={**os.environ, "DATABASE_URL": database},
        stdin=terminal if has_terminal else subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        job_id = client.enqueue("a").job_id
        until(lambda: client.get(job_id).state == "running", "for the job")
        os.killpg(process.pid, signal.Signals[name])  # as a terminal and supervisors do
        assert process.wait(60) == 0
        assert client.get(job_id).state == "succeeded"
    finally:
        process.kill()
        os.close(controller)
        os.close(terminal)


def test_jobs_are_followed(database: str, client: Client) -> None:
    client.enqueue("old")
    command = [sys.executable, "-m", "jobq_cli", "jobs", "--follow", "--json", "--limit", "2"]
    process = subprocess.Popen(
        command, env={**os.environ, "DATABASE_URL": database}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["kind"] == "old"
        job_id = client.enqueue("new").job_id
        assert json.loads(process.stdout.readline())["kind"] == "new"
        client.change_many([job_id], priority=7)
        assert json.loads(process.stdout.readline())["priority"] == 7
        client.cancel(job_id)
        assert json.loads(process.stdout.readline())["state"] == "cancelled"
        client.enqueue_many([{"kind": "many", "payload": n} for n in range(5)])
        assert [json.loads(process.stdout.readline())["payload"] for _ in range(5)] == [*range(5)]
    finally:
        process.kill()
        process.wait(60)


def test_who_follows_jobs_does_not_search_all_of_them_each_second() -> None:
    asked = []

    def look(before: Any = None) -> JobPage:
        asked.append(before)
        return JobPage([], uuid4())  # which has looked at 100,000 jobs in vain

    assert pages(look, None) == []
    assert asked == [None]


def test_top_shows_queues_workers_and_what_runs(jobq: Any, client: Client, connect: Any) -> None:
    client.enqueue("import", queue="mail")
    connection = connect()
    connection.execute("select jobq.claim('{mail}', 'worker-1')")
    connection.execute("select jobq.heartbeat('worker-1', '{}', '{}', '{mail}', '{unknown}')")
    shown = said(jobq("top", "--once"))
    for words in ("mail", "worker-1", "unknown", "import", "1/5"):
        assert words in shown


def test_top_prints_each_view_at_once_if_there_is_no_terminal(database: str) -> None:
    command = [sys.executable, "-m", "jobq_cli", "top", "--interval", "0.1", "--database", database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
        assert top.stdout is not None
        views = (line for line in top.stdout if line.startswith("queues at"))
        assert next(views) and next(views)
        top.terminate()


def test_top_shows_names_and_numbers_in_80_columns(
    jobq: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    job = client.enqueue("import", queue="a-queue-of-18-char")
    said(jobq("change", str(job.job_id), "--run-at", "2020-01-01"))
    shown = said(jobq("top", "--once"))
    assert "a-queue-of-18-char" in shown
    assert max(map(len, shown.splitlines())) <= 80
    for name in ("waiting", "later", "running", "retrying", "dead", "oldest", "ended/s"):
        assert name in shown


@pytest.mark.parametrize("name", ["keys", "secrets", "top"])
def test_a_command_whose_extra_is_missing_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, extra = EXTRAS[name]
    monkeypatch.setitem(sys.modules, module, None)  # as if not installed
    done = CliRunner().invoke(main, [name, "create", "--scope", "read"])
    assert done.exit_code == 1
    assert f"install it with: pip install 'jobq[{extra}]'" in done.output
    listed = CliRunner().invoke(main, ["--help"])
    assert listed.exit_code == 0
    assert f"\n  {name} " not in listed.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert "_JOBQ_COMPLETE" in done.output


def test_the_environment_gives_options_of_a_worker() -> None:
    found = {p.name: p.envvar for p in main.commands["worker"].params}
    assert found.pop("is_watching") is None
    assert all(found.values())
    assert len(set(map(str, found.values()))) == len(found)
    nobody = {"DATABASE_URL": "postgresql://127.0.0.1:1/x"}
    for variable, value, words in (
        ("JOBQ_WORKER_QUEUE", "mail images=0", "max_in_process must be at least 1"),
        ("JOBQ_WORKER_CONCURRENCY", "0", "--concurrency"),
        ("JOBQ_WORKER_TARGET", "nowhere:registry", "TARGET"),
    ):
        done = CliRunner().invoke(main, ["worker"], env={**nobody, variable: value})
        assert done.exit_code == 2, done.output
        assert words in done.output
    done = CliRunner().invoke(
        main, ["worker", "--queue", "a=0"], env={**nobody, "JOBQ_WORKER_QUEUE": "mail"}
    )
    assert "max_in_process must be at least 1" in done.output
