"""Calls that enqueue, list and change jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Unpack
from uuid import UUID

from jobq.calls.arguments import (
    JOB_TEXTS,
    Span,
    as_jsonb,
    as_object,
    as_text,
    as_timedelta,
    as_uuid,
    as_uuids,
    encode,
    refuse_lists,
    refuse_unknown,
)
from jobq.calls.call import Call, column, first, scalar
from jobq.calls.options import EnqueueOptions
from jobq.errors import InvalidArgument
from jobq.models import Enqueued, Job, JobPage, Json, State, record
from jobq.tracing import with_trace

# Statements name arguments in this order, so that there are few different ones.
MEMBERS: Final = ("kind", "payload", *EnqueueOptions.__annotations__)


def enqueue(kind: str, payload: Json = None, **options: Unpack[EnqueueOptions]) -> Call[Enqueued]:
    """Enqueue a job. It exists when the transaction commits.

    Args:
        kind: names the handler.
        payload: JSON, a dataclass, or anything that msgspec can encode; None is ``{}``.
        options: see `jobq.calls.options.EnqueueOptions`.

    Returns:
        The job's id, and whether this call created it.

    Raises:
        PayloadInvalid: the payload does not match the schema of its kind.
        PayloadTooLarge: payload and metadata have too many bytes.
        QueueFull: the queue is at its ``max_depth``.
        Conflict: with ``dedup="replace"``, the job with the same key is running.
        JobNotFound: a job of ``after``, or the batch, does not exist.
        IllegalState: the batch has ended.
    """
    refuse_unknown(options, EnqueueOptions)
    given: dict[str, Any] = {"kind": kind, "payload": payload, **options}
    given["metadata"] = with_trace(given.get("metadata"))
    given["after"] = as_uuids(given.get("after") or ()) or None
    if given.get("batch_id") is not None:
        given["batch_id"] = as_uuid(given["batch_id"])
    job = {name: given[name] for name in MEMBERS if given.get(name) is not None}
    refuse_lists(job, JOB_TEXTS)
    inputs = [(as_text(kind), payload)]
    if "idempotency_key" in job or "dedup_key" in job:
        return Call("enqueue_many", {"jobs": as_jsonb([job])}, first, record(Enqueued), inputs)
    for name in job.keys() - {"after"}:
        value = job[name]
        job[name] = encode(value) if name in ("payload", "metadata") else as_text(value)
    return Call("enqueue", job, new_job, inputs=inputs)


def new_job(rows: list[Any]) -> Enqueued:
    """Read the answer of enqueue() without a key, which always creates a job."""
    return Enqueued(scalar(rows), created=True)


def enqueue_many(jobs: Iterable[Mapping[str, Json]]) -> Call[list[Enqueued]]:
    """Enqueue many jobs with one call, all or none.

    Args:
        jobs: for each job, the arguments of ``enqueue`` by name.

    Returns:
        For each job, in the same order, its id and whether it was created.

    Raises:
        JobqError: as ``enqueue``; the detail names the job.
    """
    given = [{k: v for k, v in as_object("each job", job).items() if v is not None} for job in jobs]
    for job in given:
        refuse_lists(job, JOB_TEXTS)
    inputs = [(str(job.get("kind")), job.get("payload")) for job in given]
    return Call("enqueue_many", {"jobs": as_jsonb(given)}, list, record(Enqueued), inputs)


def list_jobs(
    state: State | None = None,
    kind: str | None = None,
    queue: str | None = None,
    before: UUID | str | None = None,
    max_jobs: int = 50,
) -> Call[JobPage]:
    """Return a page of jobs, newest first.

    A page may have few jobs or none and still a ``cursor``, because each page searches at most
    100,000 jobs.

    Args:
        state: only jobs in this state.
        kind: only jobs of this kind.
        queue: only jobs of this queue.
        before: the ``cursor`` of the previous page, or any job's id.
        max_jobs: 1 to 1000.
    """
    arguments = locals()

    def read(rows: list[Job]) -> JobPage:
        is_cut = bool(rows) and not rows[-1].state
        cursor = rows[-1].job_id if is_cut or len(rows) == max_jobs else None
        return JobPage(rows[:-1] if is_cut else rows, cursor)

    return Call("list_jobs", arguments, read, record(Job), may_lag=True)


def change_many(
    job_ids: Iterable[UUID | str] | None = None,
    *,
    run_at: datetime | None = None,
    run_now: bool = False,
    priority: int | None = None,
    to_queue: str | None = None,
    payload: Json = None,
    timeout: Span | None = None,
    expires_at: datetime | None = None,
    max_attempts: int | None = None,
    queue: str | None = None,
    kind: str | None = None,
    metadata: Mapping[str, Json] | None = None,
    max_jobs: int = 1000,
    dry_run: bool = False,
    reason: str | None = None,
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
        queue: only jobs of this queue.
        kind: only jobs of this kind.
        metadata: only jobs whose metadata contain this.
        max_jobs: maximum number, 1 to 100000, the oldest first.
        dry_run: whether to change nothing.
        reason: at most 512 characters, for the audit.

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
        "timeout": as_timedelta(timeout),
        "expires_at": expires_at,
        "max_attempts": max_attempts,
    }
    arguments = {
        "changes": as_jsonb({name: value for name, value in changes.items() if value is not None}),
        "job_ids": job_ids,
        "queue": queue,
        "kind": kind,
        "metadata": as_jsonb(metadata),
        "max_jobs": max_jobs,
        "dry_run": dry_run,
        "reason": reason,
    }
    return Call("change_many", arguments, column)
