"""Calls that change, cancel and delete many jobs.

The jobs are selected by ``job_ids``, ``queue``, ``kind`` and ``metadata``, at least one of them.
The oldest ``max_jobs`` that match all of these are affected. With ``dry_run`` nothing changes,
and the result is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypedDict, Unpack
from uuid import UUID

from jobq.calls.arguments import as_jsonb, refuse_unknown
from jobq.calls.call import Call, column
from jobq.errors import InvalidArgument
from jobq.models import Json, Steered, record


class WhichOptions(TypedDict, total=False):
    """Which jobs, and how.

    Attributes:
        queue: only jobs of this queue.
        kind: only jobs of this kind.
        metadata: only jobs whose metadata contains this.
        max_jobs: maximum number, 1 to 100000, the oldest first; 1000 by default.
        dry_run: whether to change nothing.
        reason: at most 512 characters, for the audit and stored with cancelled jobs.
    """

    queue: str | None
    kind: str | None
    metadata: Mapping[str, Json] | None
    max_jobs: int
    dry_run: bool
    reason: str | None


def change_many(
    job_ids: Iterable[UUID | str] | None = None,
    *,
    run_at: datetime | None = None,
    run_now: bool = False,
    priority: int | None = None,
    to_queue: str | None = None,
    payload: Json = None,
    timeout: timedelta | str | None = None,
    expires_at: datetime | None = None,
    max_attempts: int | None = None,
    **which: Unpack[WhichOptions],
) -> Call[list[UUID]]:
    """Change waiting jobs, all or none, and return their ids. None leaves a value unchanged.

    Args:
        job_ids: these jobs; each must be waiting.
        run_at: earliest start.
        run_now: start as soon as possible, instead of ``run_at``.
        priority: higher values run first.
        to_queue: the queue to move them to.
        payload: JSON, only for jobs that have never run.
        timeout: timeout of each attempt.
        expires_at: no attempt starts after this time.
        max_attempts: new maximum number of failed attempts, including those so far.
        which: see `WhichOptions`.

    Raises:
        JobNotFound: one of ``job_ids`` does not exist.
        IllegalState: one of ``job_ids`` is not waiting, has run and would get a payload, or has
            used that many attempts.
        PayloadInvalid: the payload does not match the schema of a job's kind.
        QueueFull: the queue is at its ``max_depth``.
        InvalidArgument: no jobs are selected, nothing is to change, or a job would expire before
            it is due.
        NotPermitted: the login may not work a job's queue, or ``to_queue``.
    """
    if run_now and run_at is not None:
        raise InvalidArgument("give run_now or run_at, not both")
    changes = {
        "run_at": "now" if run_now else run_at,
        "priority": priority,
        "queue": to_queue,
        "payload": payload,
        "timeout": timeout,
        "expires_at": expires_at,
        "max_attempts": max_attempts,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    return Call("change_many", {"changes": as_jsonb(given), **_which(job_ids, which)}, column)


def cancel_many(
    job_ids: Iterable[UUID | str] | None = None,
    *,
    state: str | None = None,
    **which: Unpack[WhichOptions],
) -> Call[list[Steered]]:
    """Cancel waiting jobs, and ask the workers of running jobs to stop them.

    Args:
        job_ids: these jobs; none may have ended.
        state: only ``blocked``, ``queued``, ``retrying`` or ``running`` jobs.
        which: see `WhichOptions`.

    Raises:
        JobNotFound: one of ``job_ids`` does not exist.
        IllegalState: one of ``job_ids`` has ended.
        InvalidArgument: no jobs are selected.
    """
    return Call("cancel_many", {**_which(job_ids, which), "state": state}, list, record(Steered))


def delete_many(
    job_ids: Iterable[UUID | str] | None = None,
    *,
    state: str | None = None,
    **which: Unpack[WhichOptions],
) -> Call[list[UUID]]:
    """Delete jobs with all their records, and return their ids.

    Args:
        job_ids: these jobs, waiting or ended; none may be running.
        state: only jobs in this state; None means waiting jobs, or any with ``job_ids``.
        which: see `WhichOptions`.

    Raises:
        JobNotFound: one of ``job_ids`` does not exist.
        IllegalState: one of ``job_ids`` is running.
        InvalidArgument: no jobs are selected.
        NotPermitted: the login may not work a job's queue.
    """
    return Call("delete_many", {**_which(job_ids, which), "state": state}, column)


def _which(job_ids: Iterable[UUID | str] | None, which: WhichOptions) -> dict[str, object]:
    """Return the arguments that select jobs."""
    refuse_unknown(which, WhichOptions)
    return {
        "max_jobs": 1000,
        **which,
        "job_ids": job_ids,
        "metadata": as_jsonb(which.get("metadata")),
    }
