"""The backend of Django Tasks.

Tests named as in test_database_backend.py of django-tasks are that file's, for jobq's backend
(BSD-3-Clause, Jake Howard and contributors).
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import django_work as work
import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db import connections, transaction
from django.utils import timezone
from test_contrib_django import django_database

from jobq import Worker
from jobq_contrib.django import client
from jobq_contrib.django.tasks import JobqBackend, registry_of

try:
    from django.tasks import TaskResultStatus, default_task_backend
    from django.tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django.tasks.signals import task_enqueued, task_finished, task_started
except ModuleNotFoundError:
    from django_tasks import TaskResultStatus, default_task_backend
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.signals import task_enqueued, task_finished, task_started

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

__all__ = ["django_database"]  # a fixture that every test uses
READY, FAILED, SUCCESSFUL = "READY", "FAILED", "SUCCESSFUL"


@contextmanager
def captured(signal: Any) -> Iterator[list[tuple[Any, Any]]]:
    """Collect the senders and results of a signal."""
    received: list[tuple[Any, Any]] = []

    def capture(sender: Any, task_result: Any, **_: Any) -> None:
        received.append((sender, task_result))

    signal.connect(capture, weak=False)
    try:
        yield received
    finally:
        signal.disconnect(capture)


def awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine, and close the connection of Django's thread for coroutines."""

    async def run() -> Any:
        found = await coroutine
        await sync_to_async(connections.close_all)()
        return found

    return asyncio.run(run())


def run_worker(database: str, alias: str = "default", *queues: str) -> None:
    """Run a worker until there is nothing to do."""
    worker = Worker(
        database, registry_of(alias), queues or ("default",), until_empty=True, metrics_port=None
    )
    assert asyncio.run(worker.run()) == 0


def test_using_correct_backend() -> None:
    assert isinstance(default_task_backend._connections["default"], JobqBackend)
    assert default_task_backend.alias == "default"
    assert default_task_backend.options == {}
    assert list(default_task_backend.check()) == []


@pytest.mark.parametrize("task", [work.noop_task, work.noop_task_async])
def test_enqueue_task(task: Any) -> None:
    with captured(task_enqueued) as received:
        result = task.enqueue(1, two=3)
    assert uuid.UUID(result.id).version == 7
    assert result.status == READY
    assert not result.is_finished
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = result.return_value
    assert (result.task, result.args, result.kwargs) == (task, [1], {"two": 3})
    assert result.attempts == 0
    assert received == [(JobqBackend, result)]


def test_enqueue_task_async() -> None:
    result = awaited(work.noop_task.aenqueue())
    assert result.status == READY
    assert (result.args, result.kwargs) == ([], {})


def test_get_result() -> None:
    for task in (work.noop_task, work.noop_task.using(priority=7, queue_name="queue-1")):
        result = default_task_backend.enqueue(task, [], {})
        assert default_task_backend.get_result(result.id) == result
        assert awaited(default_task_backend.aget_result(result.id)) == result


def test_a_job_that_an_operator_has_changed_still_has_a_result() -> None:
    result = work.noop_task.enqueue()
    client().change_many([result.id], priority=500, to_queue="elsewhere")
    result.refresh()
    changed = default_task_backend.get_result(result.id)
    assert (changed.task.priority, changed.task.queue_name) == (500, "elsewhere")
    assert changed.task.func == work.noop_task.func


def test_refresh_result(database: str) -> None:
    result = work.calculate_meaning_of_life.enqueue()
    run_worker(database)
    assert (result.status, result.is_finished, result.attempts) == (READY, False, 0)
    result.refresh()
    assert None not in (result.started_at, result.last_attempted_at, result.finished_at)
    assert (result.status, result.is_finished, result.attempts) == (SUCCESSFUL, True, 1)
    assert result.return_value == 42


@pytest.mark.parametrize("result_id", ["01a215cd-cdd0-76d6-b200-04a3037dc866", "123"])
def test_get_missing_result(result_id: str) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(result_id)


@pytest.mark.parametrize("kind", ["subprocess.check_output", "missing.func", "other"])
def test_invalid_task_path(kind: str) -> None:
    job = client().enqueue(kind)
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(str(job.job_id))


def test_a_result_of_another_task_is_refused() -> None:
    result = work.noop_task.enqueue()
    with pytest.raises(TaskResultMismatch):
        work.calculate_meaning_of_life.get_result(result.id)


def test_doesnt_wait_until_transaction_commit(connect: Callable[[], Connection]) -> None:
    count = "select count(*) from jobq.job"
    with connect() as other, transaction.atomic():
        result = work.noop_task.enqueue()
        assert default_task_backend.get_result(result.id) == result
        assert other.execute(count).fetchone() == (0,)
    with connect() as other:
        assert other.execute(count).fetchone() == (1,)


def test_a_rollback_takes_the_task_along() -> None:
    with transaction.atomic():
        result = work.noop_task.enqueue()
        transaction.set_rollback(True)
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(result.id)


def test_enqueue_with_invalid_argument() -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        work.noop_task.enqueue(datetime.now())
    with pytest.raises(Exception, match="Queue 'unknown' is not valid"):
        work.noop_task.using(queue_name="unknown")


@pytest.mark.parametrize("task", [work.noop_task, work.noop_task_async])
def test_run_enqueued_task(task: Any, database: str) -> None:
    result = task.enqueue()
    with captured(task_started) as started, captured(task_finished) as finished:
        run_worker(database)
    result.refresh()
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert (result.status, result.attempts) == (SUCCESSFUL, 1)
    assert [each.id for _, each in started] == [result.id]
    assert [(each.id, each.status) for _, each in finished] == [(result.id, SUCCESSFUL)]


def test_batch_processes_all_tasks(database: str) -> None:
    results = [work.noop_task.enqueue() for _ in range(3)]
    results.append(work.failing_task_value_error.enqueue())
    run_worker(database)
    for result in results:
        result.refresh()
    assert [result.status for result in results] == [SUCCESSFUL] * 3 + [FAILED]


def test_doesnt_process_different_queue(database: str) -> None:
    result = work.noop_task.using(queue_name="queue-1").enqueue()
    run_worker(database)
    result.refresh()
    assert result.status == READY
    run_worker(database, "default", "queue-1")
    result.refresh()
    assert result.status == SUCCESSFUL


@pytest.mark.parametrize(
    ("task", "error", "words"),
    [
        (work.failing_task_value_error, ValueError, "ValueError: This task failed due to"),
        (work.failing_task_async, ValueError, "ValueError: This task failed due to"),
        (work.failing_task_system_exit, SystemExit, "SystemExit: This task failed due to"),
        (work.failing_task_keyboard_interrupt, KeyboardInterrupt, "KeyboardInterrupt: This"),
        (work.complex_exception, ValueError, 'ValueError(ValueError("This task failed"))'),
        (work.complex_return_value, TypeError, "Unsupported type"),
    ],
)
def test_failing_task(task: Any, error: type, words: str, database: str) -> None:
    result = task.enqueue()
    with captured(task_finished) as finished:
        run_worker(database)
    result.refresh()
    assert None not in (result.started_at, result.last_attempted_at, result.finished_at)
    assert (result.status, result.attempts) == (FAILED, 1)
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value
    assert result.errors[0].exception_class is error
    assert words in result.errors[0].traceback
    assert [each.status for _, each in finished] == [FAILED]


def test_run_after(database: str) -> None:
    task = work.noop_task.using(run_after=timezone.now() + timedelta(hours=10))
    result = task.enqueue()
    run_worker(database)
    assert default_task_backend.get_result(result.id) == result
    assert result.task.run_after == task.run_after


def test_run_after_priority() -> None:
    for priority in (-100, 0, 100):
        work.noop_task.using(priority=priority).enqueue()
    rows = client().list_jobs()
    assert sorted(job.priority for job in rows) == [-100, 0, 100]


def test_takes_context(database: str) -> None:
    results = [work.get_task_id.enqueue(), work.test_context.enqueue(1)]
    run_worker(database)
    for result in results:
        result.refresh()
    assert results[0].return_value == results[0].id
    assert results[1].status == SUCCESSFUL


def test_a_task_of_a_backend_with_max_attempts_is_run_again(database: str) -> None:
    client().put_kind("django_work.fails_once", retry_initial_delay=0.01)
    result = work.fails_once.enqueue()
    while not result.is_finished:  # a worker ends when no job is due
        run_worker(database, "retried")
        result.refresh()
    assert (result.status, result.return_value, result.attempts) == (SUCCESSFUL, 2, 2)
    assert [error.exception_class for error in result.errors] == [ValueError]


def test_only_failures_count_as_attempts(database: str) -> None:
    """Not what a task slept, or that a worker was told to stop."""
    client().put_kind("django_work.sleeps_and_fails_once", retry_initial_delay=0.01)
    result = work.sleeps_and_fails_once.enqueue()
    while not result.is_finished:
        run_worker(database, "retried")
        result.refresh()
    assert (result.status, result.return_value) == (SUCCESSFUL, "done")


@pytest.mark.parametrize("is_permanent", [True, False])
def test_the_signal_comes_once_when_the_task_has_failed(
    database: str, is_permanent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    client().put_kind("django_work.fails_for_good", retry_initial_delay=0.01)
    result = work.fails_for_good.enqueue(is_permanent)
    with captured(task_finished) as finished:
        while not result.is_finished:
            run_worker(database, "retried")
            result.refresh()
    assert result.attempts == (1 if is_permanent else 2)
    [(sender, told)] = finished
    assert (sender, told.id, told.status) == (JobqBackend, result.id, FAILED)
    assert (told.attempts, told.errors) == (result.attempts, result.errors)
    [logged] = [e.exc_info for e in caplog.records if e.name.startswith("django") and e.exc_info]
    assert isinstance(logged[1], ValueError) is not is_permanent


def test_a_task_chooses_jobqs_outcomes(database: str) -> None:
    result = work.sleeps_once.enqueue()
    while not result.is_finished:
        run_worker(database)
        result.refresh()
    assert result.return_value == "awake"


def test_a_cancelled_task_has_failed() -> None:
    result = work.noop_task.enqueue()
    client().cancel(result.id)
    result.refresh()
    assert result.status == TaskResultStatus.FAILED


def test_the_command_runs_tasks(connect: Callable[[], Connection]) -> None:
    result = work.counts_users.enqueue()
    with pytest.raises(SystemExit) as ended:
        call_command("jobq_worker", "--", "--no-metrics", "--until-empty")
    assert ended.value.code == 0
    result.refresh()
    assert result.return_value == 7
