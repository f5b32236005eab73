"""Calls that declare, pause and show queues."""

from __future__ import annotations

from datetime import timedelta
from typing import Unpack

from jobq.calls.arguments import refuse_unknown
from jobq.calls.call import Call, nothing, scalar
from jobq.calls.options import QueueOptions, in_time
from jobq.models import DeclaredQueue, LiveWorker, QueueStats, record


def put_queue(queue: str, **options: Unpack[QueueOptions]) -> Call[None]:
    """Declare a queue, or replace its declaration.

    Args:
        queue: its name.
        options: see `jobq.calls.options.QueueOptions`.
    """
    refuse_unknown(options, QueueOptions)
    return Call("put_queue", in_time({"queue": queue, **options}), nothing)


def pause(queue: str, reason: str | None = None) -> Call[None]:
    """Stop claims from a queue, or from all (``*``).

    Running jobs continue, and jobs can still be enqueued.
    """
    return Call("pause_queue", locals(), nothing)


def resume(queue: str) -> Call[None]:
    """Allow claims from a paused queue again; ``*`` ends a pause of all queues.

    Raises:
        NotFound: the queue is neither declared nor paused.
    """
    return Call("resume_queue", locals(), nothing)


def queue_stats() -> Call[list[QueueStats]]:
    """Return statistics of each queue that has jobs or is declared."""
    return Call("queue_stats", {}, list, record(QueueStats), may_lag=True)


def replica_lag() -> Call[timedelta | None]:
    """Return how far the lists of the client may lag behind; None if the primary answers."""
    return Call("replica_lag", {}, scalar, may_lag=True)


def list_queues() -> Call[list[DeclaredQueue]]:
    """Return the declared queues, by name."""
    return Call("list_queues", {}, list, record(DeclaredQueue))


def list_workers() -> Call[list[LiveWorker]]:
    """Return the workers that were seen recently, by name."""
    return Call("list_workers", {}, list, record(LiveWorker))
