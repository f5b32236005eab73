"""Calls that enqueue, show, run, cancel and redrive jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Unpack
from uuid import UUID

from jobq.calls.arguments import (
    JOB_TEXTS,
    as_jsonb,
    as_object,
    as_text,
    as_uuid,
    as_uuids,
    encode,
    refuse_lists,
    refuse_unknown,
)
from jobq.calls.call import Call, column, first, scalar
from jobq.calls.options import EnqueueOptions
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
    Worked,
    record,
)
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


def get(job_id: UUID | str) -> Call[Job]:
    """Return one job, live or archived."""
    return Call("get_job", locals(), first, record(Job))


def find(kind: str, idempotency_key: str) -> Call[UUID | None]:
    """Return the id of the job with an idempotency key, or None."""
    return Call("find_job", locals(), scalar)


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


def attempts(job_id: UUID | str) -> Call[list[Attempt]]:
    """Return the attempts of a job, oldest first."""
    return Call("list_attempts", locals(), list, record(Attempt))


def logs(job_id: UUID | str) -> Call[list[LogLine]]:
    """Return the log lines of a job, oldest first."""
    return Call("list_logs", locals(), list, record(LogLine))


def explain(job_id: UUID | str) -> Call[list[Explanation]]:
    """Return every reason why a job is not running, the most important first."""
    return Call("explain", locals(), list, record(Explanation))


def cancel(job_id: UUID | str, reason: str | None = None) -> Call[CancelOutcome]:
    """Cancel a waiting job, or ask the worker of a running job to stop it.

    Args:
        job_id: the job.
        reason: at most 512 characters, stored with the job.
    """
    return Call("cancel", locals(), scalar)


def redrive(
    job_id: UUID | str, *, latest: bool = False, max_attempts: int | None = None
) -> Call[RedriveOutcome]:
    """Run a dead or cancelled job again, with all its attempts, and return its new state.

    It is ``queued``, or ``blocked`` if the job must wait for others again.

    Args:
        job_id: the job.
        latest: whether a delivery uses the current version of its endpoint instead of the one
            at the time of the enqueue.
        max_attempts: new maximum number of failed attempts; unchanged by default.

    Raises:
        IllegalState: it is neither dead nor cancelled.
        Conflict: a live job has the same dedup key.
    """
    return Call("redrive", locals(), scalar)


def rerun(job_id: UUID | str) -> Call[UUID]:
    """Enqueue a copy of a finished job, and return its id.

    Its metadata contain the original as ``rerun_of``.

    Raises:
        IllegalState: it has not ended.
    """
    return Call("rerun", locals(), scalar)


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
        since: only jobs that ended at or after this time.
        error_code: only jobs whose last error has this code.
        max_jobs: maximum number, 1 to 100000.
        job_ids: only these jobs.
        dry_run: whether to only return the ids.
        latest: as for `redrive`.
    """
    return Call("redrive_many", locals(), column)


def work(queues: Sequence[str] = ("default",), max_jobs: int = 100) -> Call[list[Worked]]:
    """Run jobs whose kinds are database functions, in one transaction.

    They run with the privileges of the client's login. The rows that a job writes commit together
    with its completion; a failed job rolls back only its own rows.

    Args:
        queues: the queues of the jobs.
        max_jobs: maximum number, 0 to 10000.
    """
    return Call("work", locals(), list, record(Worked))
