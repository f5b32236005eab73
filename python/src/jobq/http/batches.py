"""Batches: jobs that belong together, and what runs when they have ended; inputs of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from jobq.http.enqueued import enqueued, inputs_of
from jobq.http.operation import Answer, Operation, encoded, text
from jobq.http.values import (
    AfterFailure,
    AnyJson,
    Attempts,
    ConcurrencyKey,
    Json,
    JsonMembers,
    Milliseconds,
    Moment,
    Name,
    Priority,
    Reason,
    Request,
    State,
)

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call


class Callback(Request, kw_only=True, omit_defaults=True):
    """A job that is blocked until then; it has no idempotency key or dedup key."""

    kind: Name
    payload: Json | UnsetType = UNSET
    run_at: Moment | None = None
    queue: Name | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    timeout_ms: Milliseconds | None = None
    metadata: JsonMembers | None = None
    concurrency_key: ConcurrencyKey | None = None
    batch_id: UUID | None = None


class NewBatch(Request, kw_only=True):
    """The jobs that are to run when a batch ends."""

    on_success: Callback | None = None
    on_end: Callback | None = None
    on_first_death: Callback | None = None


class BatchCancellation(Request, kw_only=True):
    """Why a batch is cancelled, and how many waiting members by this request."""

    reason: Reason | None = None
    max_jobs: Annotated[float, Meta(ge=1, le=100_000, multiple_of=1)] | None = None


class BatchStatus(Struct):
    """How far a batch is: its members by state."""

    batch_id: UUID
    opened_at: Moment
    sealed_at: Moment | None
    ended_at: Moment | None
    members: int
    blocked: int
    queued: int
    running: int
    retrying: int
    succeeded: int
    dead: int
    cancelled: int
    on_success: UUID | None
    on_end: UUID | None
    on_first_death: UUID | None


class CancelledBatch(Struct):
    """How many members were cancelled, were asked to stop, and wait yet: then ask again."""

    cancelled: int
    requested: int
    remaining: int


class Input(Struct):
    """What a job has come to that another one waited for."""

    job_id: UUID
    name: Annotated[str | None, Meta(description="Its name in the graph; of a hidden one null.")]
    kind: Annotated[str | None, Meta(description="Null when there is no trace of it.")]
    state: Annotated[
        State | Literal["gone", "hidden"],
        Meta(
            description="gone when there is no trace of it; hidden where grants by queue do not let"
            " this server see whether it is gone."
        ),
    ]
    result: AnyJson
    after_failure: AfterFailure


class Inputs(Struct):
    """What a job waited for."""

    items: list[Input]


async def open_batch(call: Call) -> Response:
    """Make a batch."""
    body = await call.body(NewBatch)
    jobs = {
        name: enqueued(job)
        for name in ("on_success", "on_end", "on_first_death")
        if (job := getattr(body, name)) is not None
    }
    await call.check(inputs_of(jobs.values()))
    given = {name: text(job) for name, job in jobs.items()}
    [(batch_id,)] = await call.fetch("open_batch", **given)
    return await _status(call, batch_id, 201)


async def show_batch(call: Call) -> Response:
    """Show how far a batch is."""
    return await _status(call, call.batch_id())


async def seal_batch(call: Call) -> Response:
    """Say that a batch has all its members."""
    batch_id = call.batch_id()
    await call.fetch("seal_batch", batch_id=batch_id)
    return await _status(call, batch_id)


async def cancel_batch(call: Call) -> Response:
    """Cancel the members of a batch."""
    batch_id = call.batch_id()
    body = await call.body(BatchCancellation)
    given = {} if body.max_jobs is None else {"max_jobs": body.max_jobs}
    [row] = await call.fetch_named("cancel_batch", batch_id=batch_id, reason=body.reason, **given)
    return encoded(row)


async def list_inputs(call: Call) -> Response:
    """Return what the jobs have come to that a job waited for."""
    rows = await call.fetch("list_inputs", job_id=call.job_id())
    items = [
        {
            "job_id": job_id,
            "name": name,
            "kind": kind,
            "state": state,
            "result": Raw(result or b"null"),
            "after_failure": after_failure,
        }
        for job_id, name, kind, state, result, after_failure in rows
    ]
    return encoded({"items": items})


async def _status(call: Call, batch_id: UUID, status: int = 200) -> Response:
    [row] = await call.fetch_named("batch_status", batch_id=batch_id)
    return encoded({"batch_id": batch_id, **row}, status)


MISSING = {404: ["BATCH_NOT_FOUND"]}

OPERATIONS = (
    Operation(
        "POST",
        "/batches",
        open_batch,
        "Make a batch, with the jobs that run when it ends",
        ("produce",),
        {
            201: Answer(
                "The batch is open: create jobs with its batch_id, then seal it.", BatchStatus
            )
        },
        {
            404: ["BATCH_NOT_FOUND", "JOB_NOT_FOUND"],
            409: ["BATCH_ENDED"],
            413: ["MESSAGE_TOO_LARGE"],
            422: ["INPUT_VALIDATION_FAILED", "INVALID_MESSAGE"],
            429: ["QUEUE_FULL"],
        },
        tag="workflows",
        body=NewBatch,
        examples={
            "a report": {"on_success": {"kind": "report"}, "on_first_death": {"kind": "alert"}}
        },
    ),
    Operation(
        "GET",
        "/batches/{batch_id}",
        show_batch,
        "Show how far a batch is",
        ("produce", "read", "work", "operate"),
        {200: Answer("Its members by state.", BatchStatus)},
        MISSING,
        tag="workflows",
    ),
    Operation(
        "POST",
        "/batches/{batch_id}/seal",
        seal_batch,
        "Say that a batch has all its members",
        ("produce", "work", "operate"),
        {200: Answer("It ends once no member is live.", BatchStatus)},
        MISSING,
        tag="workflows",
    ),
    Operation(
        "POST",
        "/batches/{batch_id}/cancel",
        cancel_batch,
        "Cancel the members of a batch, and seal it",
        ("produce", "operate"),
        {200: Answer("What was done; while some remain, ask again.", CancelledBatch)},
        MISSING,
        tag="workflows",
        body=BatchCancellation,
        examples={"a wrong list": {"reason": "wrong list"}},
    ),
    Operation(
        "GET",
        "/jobs/{job_id}/inputs",
        list_inputs,
        "List what the jobs have come to that a job waits for, or waited for",
        ("produce", "read", "work", "operate"),
        {200: Answer("In the order of their ids.", Inputs)},
        {404: ["JOB_NOT_FOUND"]},
        tag="workflows",
    ),
)
