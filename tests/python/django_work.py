"""Tasks of Django, those of the tests of django-tasks among them (BSD-3-Clause)."""

from __future__ import annotations

from typing import Any

import django_project  # noqa: F401 - the decorator needs its settings
from django.db import connection

try:
    from django.tasks import TaskContext, task
except ModuleNotFoundError:
    from django_tasks import TaskContext, task

from jobq import Permanent, Snooze

ATTEMPTS: list[int] = []


@task()
def noop_task(*args: Any, **kwargs: Any) -> None:
    return None


@task()
async def noop_task_async(*args: Any, **kwargs: Any) -> None:
    return None


@task()
def calculate_meaning_of_life() -> int:
    return 42


@task()
async def meaning_of_life_async() -> int:
    return 42


@task()
def failing_task_value_error() -> None:
    raise ValueError("This task failed due to ValueError")


@task()
async def failing_task_async() -> None:
    raise ValueError("This task failed due to ValueError")


@task()
def failing_task_system_exit() -> None:
    raise SystemExit("This task failed due to SystemExit")


@task()
def failing_task_keyboard_interrupt() -> None:
    raise KeyboardInterrupt("This task failed due to KeyboardInterrupt")


@task()
def complex_exception() -> None:
    raise ValueError(ValueError("This task failed"))


@task()
def complex_return_value() -> Any:
    return lambda: True


@task(takes_context=True)
def get_task_id(context: TaskContext) -> str:
    return str(context.task_result.id)


@task(takes_context=True)
def test_context(context: TaskContext, attempt: int) -> None:
    assert isinstance(context, TaskContext)
    assert context.attempt == attempt


test_context.func.__test__ = False


@task(backend="retried", takes_context=True)
def fails_once(context: TaskContext) -> int:
    if context.attempt == 1:
        raise ValueError("once more")
    return int(context.attempt)


@task(backend="retried", takes_context=True)
def sleeps_and_fails_once(context: TaskContext) -> str:
    if context.attempt == 1:
        raise Snooze(0.01)
    if context.attempt == 2:
        raise ValueError("once more")
    return "done"


@task(backend="retried")
def fails_for_good(is_permanent: bool) -> None:
    raise Permanent("NO_USE", "never again") if is_permanent else ValueError("not this time")


@task(takes_context=True)
def sleeps_once(context: TaskContext) -> str:
    if context.attempt == 1:
        raise Snooze(0.01)
    return "awake"


@task()
def counts_users() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select 7")
        (found,) = cursor.fetchone()
    return int(found)
