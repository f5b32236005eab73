"""jobq_contrib.celery: tasks written for Celery, as jobs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import celery_tasks as tasks
import pytest

from jobq import Client, Retry, Worker
from jobq.errors import InvalidArgument, JobCancelled, JobFailed
from jobq_contrib import celery
from jobq_contrib.celery import GroupResult, Result, chain, chord, group, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def client(database: str) -> Iterator[Client]:
    """A client that tasks are enqueued with."""
    tasks.SEEN.clear()
    with Client(database) as client:
        celery.use(lambda: client)
        yield client
        celery.use(celery._from_environment)


def work(database: str) -> None:
    """Run workers until all jobs have ended: a worker ends when no job is due."""
    with Client(database) as client:
        while any(not job.is_finished for job in client.list_jobs()):
            queues = ("default", "slow")
            worker = Worker(database, celery.registry, queues, until_empty=True, metrics_port=None)
            assert asyncio.run(worker.run()) == 0


def test_delay_enqueues_and_get_returns_the_result(database: str) -> None:
    result = tasks.add.delay(1, y=2)
    assert (result.state, result.ready(), result.result) == ("PENDING", False, None)
    work(database)
    assert (result.get(10), result.status, result.successful()) == (3, "SUCCESS", True)
    assert result_of(result.id).result == 3


def test_a_task_is_still_a_function() -> None:
    assert tasks.add(1, y=2) == 3
    assert (tasks.add.__doc__, tasks.add.name) == ("Add two numbers.", "celery_tasks.add")
    with pytest.raises(Retry):
        tasks.stubborn(1)


def test_options_become_those_of_the_job(client: Client) -> None:
    eta = datetime(2040, 1, 1, tzinfo=UTC)
    job = client.get(tasks.total.apply_async(([1],), eta=eta, priority=5).id)
    assert (job.kind, job.queue, job.run_at, job.priority) == ("total", "slow", eta, 5)
    before = datetime.now(UTC)
    given: celery.Options = {"countdown": 60, "expires": 3600, "queue": "other"}
    job = client.get(tasks.add.apply_async((1,), {"y": 2}, **given).id)
    assert timedelta(0) <= job.run_at - before - timedelta(seconds=60) < timedelta(seconds=30)
    assert job.expires_at and job.expires_at > job.run_at
    assert (job.queue, job.payload) == ("other", {"args": [1], "kwargs": {"y": 2}})
    with pytest.raises(TypeError, match="unknown options: link, task_id"):
        tasks.add.apply_async((1,), task_id="7", link=[])  # type: ignore[call-arg]


def test_retry_runs_a_task_again_until_its_retries_are_spent(database: str) -> None:
    done, dead = tasks.stubborn.delay(2), tasks.stubborn.delay(9)
    work(database)
    assert done.get(10) == 2
    with pytest.raises(JobFailed, match="busy") as failed:
        dead.get(10)
    assert failed.value.job.last_error_code == "ValueError"
    assert sorted(tasks.SEEN) == [0, 0, 1, 1, 2, 2]
    assert dead.failed()


def test_only_retries_count_as_retries(database: str, client: Client) -> None:
    result = tasks.sleepy.delay()
    work(database)
    assert tasks.SEEN == [0, 0, 1]
    client.redrive(result.id)
    work(database)
    assert tasks.SEEN == [0, 0, 1, 0, 1]


def test_the_number_of_retries_is_read_only_when_it_is_needed() -> None:
    context: Any = SimpleNamespace(job_id=uuid4(), attempt=2)
    celery.use(lambda: pytest.fail("the task needs no client"))
    assert tasks.add.handle({"args": [1], "kwargs": {}}, context) == 1
    with Client("postgresql://127.0.0.1:1/away", patience=0.1) as away:
        celery.use(lambda: away)
        assert tasks.stubborn.handle({"args": [1], "kwargs": {}}, context) == 1


def test_a_task_can_be_tried_with_a_number_of_retries() -> None:
    assert celery.Request(retries=2).retries == 2


def test_one_exception_is_retried_without_a_list() -> None:
    @celery.shared_task(name="one-exception", autoretry_for=KeyError)
    def fails() -> None:
        raise KeyError("x")

    context: Any = SimpleNamespace(job_id=uuid4(), attempt=1)
    for _ in range(2):
        with pytest.raises(Retry):
            fails.handle({"args": [], "kwargs": {}}, context)


def test_only_the_named_exceptions_are_retried(database: str) -> None:
    for what in ("key", "value"):
        tasks.picky.delay(what)
    work(database)
    assert sorted(tasks.SEEN) == ["key"] * 4 + ["value"]


def test_a_backoff_doubles_up_to_its_maximum() -> None:
    options = {"retry_backoff": 2, "retry_backoff_max": 10, "retry_jitter": False}
    task = celery.Task(print, "x", options)  # type: ignore[arg-type]
    request: list[Any] = [SimpleNamespace(retries=n) for n in (0, 1, 2, 3, 10_000)]
    assert [task._delay(each) for each in request] == [2, 4, 8, 10, 10]
    assert celery.Task(print, "x", {})._delay(request[3]) == 180


def test_a_chain_hands_results_on(database: str) -> None:
    result = chain(
        tasks.add.s(1, 2), tasks.add.s(4), tasks.add.si(5, 6), tasks.note.s(7)
    ).apply_async()
    assert isinstance(result, Result)
    work(database)
    assert tasks.SEEN == [((11, 7), {})]
    assert result.successful()


def test_a_chain_is_enqueued_as_a_whole(client: Client) -> None:
    wrong = tasks.add.s(object())
    with pytest.raises(Exception, match=r"(?i)encod|serial|json|type"):
        (tasks.add.s(1) | wrong).delay()
    assert client.list_jobs() == []


def test_a_chain_ends_at_a_failure(database: str) -> None:
    result = (tasks.picky.s("value") | tasks.note.s()).delay()
    work(database)
    assert tasks.SEEN == ["value"]
    assert isinstance(result, Result)
    with pytest.raises(JobCancelled):
        result.get(10)
    assert result.state == "REVOKED"


def test_a_group_returns_results_in_order(database: str) -> None:
    result = group(tasks.add.s(n, n) for n in range(20)).apply_async()
    assert isinstance(result, GroupResult)
    assert not result.ready()
    work(database)
    assert result.get(10) == [2 * n for n in range(20)]
    assert result.ready()


def test_a_chord_gets_the_results_of_its_group(database: str) -> None:
    results = [
        chord(tasks.add.s(n, n) for n in range(20))(tasks.total.s()),
        chord([tasks.add.s(1), tasks.add.s(2)], tasks.total.s()).delay(),
        (tasks.add.s(1, 1) | group(tasks.add.s(1), tasks.add.s(2)) | tasks.total.s()).delay(),
    ]
    work(database)
    assert [result.get(10) for result in results] == [380, 3, 7]


def test_a_signature_has_options_of_its_own(client: Client) -> None:
    job = client.get(tasks.add.s(1).set(queue="other", countdown=60).apply_async().id)
    assert job.queue == "other"
    result = (tasks.add.s(1).set(priority=3) | tasks.add.s(2).set(queue="late")).apply_async(
        queue="q"
    )
    assert isinstance(result, Result)
    first, last = sorted(client.list_jobs()[:2], key=lambda job: job.job_id)
    assert (first.queue, first.priority, last.queue, last.state) == ("q", 3, "late", "blocked")


def test_a_revoked_job_does_not_run(database: str) -> None:
    result = tasks.note.delay()
    result.revoke()
    work(database)
    assert tasks.SEEN == []
    assert result.state == "REVOKED"


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="needs a part"):
        group([])
    with pytest.raises(TypeError, match="unknown options: rate"):
        celery.shared_task(rate="10/m")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="already has a handler"):
        celery.shared_task(name="total")(print)
