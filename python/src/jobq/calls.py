"""Every call of the client's, once: which function, which arguments, how to read the rows.

A call says nothing about connections: `jobq.client` runs it, waiting or awaiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from uuid import UUID

import msgspec
from psycopg import sql
from psycopg.rows import tuple_row
from psycopg.types.json import Jsonb

from jobq.errors import InvalidArgument
from jobq.models import (
    Attempt,
    CancelOutcome,
    Enqueued,
    Explanation,
    Job,
    Json,
    LogLine,
    Privilege,
    QueueGrant,
    QueueStats,
    State,
    record,
)
from jobq.tracing import with_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One call of a function in the schema jobq.

    Attributes:
        function: its name.
        arguments: by the names of its parameters; None is left to the default.
        read: makes the answer of the rows.
        row_factory: makes rows, as psycopg's row factories do.
        inputs: kinds and payloads, to be checked against schemas that the database cannot
            enforce by itself.
    """

    function: str
    arguments: Mapping[str, object]
    read: Callable[[list[Any]], T]
    row_factory: Any = tuple_row
    inputs: Sequence[tuple[str, Json]] = ()

    @property
    def given(self) -> dict[str, object]:
        """The arguments that are not left to their defaults."""
        return {name: value for name, value in self.arguments.items() if value is not None}


@cache
def statement(function: str, parameters: tuple[str, ...]) -> bytes:
    """Return the statement that calls a function with named parameters."""
    arguments = [
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
        for name in parameters
    ]
    return (
        sql.SQL("select * from jobq.{}({})")
        .format(sql.Identifier(function), sql.SQL(", ").join(arguments))
        .as_bytes()
    )


def encode(value: object) -> str:
    """Return JSON text.

    Raises:
        InvalidArgument: the value is not JSON.
    """
    try:
        return msgspec.json.encode(value, enc_hook=plain).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument("a value cannot be written as JSON", detail=str(error)) from error


def plain(value: object) -> object:
    """Return what a pydantic model holds; msgspec knows everything else by itself."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return dump(mode="json")


def as_jsonb(value: object) -> Jsonb | None:
    """Return a parameter of type jsonb; None stays None."""
    return None if value is None else Jsonb(value, dumps=encode)


def as_text(value: object) -> str:
    """Return a string, number, time or duration as PostgreSQL reads any of its types.

    Raises:
        InvalidArgument: the value is None, or has no such form.
    """
    if value is None:
        raise InvalidArgument("an argument that is needed is None")
    text = encode(value)
    return value if isinstance(value, str) else text.strip('"')


def nothing(_rows: list[Any]) -> None:
    """Read the answer of a function that returns void."""


def first(rows: list[Any]) -> Any:  # noqa: ANN401 - whatever the row factory makes
    """Read an answer of one record."""
    return rows[0]


def scalar(rows: list[Any]) -> Any:  # noqa: ANN401 - whatever the column holds
    """Read an answer of one value."""
    return rows[0][0]


# ---- producing


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
        dedup: ``skip`` (give the live job), ``enqueue`` (no matter) or ``replace`` (cancel
            the waiting one).
        metadata: a JSON object that handlers see beside the payload.

    Returns:
        The job's id, and whether this call created it.

    Raises:
        PayloadInvalid: the payload does not fit its kind's schema.
        PayloadTooLarge: payload and metadata have too many bytes.
        QueueFull: the queue has as many jobs as it may have.
        Conflict: the dedup key is held by a job that runs, and ``replace`` was asked for.
        InvalidArgument: an argument may not have this value.
    """
    metadata = with_trace(metadata)
    job = {name: value for name, value in locals().items() if value is not None}
    inputs = [(as_text(kind), payload)]
    if idempotency_key is None and dedup_key is None:
        given = {
            name: encode(value) if name in ("payload", "metadata") else as_text(value)
            for name, value in job.items()
        }
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
    given = [{k: v for k, v in job.items() if v is not None} for job in jobs]
    inputs = [(str(job.get("kind")), job.get("payload")) for job in given]
    return Call("enqueue_many", {"jobs": as_jsonb(given)}, list, record(Enqueued), inputs)


def list_payload_schemas(kinds: Sequence[str]) -> Call[dict[str, Json]]:
    """Return the schemas of kinds that clients check payloads against.

    Raises:
        InvalidArgument: a kind is no text.
    """
    return Call("list_payload_schemas", {"kinds": [as_text(kind) for kind in kinds]}, dict)


# ---- looking


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
) -> Call[list[Job]]:
    """Return a page of jobs, newest first.

    Args:
        state: only jobs in this state.
        kind: only jobs of this kind.
        queue: only jobs of this queue.
        before: the last id of the page before.
        max_jobs: 1 to 1000.
    """
    arguments = {
        "state": state,
        "kind": kind,
        "queue": queue,
        "before": None if before is None else as_uuid(before),
        "max_jobs": max_jobs,
    }
    return Call("list_jobs", arguments, list, record(Job))


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


def queue_stats() -> Call[list[QueueStats]]:
    """Return one record for each queue that has jobs or is declared."""
    return Call("queue_stats", {}, list, record(QueueStats))


def settings(kind: str | None = None, queue: str | None = None) -> Call[dict[str, Json]]:
    """Show what would hold for a job of this kind in this queue."""
    read = cast("Callable[[list[Any]], dict[str, Json]]", scalar)
    return Call("settings", {"kind": kind, "queue": queue}, read)


# ---- steering


def cancel(job_id: UUID | str, reason: str | None = None) -> Call[CancelOutcome]:
    """Cancel a waiting job at once, ask the worker of a running one, and say which.

    Args:
        job_id: the job.
        reason: at most 512 characters, kept with the job.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("cancel", {"job_id": as_uuid(job_id), "reason": reason}, scalar)


def redrive(job_id: UUID | str) -> Call[None]:
    """Run a dead or cancelled job again, its attempts counted afresh.

    Raises:
        JobNotFound: there is no such job.
        IllegalState: it is neither dead nor cancelled.
        Conflict: a live job holds its dedup key.
    """
    return Call("redrive", {"job_id": as_uuid(job_id)}, nothing)


def redrive_many(
    queue: str | None = None,
    kind: str | None = None,
    since: datetime | None = None,
    error_code: str | None = None,
    max_jobs: int = 1000,
) -> Call[list[UUID]]:
    """Run many dead jobs again and return their ids.

    Args:
        queue: only jobs of this queue.
        kind: only jobs of this kind.
        since: only jobs that ended at or after this moment.
        error_code: only jobs whose last error has this code.
        max_jobs: at most so many, 1 to 100000.
    """
    arguments = {
        "queue": queue,
        "kind": kind,
        "since": since,
        "error_code": error_code,
        "max_jobs": max_jobs,
    }
    return Call("redrive_many", arguments, lambda rows: [row[0] for row in rows])


def pause(queue: str, reason: str | None = None) -> Call[None]:
    """Stop claims from a queue; what runs goes on, and enqueueing too."""
    return Call("pause_queue", {"queue": queue, "reason": reason}, nothing)


def resume(queue: str) -> Call[None]:
    """Allow claims from a paused queue again.

    Raises:
        NotFound: nobody has declared or paused this queue.
    """
    return Call("resume_queue", {"queue": queue}, nothing)


# ---- defining


def put_kind(
    kind: str,
    *,
    queue: str | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    timeout: timedelta | str | None = None,
    lease: timedelta | str | None = None,
    retry_preset: str | None = None,
    retry_strategy: str | None = None,
    retry_initial_delay: timedelta | str | None = None,
    retry_max_delay: timedelta | str | None = None,
    retry_jitter: float | None = None,
    dedup: str | None = None,
    reuse_key_after_failure: bool | None = None,
    payload_schema: Mapping[str, Json] | None = None,
) -> Call[None]:
    """Declare a kind of job in place of what was declared of it; None means the default.

    Args:
        kind: its name.
        queue: where its jobs go.
        priority: higher runs first.
        max_attempts: how many attempts may fail.
        timeout: of each attempt.
        lease: how long a claim holds without a heartbeat, 1 s to 1 day.
        retry_preset: ``standard``, ``decorrelated``, ``powers_of_two`` or ``delivery``.
        retry_strategy: ``fixed``, ``linear``, ``exponential`` or ``decorrelated``.
        retry_initial_delay: the first wait.
        retry_max_delay: the longest.
        retry_jitter: 0 to 1, as a share of the wait.
        dedup: ``skip``, ``enqueue`` or ``replace``.
        reuse_key_after_failure: whether the idempotency key of a job that failed may be
            used again.
        payload_schema: a JSON Schema that every payload must meet at enqueue.

    Raises:
        PayloadInvalid: the schema uses a keyword that the database does not enforce.
        InvalidArgument: a value is out of range.
    """
    arguments = dict(locals())
    arguments["payload_schema"] = as_jsonb(payload_schema)
    return Call("put_kind", arguments, nothing)


def put_queue(
    queue: str,
    *,
    priority: int | None = None,
    max_attempts: int | None = None,
    timeout: timedelta | str | None = None,
    lease: timedelta | str | None = None,
    retry_preset: str | None = None,
    max_depth: int | None = None,
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

    Raises:
        InvalidArgument: a value is out of range.
    """
    return Call("put_queue", dict(locals()), nothing)


def configure(
    *,
    priority: int | None = None,
    max_attempts: int | None = None,
    timeout: timedelta | str | None = None,
    lease: timedelta | str | None = None,
    retry_preset: str | None = None,
    dedup: str | None = None,
    reuse_key_after_failure: bool | None = None,
    max_expiries: int | None = None,
    max_payload_bytes: int | None = None,
    max_payload_depth: int | None = None,
    retention: timedelta | str | None = None,
    key_retention: timedelta | str | None = None,
) -> Call[None]:
    """Change global defaults; None leaves a default as it is.

    Args:
        priority: of jobs; higher runs first.
        max_attempts: how many attempts may fail.
        timeout: of each attempt.
        lease: how long a claim holds without a heartbeat.
        retry_preset: how long failed jobs wait.
        dedup: what a dedup key does.
        reuse_key_after_failure: whether a failed job gives its idempotency key back.
        max_expiries: so many expired leases kill a job.
        max_payload_bytes: of payload and metadata together.
        max_payload_depth: levels of nesting.
        retention: how long finished jobs are kept.
        key_retention: how long idempotency keys are kept.

    Raises:
        InvalidArgument: a value is out of range.
    """
    return Call("configure", dict(locals()), nothing)


def as_uuid(job_id: UUID | str) -> UUID:
    """Return a job's id.

    Raises:
        InvalidArgument: it is not a UUID.
    """
    if isinstance(job_id, UUID):
        return job_id
    try:
        return UUID(job_id)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgument("a job id must be a UUID", detail=str(job_id)) from error


# ---- grants by queue, for the owner


def grant_queue(grantee: str, queue: str, privilege: Privilege) -> Call[None]:
    """Let a role use a queue once grants by queue are enforced; again changes nothing.

    Args:
        grantee: the role.
        queue: its name, or ``*`` for all.
        privilege: ``enqueue`` to add, see and cancel its jobs; ``work`` for all else.

    Raises:
        NotPermitted: this user may not act as jobq_owner.
        InvalidArgument: there is no such role, queue or privilege.
    """
    arguments = {"grantee": grantee, "queue": queue, "privilege": privilege}
    return Call("grant_queue", arguments, nothing)


def revoke_queue(grantee: str, queue: str, privilege: Privilege) -> Call[None]:
    """Take back what `grant_queue` gave, for the next call of every session.

    Raises:
        NotPermitted, InvalidArgument: as for `grant_queue`.
    """
    arguments = {"grantee": grantee, "queue": queue, "privilege": privilege}
    return Call("revoke_queue", arguments, nothing)


def enforce_queue_grants(*, enforced: bool = True) -> Call[None]:
    """Have every log-in see and touch only the queues that it holds; False ends that.

    Raises:
        NotPermitted: this user may not act as jobq_owner.
        JobqError: a transaction has held a table for 5 s (55P03); call again.
    """
    return Call("enforce_queue_grants", {"enforced": enforced}, nothing)


def list_queue_grants() -> Call[list[QueueGrant]]:
    """Return the grants by queue: the owner all of them, others their own."""
    return Call("list_queue_grants", {}, list, record(QueueGrant))
