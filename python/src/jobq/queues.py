"""Queues: the calls that declare, pause and show them."""

from __future__ import annotations

from datetime import timedelta

from jobq.call import Call, nothing, scalar
from jobq.models import DeclaredQueue, LiveWorker, QueueStats, record

__all__ = [
    "list_queues",
    "list_workers",
    "pause",
    "put_queue",
    "queue_stats",
    "replica_lag",
    "resume",
]


def put_queue(
    queue: str,
    *,
    priority: int | None = None,
    max_attempts: int | None = None,
    timeout: timedelta | str | None = None,
    lease: timedelta | str | None = None,
    retry_preset: str | None = None,
    max_depth: int | None = None,
    max_running: int | None = None,
    rate_limit: int | None = None,
    rate_period: timedelta | str | None = None,
    rate_burst: int | None = None,
    key_max_running: int | None = None,
    key_rate_limit: int | None = None,
    key_rate_period: timedelta | str | None = None,
    key_rate_burst: int | None = None,
    ordered: bool | None = None,
    on_dead: str | None = None,
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
        max_running: how many of its jobs run at once.
        rate_limit: how many of its jobs start in each ``rate_period``.
        rate_period: a second by default.
        rate_burst: how many of them may start together; 1 by default.
        key_max_running: how many jobs of each concurrency key run at once.
        key_rate_limit: how many jobs of each key start in each ``key_rate_period``.
        key_rate_period: a second by default.
        key_rate_burst: how many of them may start together; 1 by default.
        ordered: whether the jobs of each key run one at a time, and those behind one that is
            tried again wait for it.
        on_dead: ``continue``, or ``hold``: an ordered key waits for somebody when its job is
            dead.

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
        "max_running": max_running,
        "rate_limit": rate_limit,
        "rate_period": rate_period,
        "rate_burst": rate_burst,
        "key_max_running": key_max_running,
        "key_rate_limit": key_rate_limit,
        "key_rate_period": key_rate_period,
        "key_rate_burst": key_rate_burst,
        "ordered": ordered,
        "on_dead": on_dead,
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
    return Call("queue_stats", {}, list, record(QueueStats), may_lag=True)


def replica_lag() -> Call[timedelta | None]:
    """Return how far what the client lists may lie behind; None where the primary answers."""
    return Call("replica_lag", {}, scalar, may_lag=True)


def list_queues() -> Call[list[DeclaredQueue]]:
    """Return what is declared of each queue, by name."""
    return Call("list_queues", {}, list, record(DeclaredQueue))


def list_workers() -> Call[list[LiveWorker]]:
    """Return the workers that were seen of late, by name."""
    return Call("list_workers", {}, list, record(LiveWorker))
