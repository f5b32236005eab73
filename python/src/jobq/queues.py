"""Queues: the calls that declare, pause and show them."""

from __future__ import annotations

from datetime import timedelta

from jobq.call import Call, nothing
from jobq.models import QueueStats, record

__all__ = ["pause", "put_queue", "queue_stats", "resume"]


def put_queue(
    queue: str,
    *,
    priority: int | None = None,
    max_attempts: int | None = None,
    timeout: timedelta | str | None = None,
    lease: timedelta | str | None = None,
    retry_preset: str | None = None,
    max_depth: int | None = None,
    key_max_running: int | None = None,
) -> Call[None]:
    """Declare a queue in place of what was declared of it; None means the default.

    Args:
        queue: its name.
        priority: of its jobs; higher runs first.
        max_attempts: how many attempts may fail.
        timeout: of each attempt.
        lease: how long a claim holds without a heartbeat.
        retry_preset: how long failed jobs wait.
        max_depth: with so many live jobs, enqueueing is refused.
        key_max_running: how many jobs of each concurrency key run at once.

    Raises:
        InvalidArgument: a value is out of range.
    """
    arguments = {
        "queue": queue,
        "priority": priority,
        "max_attempts": max_attempts,
        "timeout": timeout,
        "lease": lease,
        "retry_preset": retry_preset,
        "max_depth": max_depth,
        "key_max_running": key_max_running,
    }
    return Call("put_queue", arguments, nothing)


def pause(queue: str, reason: str | None = None) -> Call[None]:
    """Stop claims from a queue; what runs goes on, and enqueueing too."""
    return Call("pause_queue", {"queue": queue, "reason": reason}, nothing)


def resume(queue: str) -> Call[None]:
    """Allow claims from a paused queue again.

    Raises:
        NotFound: nobody has declared or paused this queue.
    """
    return Call("resume_queue", {"queue": queue}, nothing)


def queue_stats() -> Call[list[QueueStats]]:
    """Return one record for each queue that has jobs or is declared."""
    return Call("queue_stats", {}, list, record(QueueStats))
