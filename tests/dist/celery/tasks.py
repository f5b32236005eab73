"""Tasks as Celery has them, with another import."""

from __future__ import annotations

from jobq_contrib.celery import shared_task


@shared_task
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y
