"""Steering: the calls that change, cancel and delete many jobs at once.

Which ones: those named by ``job_ids``, of a ``queue``, of a ``kind``, whose metadata contains
``metadata``; those for which all that is given holds, the oldest ``max_jobs`` of them. At least
one of the four must be given. With ``dry_run`` nothing is done, and the answer is the same.
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
        max_jobs: at most so many, 1 to 100000, the oldest first; 1000 by default.
        dry_run: whether to return what would be done only.
        reason: why, in at most 512 characters: kept with the jobs that are cancelled, and for the
            audit.
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
    """Change jobs that wait, all or none, and return their ids; None leaves as it is.

    Args:
        job_ids: these jobs; each must wait.
        run_at: not before this moment.
        run_now: as soon as a worker is free, instead of ``run_at``.
        priority: higher runs first.
        to_queue: the queue that they move to.
        payload: JSON, for jobs that have never run.
        timeout: of each attempt.
        expires_at: no attempt begins after this moment.
        max_attempts: how many attempts may fail, the failed ones included.
        which: see `WhichOptions`.

    Raises:
        JobNotFound: one of the ids is of no job.
        IllegalState: a job named by its id does not wait, or has run and would get a payload,
            or has used so many attempts.
        PayloadInvalid: the payload does not fit the schema of a job's kind.
        QueueFull: the queue takes no more.
        InvalidArgument: nothing chooses jobs, nothing is to change, or a job would expire before
            it is due.
        NotPermitted: a job's queue, or ``to_queue``, is not this user's to work.
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
    """Cancel waiting jobs at once, ask the workers of running ones, and say which.

    Args:
        job_ids: these jobs; none may have ended.
        state: only ``blocked``, ``queued``, ``retrying`` or ``running`` ones.
        which: see `WhichOptions`.

    Raises:
        JobNotFound: one of the ids is of no job.
        IllegalState: a job named by its id has ended.
        InvalidArgument: nothing chooses jobs.
    """
    return Call("cancel_many", {**_which(job_ids, which), "state": state}, list, record(Steered))


def delete_many(
    job_ids: Iterable[UUID | str] | None = None,
    *,
    state: str | None = None,
    **which: Unpack[WhichOptions],
) -> Call[list[UUID]]:
    """Delete jobs with all that is known of them, and return their ids.

    Args:
        job_ids: these jobs, waiting or ended; none may run.
        state: only jobs in this state; None means those that wait, and with ``job_ids`` any.
        which: see `WhichOptions`.

    Raises:
        JobNotFound: one of the ids is of no job.
        IllegalState: a job named by its id runs.
        InvalidArgument: nothing chooses jobs.
        NotPermitted: a job's queue is not this user's to work.
    """
    return Call("delete_many", {**_which(job_ids, which), "state": state}, column)


def _which(job_ids: Iterable[UUID | str] | None, which: WhichOptions) -> dict[str, object]:
    """Return the arguments that say which jobs."""
    refuse_unknown(which, WhichOptions)
    return {
        "max_jobs": 1000,
        **which,
        "job_ids": job_ids,
        "metadata": as_jsonb(which.get("metadata")),
    }
