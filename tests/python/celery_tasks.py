"""Tasks as they are written for Celery, with another import."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobq import Snooze
from jobq_contrib.celery import Request, shared_task

SEEN: list[Any] = []


@shared_task
def add(x: int, y: int = 0) -> int:
    """Add two numbers."""
    return x + y


@shared_task(queue="slow", name="total", ignore_result=True)
def total(numbers: list[int]) -> int:
    return sum(numbers)


@shared_task(bind=True, max_retries=2, default_retry_delay=0.01)
def stubborn(self: Any, succeeds_at: int) -> int:
    request: Request = self.request
    SEEN.append(request.retries)
    if request.retries < succeeds_at:
        raise self.retry(exc=ValueError("busy"))
    return request.retries


@shared_task(bind=True, max_retries=1, default_retry_delay=0.01)
def sleepy(self: Any) -> None:
    SEEN.append(self.request.retries)
    if len(SEEN) == 1:
        raise Snooze(timedelta(0))
    self.retry(exc=ValueError("busy"))


@shared_task(autoretry_for=[KeyError], retry_backoff=0.01, retry_jitter=False, max_retries=3)
def picky(what: str) -> str:
    SEEN.append(what)
    raise {"key": KeyError, "value": ValueError}[what](what)


@shared_task
def note(*args: Any, **kwargs: Any) -> None:
    SEEN.append((args, kwargs))
