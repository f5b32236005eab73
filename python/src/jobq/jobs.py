"""Jobs: the calls that enqueue, show, cancel and redrive them.

`Client` and `AsyncClient` have a method for each of these calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from jobq.arguments import (
    JOB_TEXTS,
    as_jsonb,
    as_object,
    as_text,
    as_uuid,
    as_uuids,
    encode,
    refuse_lists,
)
from jobq.call import Call, first, scalar
from jobq.models import (
    Attempt,
    CancelOutcome,
    Enqueued,
    Explanation,
    Job,
    JobPage,
    Json,
    LogLine,
    RedriveOutcome,
    State,
    record,
)
from jobq.tracing import with_trace

__all__ = [
    "attempts",
    "cancel",
    "enqueue",
    "enqueue_many",
    "explain",
    "find",
    "get",
    "list_jobs",
    "logs",
    "redrive",
    "redrive_many",
]


def enqueue(
    kind: str,
    payload: Json = None,
    *,
    queue: str | None = None,
    run_at: datetime | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    timeout: timedelta | str | None = None,
    idempotency_key: str | None = None,
    dedup_key: str | None = None,
    dedup: str | None = None,
    metadata: Mapping[str, Json] | None = None,
    concurrency_key: str | None = None,
    expires_at: datetime | None = None,
    after: Iterable[UUID | str] | None = None,
    after_failure: str | None = None,
    batch_id: UUID | str | None = None,
) -> Call[Enqueued]:
    """Add a job; it exists when the transaction commits.

    Args:
        kind: what is to be done; names the handler.
        payload: JSON, a dataclass, or anything that msgspec can encode; None is ``{}``.
        queue: the kind's own by default.
        run_at: not before this moment; now by default.
        priority: higher runs first, from -32768 to 32767.
        max_attempts: how many attempts may fail.
        timeout: of each attempt, as a timedelta or as PostgreSQL writes intervals.
        idempotency_key: the same key of a kind gives the same job, finished or not.
        dedup_key: looks at live jobs of the kind only; ``dedup`` says what follows.
        dedup: ``skip`` (give the live job), ``enqueue`` (no matter), ``replace`` (cancel the
            waiting one), ``debounce`` (have it take this payload and wait on) or ``throttle``
            (one job in each ``dedup_period`` of the kind).
        metadata: a JSON object that handlers see beside the payload.
        concurrency_key: for whom it runs, in at most 1024 bytes; keys of a queue take turns,
            and limits hold for each; the kind's path by default.
        expires_at: after run_at; no attempt begins after this moment: the job is then dead,
            with the code EXPIRED.
        after: the jobs that it waits for, live or ended; until then it is ``blocked``.
        after_failure: what follows when one of them is dead or cancelled: ``cancel`` (it is
            cancelled too; the default), ``wait`` (it waits for that one's redrive) or ``run``
            (it runs when all have ended, however).
        batch_id: the batch that it becomes a member of.

    Returns:
        The job's id, and whether this call created it.

    Raises:
        PayloadInvalid: the payload does not fit its kind's schema.
        PayloadTooLarge: payload and metadata have too many bytes.
        QueueFull: the queue has as many jobs as it may have.
        Conflict: the dedup key is held by a job that runs, and ``replace`` was asked for.
        JobNotFound: one of ``after`` is not there, or the batch is not.
        IllegalState: the batch has ended.
        InvalidArgument: an argument may not have this value.
    """
    options = {
        "kind": kind,
        "payload": payload,
        "queue": queue,
        "run_at": run_at,
        "priority": priority,
        "max_attempts": max_attempts,
        "timeout": timeout,
        "idempotency_key": idempotency_key,
        "dedup_key": dedup_key,
        "dedup": dedup,
        "concurrency_key": concurrency_key,
        "expires_at": expires_at,
        "metadata": with_trace(metadata),
        "after": as_uuids(after or ()) or None,
        "after_failure": after_failure,
        "batch_id": None if batch_id is None else as_uuid(batch_id),
    }
    job = {name: value for name, value in options.items() if value is not None}
    refuse_lists(job, JOB_TEXTS)
    inputs = [(as_text(kind), payload)]
    if idempotency_key is None and dedup_key is None:
        given = {
            name: encode(value) if name in ("payload", "metadata") else as_text(value)
            for name, value in job.items()
            if name != "after"
        } | {name: value for name, value in job.items() if name == "after"}
        return Call("enqueue", given, new_job, inputs=inputs)
    return Call("enqueue_many", {"jobs": as_jsonb([job])}, first, record(Enqueued), inputs)


def new_job(rows: list[Any]) -> Enqueued:
    """Read the answer of enqueue() without a key, which always creates a job."""
    return Enqueued(scalar(rows), created=True)


def enqueue_many(jobs: Iterable[Mapping[str, Json]]) -> Call[list[Enqueued]]:
    """Add many jobs with one call, all or none.

    Args:
        jobs: of each, the parameters of ``enqueue`` by name.

    Returns:
        For each job, in its order, the id and whether it was created.

    Raises:
        JobqError: as ``enqueue``; the detail names the job.
    """
    given = [{k: v for k, v in as_object("each job", job).items() if v is not None} for job in jobs]
    for job in given:
        refuse_lists(job, JOB_TEXTS)
    inputs = [(str(job.get("kind")), job.get("payload")) for job in given]
    return Call("enqueue_many", {"jobs": as_jsonb(given)}, list, record(Enqueued), inputs)


def get(job_id: UUID | str) -> Call[Job]:
    """Return one job, live or archived.

    Raises:
        JobNotFound: there is none, or its retention has ended.
    """
    return Call("get_job", {"job_id": as_uuid(job_id)}, first, record(Job))


def find(kind: str, idempotency_key: str) -> Call[UUID | None]:
    """Return the id of the job that an idempotency key stands for, or None."""
    arguments = {"kind": kind, "idempotency_key": idempotency_key}
    return Call("find_job", arguments, scalar)


def list_jobs(
    state: State | None = None,
    kind: str | None = None,
    queue: str | None = None,
    before: UUID | str | None = None,
    max_jobs: int = 50,
) -> Call[JobPage]:
    """Return a page of jobs, newest first.

    A page may have few jobs or none, and still a ``cursor``: the search has looked at 100,000 jobs,
    and goes on from there.

    Args:
        state: only jobs in this state.
        kind: only jobs of this kind.
        queue: only jobs of this queue.
        before: the ``cursor`` of the page before, or any job's id.
        max_jobs: 1 to 1000.
    """
    arguments = {
        "state": state,
        "kind": kind,
        "queue": queue,
        "before": None if before is None else as_uuid(before),
        "max_jobs": max_jobs,
    }

    def read(rows: list[Job]) -> JobPage:
        is_cut = bool(rows) and not rows[-1].state
        cursor = rows[-1].job_id if is_cut or len(rows) == max_jobs else None
        return JobPage(rows[:-1] if is_cut else rows, cursor)

    return Call("list_jobs", arguments, read, record(Job), may_lag=True)


def attempts(job_id: UUID | str) -> Call[list[Attempt]]:
    """Return the attempts of one job, in their order.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("list_attempts", {"job_id": as_uuid(job_id)}, list, record(Attempt))


def logs(job_id: UUID | str) -> Call[list[LogLine]]:
    """Return what handlers logged for one job, in its order.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("list_logs", {"job_id": as_uuid(job_id)}, list, record(LogLine))


def explain(job_id: UUID | str) -> Call[list[Explanation]]:
    """Say why a job is not running: every reason that holds, the first one first.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("explain", {"job_id": as_uuid(job_id)}, list, record(Explanation))


def cancel(job_id: UUID | str, reason: str | None = None) -> Call[CancelOutcome]:
    """Cancel a waiting job at once, ask the worker of a running one, and say which.

    Args:
        job_id: the job.
        reason: at most 512 characters, kept with the job.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("cancel", {"job_id": as_uuid(job_id), "reason": reason}, scalar)


def redrive(job_id: UUID | str, *, latest: bool = False) -> Call[RedriveOutcome]:
    """Run a dead or cancelled job again, its attempts counted afresh, and return its new state.

    Args:
        job_id: its id.
        latest: whether a delivery is made by its endpoint as it is now, and no longer as it was
            when the job was made.

    Returns:
        ``queued``, or ``blocked`` where it has to wait again.

    Raises:
        JobNotFound: there is no such job.
        IllegalState: it is neither dead nor cancelled.
        Conflict: a live job holds its dedup key.
    """
    return Call("redrive", {"job_id": as_uuid(job_id), "latest": latest}, scalar)


def redrive_many(
    queue: str | None = None,
    kind: str | None = None,
    since: datetime | None = None,
    error_code: str | None = None,
    max_jobs: int = 1000,
    *,
    job_ids: Iterable[UUID | str] | None = None,
    dry_run: bool = False,
    latest: bool = False,
) -> Call[list[UUID]]:
    """Run many dead jobs again and return their ids.

    Args:
        queue: only jobs of this queue.
        kind: only jobs of this kind.
        since: only jobs that ended at or after this moment.
        error_code: only jobs whose last error has this code.
        max_jobs: at most so many, 1 to 100000.
        job_ids: only those of these jobs that are dead.
        dry_run: whether to return the ids only.
        latest: whether deliveries are made by their endpoint as it is now, and no longer as it
            was when the job was made.
    """
    arguments = {
        "queue": queue,
        "kind": kind,
        "since": since,
        "error_code": error_code,
        "max_jobs": max_jobs,
        "job_ids": job_ids if job_ids is None else as_uuids(job_ids),
        "dry_run": dry_run,
        "latest": latest,
    }
    return Call("redrive_many", arguments, lambda rows: [row[0] for row in rows])
