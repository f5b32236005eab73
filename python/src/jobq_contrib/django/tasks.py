"""A backend of Django Tasks, those of Django 6 or of the package django-tasks.

    TASKS = {"default": {"BACKEND": "jobq_contrib.django.tasks.JobqBackend"}}

A task is a kind named like its function, such as ``shop.tasks.send``. `manage.py jobq_worker` runs
all tasks of the modules ``tasks`` of the installed apps.
"""

from __future__ import annotations

import os
import socket
from collections import OrderedDict
from copy import copy
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import close_old_connections
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules, import_string

from jobq.errors import JobNotFound
from jobq.redaction import error_text, traceback_text
from jobq.registry import Permanent, Registry, Retry
from jobq.registry.outcomes import OUTCOMES
from jobq_contrib.django import client

try:
    from django.tasks import TaskContext, TaskResult, TaskResultStatus
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskError
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
except ModuleNotFoundError:  # before Django 6
    from django_tasks import TaskContext, TaskResult, TaskResultStatus
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskError
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobq import Attempt, Job, JobContext

__all__ = ["JobqBackend", "registry_of"]

STATUSES: Final = {
    "queued": TaskResultStatus.READY,
    "blocked": TaskResultStatus.READY,
    "retrying": TaskResultStatus.READY,
    "running": TaskResultStatus.RUNNING,
    "succeeded": TaskResultStatus.SUCCESSFUL,
    "dead": TaskResultStatus.FAILED,
    "cancelled": TaskResultStatus.FAILED,
}
WORKER: Final = f"{socket.gethostname()}:{os.getpid()}"
# Django keeps a backend for each thread; tasks are found when their modules are imported.
_tasks: dict[str, dict[str, Task]] = {}
# The last exceptions of tasks, by job, until it is known whether the task has failed.
_raised: OrderedDict[UUID, BaseException] = OrderedDict()
MOST_RAISED: Final = 100


class TaskFailed(Exception):  # noqa: N818 - it says what happened
    """A task has failed without an exception of its own, such as by a timeout."""


class JobqBackend(BaseTaskBackend):
    """Enqueues in the transaction of Django's connection: the task runs if that commits.

    OPTIONS has ``database``, the alias of the database, and the options of `Client.enqueue` for
    all tasks. A task that raises an exception is run again only with ``max_attempts``; one whose
    worker was killed is run again in any case.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.job_options = dict(self.options)
        self.database = self.job_options.pop("database", "default")

    def validate_task(self, task: Task) -> None:
        """Refuse what cannot be run, and remember a task for the worker."""
        super().validate_task(task)
        _tasks.setdefault(self.alias, {}).setdefault(task.module_path, task)

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:  # noqa: ANN401 - any JSON
        """Enqueue a task and return its result, which is not there yet."""
        self.validate_task(task)
        job = client(self.database).enqueue(
            task.module_path,
            normalize_json({"args": args, "kwargs": kwargs}),
            queue=task.queue_name,
            priority=task.priority,
            run_at=task.run_after,
            **self.job_options,
        )
        result = self.result(task, job.job_id, args, kwargs, TaskResultStatus.READY)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """Return the result of a job by its id.

        Raises:
            TaskResultDoesNotExist: there is no such job, or it is not one of a task.
        """
        own = client(self.database)
        try:
            job = own.get(UUID(result_id))
            task = import_string(job.kind)
        except (ValueError, JobNotFound, ImportError) as error:
            raise TaskResultDoesNotExist(result_id) from error
        if not isinstance(task, Task):
            raise TaskResultDoesNotExist(result_id)
        return self.result_of(task, job, own.attempts(job.job_id) if job.attempt else [])

    def result_of(self, task: Task, job: Job, attempts: list[Attempt]) -> TaskResult:
        """Return the result of a task that a job and its attempts have."""
        changed = copy(task)
        for name, value in {
            "queue_name": job.queue, "priority": job.priority, "backend": self.alias,
            "run_after": job.run_at if job.run_at > job.created_at else task.run_after,
        }.items():  # fmt: skip
            # Not by using(), which refuses what an operator may have chosen.
            object.__setattr__(changed, name, value)
        payload: Any = job.payload
        result = self.result(
            changed, job.job_id, payload["args"], payload["kwargs"], STATUSES[job.state],
            started_at=attempts[0].started_at if attempts else None,
            last_attempted_at=attempts[-1].started_at if attempts else None,
            finished_at=job.finished_at,
            errors=[error_of(each) for each in attempts if each.error is not None],
            worker_ids=[each.worker or "" for each in attempts],
        )  # fmt: skip
        object.__setattr__(result, "_return_value", job.result)
        return result

    def result(
        self,
        task: Task,
        job_id: UUID,
        args: Any,  # noqa: ANN401 - any JSON
        kwargs: Any,  # noqa: ANN401
        status: TaskResultStatus,
        **more: Any,  # noqa: ANN401 - those of TaskResult
    ) -> TaskResult:
        """Return a result, with nothing in what is not given."""
        dates = dict.fromkeys(("started_at", "last_attempted_at", "finished_at"))
        rest = {**dates, "errors": [], "worker_ids": [], **more}
        return TaskResult(
            task=task, id=str(job_id), status=status, enqueued_at=moment_of(job_id),
            args=list(args), kwargs=dict(kwargs), backend=self.alias, **rest,
        )  # fmt: skip

    def started(self, task: Task, payload: Any, context: JobContext) -> TaskResult:  # noqa: ANN401
        """Return the result of a task that runs, and send the signal."""
        now = timezone.now()
        result = self.result(
            task, context.job_id, payload["args"], payload["kwargs"], TaskResultStatus.RUNNING,
            started_at=now, last_attempted_at=now,
            worker_ids=[WORKER] * context.attempt,
        )  # fmt: skip
        task_started.send(type(self), task_result=result)
        return result

    def succeeded(self, result: TaskResult, value: object) -> None:
        """Complete the result of a task that has returned, and send the signal."""
        object.__setattr__(result, "status", TaskResultStatus.SUCCESSFUL)
        object.__setattr__(result, "finished_at", timezone.now())
        object.__setattr__(result, "_return_value", value)
        task_finished.send(type(self), task_result=result)

    def failure(self, error: BaseException, context: JobContext) -> Exception:
        """Return the outcome of an attempt that has raised an exception."""
        text, details = error_text(error), described(error)
        _raised[context.job_id] = error
        if len(_raised) > MOST_RAISED:
            _raised.popitem(last=False)
        if "max_attempts" in self.job_options:
            return Retry(text, code="ERROR", details=details)
        return Permanent("ERROR", text, details=details)

    def failed(self, context: JobContext, _code: str, _error: str) -> None:
        """Send the signal that a task has failed: only the database counts its attempts.

        Receivers can log the exception with ``logger.exception``, as Django's own does.
        """
        close_old_connections()
        try:
            raise _raised.pop(context.job_id, None) or TaskFailed  # noqa: TRY301 - to be logged
        except BaseException:
            task_finished.send(type(self), task_result=self.get_result(str(context.job_id)))
        finally:
            close_old_connections()

    def handler(self, task: Task) -> Callable[..., Any]:
        """Return the handler of a task: a coroutine function if the task is one."""

        def before(payload: Any, context: JobContext) -> tuple[TaskResult, list[Any]]:  # noqa: ANN401
            result = self.started(task, payload, context)
            first = [TaskContext(task_result=result)] if task.takes_context else []
            return result, [*first, *result.args]

        def run(payload: Any, context: JobContext) -> Any:  # noqa: ANN401 - any JSON
            close_old_connections()
            result, args = before(payload, context)
            try:
                value = normalize_json(task.func(*args, **result.kwargs))
            except OUTCOMES:
                raise
            except BaseException as error:
                raise self.failure(error, context) from error
            finally:
                close_old_connections()
            self.succeeded(result, value)
            return value

        async def run_async(payload: Any, context: JobContext) -> Any:  # noqa: ANN401
            result, args = before(payload, context)
            try:
                value = normalize_json(await task.func(*args, **result.kwargs))
            except OUTCOMES:
                raise
            except Exception as error:
                raise self.failure(error, context) from error
            self.succeeded(result, value)
            return value

        return run_async if iscoroutinefunction(task.func) else run


def moment_of(job_id: UUID) -> datetime:
    """Return when a job was enqueued, from its id (UUID version 7), to the millisecond."""
    return datetime.fromtimestamp((job_id.int >> 80) / 1000, UTC)


def described(error: BaseException) -> dict[str, str]:
    """Return the class and the traceback of an exception, as TaskError has them."""
    kind = type(error)
    path = f"{kind.__module__}.{kind.__qualname__}"
    return {"exception_class_path": path, "traceback": traceback_text(error)}


def error_of(attempt: Attempt) -> TaskError:
    """Return the error of an attempt; one without an exception, such as a timeout, has a text."""
    details: Any = attempt.error_details or {}
    return TaskError(
        exception_class_path=details.get("exception_class_path", "builtins.Exception"),
        traceback=details.get("traceback", attempt.error or ""),
    )


def registry_of(alias: str = "default") -> Registry:
    """Import the modules ``tasks`` of all apps, and return a registry of a backend's tasks."""
    autodiscover_modules("tasks")
    registry = Registry()
    for path, task in sorted(_tasks.get(alias, {}).items()):
        backend = task.get_backend()
        registry.handler(path, on_dead=backend.failed)(backend.handler(task))
    return registry


def __getattr__(name: str) -> Registry:
    """Return ``registry``, the tasks of the default backend, for `manage.py jobq_worker`."""
    if name == "registry":
        return registry_of()
    raise AttributeError(name)
