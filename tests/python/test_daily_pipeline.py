"""The daily pipeline keeps its contract: the acceptance scenarios, and its small print."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from waiting import until
from worker_process import working

from jobq import Client, Registry
from jobq_embedded import Server
from jobq_examples.daily_pipeline import (
    CONTRACT,
    JOB_TYPE,
    EnqueueResult,
    ErrorCode,
    JobMessage,
    JobRepo,
    JobStatus,
    QueueContract,
    Refusal,
    RepoError,
    make_idempotency_key,
    ready,
    registry,
    submit,
)
from jobq_testing import run_due
from servers import SETTINGS, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Connection = psycopg.Connection[tuple[Any, ...]]

DAY = date(2026, 3, 13)
NOW = datetime(2026, 3, 14, tzinfo=UTC)
KEY = make_idempotency_key(JOB_TYPE, "ACME", DAY)
MESSAGE = JobMessage(KEY, JOB_TYPE, "ACME", DAY, "tests")
TRADES = "time,price,volume\n09:00,10.5,100\n17:00,11.25,50\n12:00,9.75,10\n"
BAR = {
    "symbol": "ACME",
    "asof": "2026-03-13",
    "open": 10.5,
    "high": 11.25,
    "low": 9.75,
    "close": 11.25,
    "volume": 160,
}


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    with Client(database) as client:
        registry.declare(client)
        yield client


@pytest.fixture
def repo(client: Client) -> JobRepo:
    return JobRepo(client)


@pytest.fixture
def queue(client: Client) -> QueueContract:
    return QueueContract(client)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Upstream with a day of trades, and the storage."""
    upstream, storage = tmp_path / "upstream", tmp_path / "storage"
    (upstream / "ACME").mkdir(parents=True)
    (upstream / "ACME" / "2026-03-13.csv").write_text(TRADES)
    monkeypatch.setenv("DAILY_PIPELINE_UPSTREAM", str(upstream))
    monkeypatch.setenv("DAILY_PIPELINE_STORAGE", str(storage))
    return upstream, storage


def create(repo: JobRepo) -> UUID:
    return repo.create_queued(uuid4(), KEY, JOB_TYPE, "ACME", DAY, "tests", NOW).job_id


def stored(storage: Path) -> list[str]:
    return sorted(str(path.relative_to(storage)) for path in storage.rglob("*.*"))


# ---- acceptance scenarios


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields that the contract asks of a line, as far as this one has them."""
    names = ("job_id", "idempotency_key", "symbol", "asof", "status", "error_code")
    return {name: getattr(record, name, None) for name in names}


def test_idempotent_triple_submit(
    repo: JobRepo, queue: QueueContract, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "daily_pipeline")
    made = [submit(repo, queue, "ACME", DAY, "tests") for _ in range(3)]
    assert [m.created for m in made] == [True, False, False]
    assert len({m.job_id for m in made}) == 1
    assert isinstance(made[0].outcome, EnqueueResult)
    assert made[0].outcome.message_id == str(made[0].job_id)
    assert [m.outcome for m in made[1:]] == [None, None]
    conflict = {
        "job_id": str(made[0].job_id),
        "idempotency_key": KEY,
        "symbol": "ACME",
        "asof": "2026-03-13",
        "status": "queued",
        "error_code": "IDEMPOTENCY_CONFLICT",
    }
    assert [fields(r) for r in caplog.records if r.name == "daily_pipeline"] == [conflict] * 2


def test_worker_crash(client: Client, repo: JobRepo, connect: Callable[[], Connection]) -> None:
    """Unacknowledged, the message reappears; after five failures it is a dead letter."""
    client.put_kind(JOB_TYPE, max_attempts=5, lease="1 s", reuse_key_after_failure=True)
    job_id = create(repo)
    connection = connect()
    claim = "select attempt from jobq.claim('{default}', 'crashing')"
    for attempt in range(1, 6):
        assert connection.execute(claim).fetchall() == [(attempt,)]
        assert connection.execute(claim).fetchall() == [], "nobody else sees it meanwhile"
        record = repo.get_by_id(job_id)
        assert (record.status, record.attempts) == (JobStatus.RUNNING, attempt)
        until(lambda: connection.execute("select * from jobq_internal.recover()").fetchall())
    record = repo.get_by_id(job_id)
    assert (record.status, record.attempts) == (JobStatus.DEAD_LETTER, 5)
    assert record.last_error_code == "LEASE_EXPIRED"


def test_the_visibility_timeout_is_thirty_seconds(client: Client, repo: JobRepo) -> None:
    assert client.get(create(repo)).lease == timedelta(seconds=30)


def test_empty_upstream(
    client: Client, repo: JobRepo, database: str, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    upstream, storage = folders
    (upstream / "ACME" / "2026-03-13.csv").unlink()
    job_id = create(repo)
    with working(database, tmp_path, target="jobq_examples.daily_pipeline:registry") as worker:
        until(lambda: repo.get_by_id(job_id).status == JobStatus.FAILED)
        until(lambda: "job retrying" in worker.log)
    record = repo.get_by_id(job_id)
    assert record.last_error_code == ErrorCode.UPSTREAM_EMPTY
    assert client.attempts(job_id)[0].attempt == 1
    assert not storage.exists()
    lines = [json.loads(line) for line in worker.log.splitlines()]
    [ended] = [line for line in lines if line["message"] == "job retrying"]
    assert ended["error_code"] == "UPSTREAM_EMPTY"
    assert (ended["idempotency_key"], ended["attempt"]) == (KEY, 1)
    [started] = [line for line in lines if line["message"] == "pipeline started"]
    assert (started["symbol"], started["asof"]) == ("ACME", "2026-03-13")
    assert (started["job_id"], started["status"]) == (str(job_id), "running")
    [failed] = [line for line in lines if line["message"] == "pipeline failed"]
    assert (failed["job_id"], failed["idempotency_key"]) == (str(job_id), KEY)
    assert (failed["symbol"], failed["asof"]) == ("ACME", "2026-03-13")
    assert (failed["status"], failed["error_code"]) == ("failed", "UPSTREAM_EMPTY")
    assert failed["attempt"] == 1


def test_repeat_job(
    client: Client, repo: JobRepo, database: str, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    _, storage = folders
    with working(database, tmp_path, target="jobq_examples.daily_pipeline:registry"):
        first = create(repo)
        ref = client.result(first, timeout=30)["result_ref"]
        # The same work under another key, as after the key's retention.
        again = client.enqueue(JOB_TYPE, replace(MESSAGE, idempotency_key="another"))
        assert client.result(again.job_id, timeout=30)["result_ref"] == ref
    assert stored(storage) == ["ACME/2026-03-13.json"]
    assert json.loads((storage / "ACME" / "2026-03-13.json").read_text()) == BAR
    record = repo.get_by_id(first)
    assert (record.status, record.attempts, record.result_ref) == (JobStatus.SUCCEEDED, 1, ref)


def test_queue_down(repo: JobRepo, caplog: pytest.LogCaptureFixture) -> None:
    """The API logs, and tries again with exponential backoff."""
    pauses: list[float] = []
    with psycopg_client_of_nobody() as down:
        made = submit(repo, QueueContract(down), "ACME", DAY, "tests", tries=3, pause=pauses.append)
    assert isinstance(made.outcome, Refusal)
    assert (made.outcome.error_code, made.outcome.is_retryable) == ("QUEUE_UNAVAILABLE", True)
    assert pauses == [0.1, 0.2]
    refusal = {
        "job_id": str(made.job_id),
        "idempotency_key": KEY,
        "symbol": "ACME",
        "asof": "2026-03-13",
        "status": "queued",
        "error_code": "QUEUE_UNAVAILABLE",
    }
    assert [fields(r) for r in caplog.records if r.name == "daily_pipeline"] == [refusal] * 3


def psycopg_client_of_nobody() -> Client:
    """A client whose server is not there."""
    return Client("postgresql://127.0.0.1:1/x?connect_timeout=1", patience=0.2)


def test_ready(pg: str, project: Path, tmp_path: Path) -> None:
    """Turned off: 503. Restored: 200."""
    with (
        Server(tmp_path / "server", pg, settings=SETTINGS, durable=False) as server,
        Cluster(server, project).database() as url,
        Client(url, patience=1.0) as client,
    ):
        queue, repo = QueueContract(client), JobRepo(client)
        until(lambda: ready(queue, repo)[0] == 200, "for the first connection")
        server._pg_ctl("stop", "-m", "immediate")
        status, body = ready(queue, repo)
        assert status == 503
        assert body["queue"] == body["repo"] == "error(refused)"
        assert datetime.fromisoformat(body["timestamp"]).tzinfo is not None
        server._launch()
        until(lambda: ready(queue, repo)[0] == 200, "for the database to be back")


def test_ready_names_the_part_that_is_down(
    database: str, queue: QueueContract, repo: JobRepo
) -> None:
    read_only = make_conninfo(database, options="-c default_transaction_read_only=on")
    status, body = ready(queue, repo)
    assert (status, body["queue"], body["repo"]) == (200, "ok", "ok")
    with Client(read_only) as reader:
        status, body = ready(QueueContract(reader), JobRepo(reader))
    assert (status, body["queue"], body["repo"]) == (503, "error(read_only)", "ok")
    with psycopg_client_of_nobody() as down:
        status, body = ready(queue, JobRepo(down))
    assert (status, body["queue"]) == (503, "ok")
    assert body["repo"] == "error(refused)"


# ---- the failure matrix and the state machine


def test_the_failure_matrix(client: Client, queue: QueueContract) -> None:
    client.configure(max_payload_bytes=1024)
    too_large = queue.enqueue(replace(MESSAGE, requested_by="x" * 2000))
    assert isinstance(too_large, Refusal)
    assert (too_large.error_code, too_large.is_retryable) == ("MESSAGE_TOO_LARGE", False)
    for bad in (
        replace(MESSAGE, symbol="no symbol"),
        replace(MESSAGE, symbol=7),  # type: ignore[arg-type]
        replace(MESSAGE, idempotency_key=""),
    ):
        invalid = queue.enqueue(bad)
        assert isinstance(invalid, Refusal)
        assert (invalid.error_code, invalid.is_retryable) == ("INVALID_MESSAGE", False)


def test_a_key_may_be_used_again_after_a_failure(repo: JobRepo) -> None:
    first = create(repo)
    assert repo.get_by_idempotency(KEY) == first
    repo.set_running(first, NOW)
    repo.set_dead_letter(first, NOW, ErrorCode.QUALITY_FAILED, "bad", 1)
    assert repo.get_by_idempotency(KEY) is None
    second = repo.create_queued(uuid4(), KEY, JOB_TYPE, "ACME", DAY, "tests", NOW)
    assert second.created
    assert second.job_id != first
    assert repo.get_by_idempotency("unknown") is None


def test_the_contract_holds_for_any_job_type_that_is_declared(
    client: Client, repo: JobRepo, queue: QueueContract
) -> None:
    weekly = "reports:weekly"
    other = Registry()
    other.handler(weekly, **CONTRACT)(lambda _payload: None)
    other.declare(client)
    made = [submit(repo, queue, "ACME", DAY, "tests", job_type=weekly) for _ in range(2)]
    assert [m.created for m in made] == [True, False]
    key = make_idempotency_key(weekly, "ACME", DAY)
    assert repo.get_by_idempotency(key) == made[0].job_id
    assert repo.get_by_idempotency(KEY) is None, "its own type has a key of its own"
    repo.set_running(made[0].job_id, NOW)
    repo.set_dead_letter(made[0].job_id, NOW, ErrorCode.QUALITY_FAILED, "bad", 1)
    assert repo.get_by_idempotency(key) is None
    assert submit(repo, queue, "ACME", DAY, "tests", job_type=weekly).created


def test_an_unknown_job_type_and_a_key_of_another_job_are_refused(
    repo: JobRepo, queue: QueueContract
) -> None:
    unknown = make_idempotency_key("unknown", "ACME", DAY)
    for key, job_type in ((unknown, "unknown"), (unknown, JOB_TYPE), ("another", JOB_TYPE)):
        with pytest.raises(RepoError, match="INVALID_MESSAGE"):
            repo.create_queued(uuid4(), key, job_type, "ACME", DAY, "tests", NOW)
        refused = queue.enqueue(replace(MESSAGE, idempotency_key=key, job_type=job_type))
        assert isinstance(refused, Refusal)
        assert (refused.error_code, refused.is_retryable) == ("INVALID_MESSAGE", False)
        assert repo.get_by_idempotency(key) is None


def test_a_job_that_has_failed_may_become_a_dead_letter(repo: JobRepo) -> None:
    job_id = create(repo)
    repo.set_running(job_id, NOW)
    repo.set_failed(job_id, NOW, ErrorCode.QUALITY_FAILED, "bad", 1)
    with pytest.raises(RepoError, match="LEASE_LOST"):
        repo.set_dead_letter(job_id, NOW, ErrorCode.QUALITY_FAILED, "bad", 7)
    repo.set_dead_letter(job_id, NOW, ErrorCode.QUALITY_FAILED, "bad", 1)
    record = repo.get_by_id(job_id)
    assert (record.status, record.attempts) == (JobStatus.DEAD_LETTER, 1)
    assert record.last_error_code == ErrorCode.QUALITY_FAILED


def test_a_job_runs_and_succeeds(repo: JobRepo) -> None:
    job_id = create(repo)
    assert repo.get_by_id(job_id).status == JobStatus.QUEUED
    repo.set_running(job_id, NOW)
    assert repo.get_by_id(job_id).status == JobStatus.RUNNING
    repo.set_succeeded(job_id, NOW, "storage/ACME")
    record = repo.get_by_id(job_id)
    assert (record.status, record.result_ref) == (JobStatus.SUCCEEDED, "storage/ACME")
    assert record.finished_at is not None
    assert repo.create_queued(uuid4(), KEY, JOB_TYPE, "ACME", DAY, "tests", NOW).job_id == job_id


def test_a_cancelled_job_is_a_dead_letter(client: Client, repo: JobRepo) -> None:
    job_id = create(repo)
    client.cancel(job_id)
    assert repo.get_by_id(job_id).status == JobStatus.DEAD_LETTER
    assert repo.get_by_idempotency(KEY) is None


def test_a_message_that_can_never_be_taken_is_offered_once(
    client: Client, repo: JobRepo, caplog: pytest.LogCaptureFixture
) -> None:
    class Refusing(QueueContract):
        """A queue that every message comes to spoilt."""

        def enqueue(self, message: JobMessage) -> EnqueueResult | Refusal:
            return super().enqueue(replace(message, symbol="no symbol"))

    pauses: list[float] = []
    made = submit(repo, Refusing(client), "ACME", DAY, "tests", pause=pauses.append)
    assert pauses == []
    assert isinstance(made.outcome, Refusal)
    [line] = [r for r in caplog.records if r.name == "daily_pipeline"]
    assert fields(line)["error_code"] == made.outcome.error_code == "INVALID_MESSAGE"


def test_states_do_not_regress(repo: JobRepo) -> None:
    job_id = create(repo)
    repo.set_running(job_id, NOW)
    repo.set_succeeded(job_id, NOW)
    changes: list[Callable[[], None]] = [
        lambda: repo.set_running(job_id, NOW),
        lambda: repo.set_failed(job_id, NOW, "X", "x", 1),
        lambda: repo.set_dead_letter(job_id, NOW, "X", "x", 1),
        lambda: repo.set_succeeded(job_id, NOW),
    ]
    for change in changes:
        with pytest.raises(RepoError) as caught:
            change()
        assert caught.value.code in ("ILLEGAL_STATE", "LEASE_LOST")
    assert repo.get_by_id(job_id).status == JobStatus.SUCCEEDED


def test_a_failure_has_code_and_attempt(client: Client, repo: JobRepo) -> None:
    job_id = create(repo)
    repo.set_running(job_id, NOW)
    with pytest.raises(RepoError, match="LEASE_LOST"):
        repo.set_failed(job_id, NOW, ErrorCode.STORAGE_WRITE_FAILED, "disk full", 7)
    repo.set_failed(job_id, NOW, ErrorCode.STORAGE_WRITE_FAILED, "x" * 600, 1)
    record = repo.get_by_id(job_id)
    assert (record.status, record.last_error_code) == (JobStatus.FAILED, "STORAGE_WRITE_FAILED")
    assert record.last_error == "x" * 512
    assert [a.attempt for a in client.attempts(job_id)] == [1]


def test_the_repo_says_when_it_cannot_be_reached() -> None:
    with psycopg_client_of_nobody() as down:
        repo = JobRepo(down)
        with pytest.raises(RepoError) as caught:
            repo.get_by_id(uuid4())
        assert caught.value.code == ErrorCode.REPO_UNAVAILABLE
        assert not repo.ping().is_ok


def test_a_wrong_password_is_a_reason_without_the_address(database: str) -> None:
    with Client(make_conninfo(database, password="wrong"), patience=10) as client:
        text = QueueContract(client).ping().text
    assert text == "error(auth_failed)"


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ("time,price\n09:00,1\n", ErrorCode.TRANSFORM_INVALID),
        ("time,price,volume\n09:00,many,1\n", ErrorCode.TRANSFORM_INVALID),
        ("time,price,volume\n09:00,-1,1\n", ErrorCode.QUALITY_FAILED),
        ("time,price,volume\n", ErrorCode.UPSTREAM_EMPTY),
    ],
)
def test_bad_data_has_its_code(
    folders: tuple[Path, Path], database: str, rows: str, code: ErrorCode
) -> None:
    upstream, storage = folders
    (upstream / "ACME" / "2026-03-13.csv").write_text(rows)
    with psycopg.connect(database) as connection:
        client = Client(connection)
        registry.declare(client)
        QueueContract(client).enqueue(MESSAGE)
        [ran] = run_due(connection, registry)
        assert client.get(ran.job_id).last_error_code == code
        connection.rollback()
    assert not storage.exists()
