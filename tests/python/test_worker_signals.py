"""Real worker processes, and what signals do to them and to their jobs."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from waiting import until
from worker_handlers import Gate
from worker_process import working

from jobq import Client, __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    with Client(database) as client:
        yield client


def started(gate: Gate) -> None:
    until(lambda: gate.has_started, "for the handler to start")


def enqueue(client: Client, kind: str, gate: Gate) -> Any:
    return client.enqueue(kind, {"started": gate.started, "open": gate.open}).job_id


def test_a_killed_workers_job_is_finished_by_another(
    database: str, client: Client, tmp_path: Path
) -> None:
    client.configure(lease="3 s")
    gate = Gate.within(tmp_path)
    with working(database, tmp_path) as first:
        job_id = enqueue(client, "wait", gate)
        started(gate)
        first.signal(signal.SIGKILL)
        assert first.wait() == -signal.SIGKILL
    gate.let_through()
    with working(database, tmp_path) as second:
        # Lease 3 s, sweep at most 4.5 s, the rest is the process's start.
        assert client.result(job_id, timeout=30) == 2
        second.signal(signal.SIGTERM)
        assert second.wait() == 0
    attempts = client.attempts(job_id)
    assert [(a.attempt, a.state, a.error_code) for a in attempts] == [
        (1, "retrying", "LEASE_EXPIRED"),
        (2, "succeeded", None),
    ]


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["wait", "wait_in_thread", "write"])
def test_a_worker_that_comes_back_from_the_dead_is_refused(
    database: str,
    client: Client,
    connect: Callable[[], Connection],
    tmp_path: Path,
    kind: str,
) -> None:
    """Nothing of what it did late is kept, its rows least of all."""
    client.configure(lease="3 s")
    connection = connect()
    connection.execute("create table public.processed_log (job_id uuid, attempt int, worker int)")
    gate = Gate.within(tmp_path)
    with working(database, tmp_path, "--name", "frozen") as first:
        job_id = enqueue(client, kind, gate)
        started(gate)
        first.signal(signal.SIGSTOP)
        gate.let_through()
        with working(database, tmp_path, "--name", "other"):
            assert client.result(job_id, timeout=30) == 2
            first.signal(signal.SIGCONT)
            # The frozen handler finishes, and the worker learns that the job is not its own.
            until(lambda: '"status":"lost"' in first.log, "for the late worker to be told")
        # It goes on with other jobs.
        later = client.enqueue("echo", "still here").job_id
        assert client.result(later, timeout=30) == "still here"
        assert client.get(later).worker == "frozen"
    job = client.get(job_id)
    assert (job.state, job.result, job.attempt, job.worker) == (
        "succeeded",
        2,
        2,
        "other",
    )
    rows = connection.execute("select job_id, attempt from public.processed_log").fetchall()
    assert rows == ([(job_id, 2)] if kind == "write" else [])


def test_term_lets_running_jobs_finish(database: str, client: Client, tmp_path: Path) -> None:
    gate = Gate.within(tmp_path)
    with working(database, tmp_path) as worker:
        job_id = enqueue(client, "wait", gate)
        started(gate)
        worker.signal(signal.SIGTERM)
        until(lambda: "stopping: waiting" in worker.log)
        later = client.enqueue("noop").job_id
        gate.let_through()
        assert worker.wait() == 0
    assert client.get(job_id).result == 1
    assert client.get(later).state == "queued", "it claimed nothing more"


@pytest.mark.parametrize("kind", ["wait", "wait_in_thread"])
def test_what_does_not_finish_in_the_grace_period_goes_back_uncounted(
    database: str, client: Client, tmp_path: Path, kind: str
) -> None:
    gate = Gate.within(tmp_path)
    with working(database, tmp_path, "--grace", "0.3") as worker:
        job_id = enqueue(client, kind, gate)
        started(gate)
        worker.signal(signal.SIGINT)
        assert worker.wait() == 0
    job = client.get(job_id)
    assert (job.state, job.attempt, job.attempts) == ("queued", 1, 0)
    gate.let_through()
    with working(database, tmp_path):
        assert client.result(job_id, timeout=30) == 2
    assert client.get(job_id).attempts == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_stops_at_once(
    database: str, client: Client, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    gate = Gate.within(tmp_path)
    with working(database, tmp_path, "--grace", "600") as worker:
        job_id = enqueue(client, "wait", gate)
        started(gate)
        worker.signal(number)
        until(lambda: "stopping: waiting" in worker.log)
        worker.signal(number)
        assert worker.wait() == status
    job = client.get(job_id)
    assert (job.state, job.attempts) == ("queued", 0)


def test_an_idle_worker_says_its_release_stops_and_leaves_the_list(
    database: str, connect: Callable[[], Connection], tmp_path: Path
) -> None:
    connection = connect()
    names = "select worker, release from jobq.worker"
    with working(database, tmp_path, "--name", "me", "--release", "shop-7") as worker:
        told = [("me", f"shop-7, jobq {__version__}")]
        until(lambda: connection.execute(names).fetchall() == told)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert connection.execute(names).fetchall() == []


def test_a_worker_is_started_afresh_after_so_many_jobs(
    database: str, client: Client, tmp_path: Path
) -> None:
    client.enqueue_many([{"kind": "noop"}] * 200)
    with working(database, tmp_path, "--max-jobs", "20", "--concurrency", "2") as worker:
        assert worker.wait() == 75
    left = sum(queue.queued for queue in client.queue_stats())
    assert 0 < left <= 180
    assert all(queue.running == 0 for queue in client.queue_stats())


def test_a_worker_is_started_afresh_when_it_has_grown(
    database: str, client: Client, tmp_path: Path
) -> None:
    client.enqueue_many([{"kind": "noop"}] * 2000)
    with working(database, tmp_path, "--max-bytes", "1000000") as worker:
        assert worker.wait() == 75


def test_a_worker_without_jobq_in_its_database_says_so(empty_database: str, tmp_path: Path) -> None:
    with working(empty_database, tmp_path) as worker:
        assert worker.wait() == 1
    assert "jobq deploy" in worker.log
    assert "Traceback" not in worker.log


def test_a_wrong_password_ends_it_and_is_told(database: str, tmp_path: Path) -> None:
    url = psycopg.conninfo.make_conninfo(database, password="wrong")
    with working(url, tmp_path) as worker:
        assert worker.wait() == 1
    assert "NOT_PERMITTED" in worker.log
    assert "Traceback" not in worker.log


def test_every_line_about_a_job_says_which(database: str, client: Client, tmp_path: Path) -> None:
    job_id = client.enqueue("wait", {"started": 1}, idempotency_key="k").job_id
    with working(database, tmp_path, "--name", "me") as worker:
        until(lambda: "job dead" in worker.log)
    [line] = [json.loads(text) for text in worker.log.splitlines() if "job dead" in text]
    expected = {
        "level": "ERROR",
        "job_id": str(job_id),
        "kind": "wait",
        "attempt": 1,
        "queue": "default",
        "worker": "me",
        "idempotency_key": "k",
        "status": "dead",
        "error_code": "PAYLOAD_INVALID",
    }
    assert expected.items() <= line.items()


def test_a_thread_that_runs_on_after_its_timeout_does_not_hold_up_the_end(
    database: str, client: Client, tmp_path: Path
) -> None:
    gate = Gate.within(tmp_path)
    with working(database, tmp_path, "--poll", "60", "--grace", "600") as worker:
        payload = {"started": gate.started, "open": gate.open}
        job_id = client.enqueue("wait_in_thread", payload, timeout="100 ms").job_id
        until(lambda: client.get(job_id).state == "retrying", "for the timeout")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_hangup_stops_a_worker_as_term_does(database: str, client: Client, tmp_path: Path) -> None:
    gate = Gate.within(tmp_path)
    # Under nohup, a worker ignores it.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with working(database, tmp_path) as worker:
        job_id = enqueue(client, "wait", gate)
        started(gate)
        worker.signal(signal.SIGHUP)
        until(lambda: "stopping: waiting" in worker.log)
        gate.let_through()
        assert worker.wait() == 0
    assert client.get(job_id).result == 1


@pytest.mark.prove
def test_a_password_on_the_command_line_is_warned_of(database: str, tmp_path: Path) -> None:
    with working(database, tmp_path, "--database", database, "--until-empty") as told:
        assert told.wait() == 0
    with working(database, tmp_path, "--until-empty") as silent:
        assert silent.wait() == 0
    assert ("DATABASE_URL" in told.log, "DATABASE_URL" in silent.log) == (True, False)
