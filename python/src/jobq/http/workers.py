"""Workers over HTTP, for languages without a PostgreSQL driver."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from jobq.http import examples
from jobq.http.errors import ApiError
from jobq.http.operation import Answer, Operation, encoded, text
from jobq.http.values import (
    AnyJson,
    Json,
    JsonMembers,
    JsonObject,
    Level,
    Moment,
    Name,
    Reason,
    Request,
    State,
)

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call

QueueNames = Annotated[list[Name], Meta(min_length=1, max_length=100)]
UnknownKinds = Annotated[
    list[Name],
    Meta(max_length=1000, description="Kinds that the worker has no handler for."),
]
AttemptNumber = Annotated[float, Meta(ge=1, le=2**31 - 1, multiple_of=1)]

FIRST_LOOK: Final = 0.05
LOOK: Final = 0.25


class Claim(Request, kw_only=True):
    """What a worker would do."""

    queues: QueueNames = msgspec.field(default_factory=lambda: ["default"])
    max_jobs: Annotated[float, Meta(ge=1, le=1000, multiple_of=1)] = 1
    except_kinds: UnknownKinds | None = None
    wait_ms: Annotated[
        float,
        Meta(
            ge=0,
            le=25_000,
            description="How long to wait for a job.",
            multiple_of=1,
        ),
    ] = 0


class Held(Request):
    """A job that a worker holds."""

    job_id: UUID
    attempt: AttemptNumber


class Heartbeat(Request, kw_only=True):
    """That a worker lives, and what it holds."""

    queues: QueueNames | None = None
    jobs: Annotated[list[Held], Meta(max_length=10_000)] = msgspec.field(default_factory=list)
    except_kinds: UnknownKinds | None = None
    release: (
        Annotated[str, Meta(min_length=1, max_length=200, description="Of what the worker runs.")]
        | None
    ) = None
    stuck: (
        Annotated[int, Meta(ge=0, le=1_000_000, description="Slots held by handlers that hang.")]
        | None
    ) = None


class Completion(Request):
    """What came of a job."""

    result: Json | UnsetType = UNSET


class Failure(Request, kw_only=True):
    """Why an attempt failed; the text is cut at 512 characters.

    The members of ``details`` are shown with the attempt's error.
    """

    error: str
    error_code: Annotated[str, Meta(min_length=1, max_length=128)] = "ERROR"
    retryable: bool = True
    retry_in_ms: Annotated[float, Meta(ge=0, le=31_536_000_000, multiple_of=1)] | None = None
    details: (
        Annotated[JsonMembers, Meta(description="What else programs may want to know.")] | None
    ) = None


class Release(Request):
    """When a job that is given back may run again; at once without it."""

    run_at: Moment | None = None


class LaneHold(Request, kw_only=True):
    """For how long the jobs of a key wait, and why."""

    retry_in_ms: Annotated[float, Meta(ge=0, le=31_536_000_000, multiple_of=1)]
    reason: Reason | None = None


class Progress(Request):
    """How far a handler is."""

    progress: Json


class Line(Request):
    """A line for a job's log."""

    message: str
    level: Level = "INFO"


class ClaimedJob(Struct):
    """A job as its worker receives it."""

    job_id: UUID
    attempt: Annotated[int, Meta(description="The fencing token of later calls.")]
    kind: str
    payload: AnyJson
    metadata: JsonObject
    queue: str
    max_attempts: int
    timeout_ms: int
    lease_ms: Annotated[int, Meta(description="Send a heartbeat well within this.")]
    lease_expires_at: Moment
    run_at: Moment
    created_at: Moment
    idempotency_key: str | None


class Claimed(Struct):
    """The jobs that a worker may now do."""

    jobs: list[ClaimedJob]


class Beat(Struct):
    """What has become of a job that a worker holds."""

    job_id: UUID
    attempt: int
    outcome: Literal["extended", "cancel_requested", "lost"]


class Beats(Struct):
    """What has become of the jobs that a worker holds."""

    jobs: list[Beat]


class Settled(Struct):
    """A job after its attempt."""

    job_id: UUID
    attempt: int
    state: State


class Logged(Struct):
    """The attempt that a line was logged for."""

    job_id: UUID
    attempt: int


async def claim_jobs(call: Call) -> Response:
    """Lease jobs to a worker, and wait for one if need be."""
    wanted = await call.body(Claim)
    server = call.request.app.state
    until = time.monotonic() + min(wanted.wait_ms / 1000, server.longest_wait)
    pause = FIRST_LOOK
    while True:
        rows = await call.fetch_named(
            "claim",
            queues=wanted.queues,
            worker=call.text("worker"),
            max_jobs=wanted.max_jobs,
            except_kinds=wanted.except_kinds,
        )
        left = until - time.monotonic()
        if rows or left <= 0 or server.is_stopping:
            break
        if await call.request.is_disconnected():
            break
        await asyncio.sleep(min(left, pause * random.uniform(0.8, 1.2)))  # noqa: S311
        pause = min(LOOK, 2 * pause)
    return encoded({"jobs": [claimed(row) for row in rows]})


def claimed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a claimed job as its worker receives it."""
    names = ClaimedJob.__struct_fields__
    job = {name: row[name] for name in names if name in row}
    for name in ("payload", "metadata"):
        job[name] = Raw(job[name])
    for name in ("timeout", "lease"):
        job[f"{name}_ms"] = row[name] // timedelta(milliseconds=1)
    return job


async def heartbeat(call: Call) -> Response:
    """Extend leases; tell which are lost and which jobs are to be cancelled."""
    beat = await call.body(Heartbeat)
    jobs = await call.fetch_named(
        "heartbeat",
        worker=call.text("worker"),
        job_ids=[job.job_id for job in beat.jobs],
        attempts=[job.attempt for job in beat.jobs],
        queues=beat.queues,
        except_kinds=beat.except_kinds,
        release=beat.release,
        stuck=beat.stuck,
    )
    return encoded({"jobs": jobs})


def attempt_of(call: Call) -> dict[str, Any]:
    """Return the attempt that the path names.

    Raises:
        ApiError: there can be no such job, or the number is not one.
    """
    number = call.text("attempt")
    if not (number.isascii() and number.isdigit() and 1 <= int(number) < 2**31):
        raise ApiError("INVALID_REQUEST", "attempt: a number from 1")
    return {"job_id": call.job_id(), "attempt": int(number)}


async def complete_job(call: Call) -> Response:
    """Finish an attempt as succeeded."""
    attempt = attempt_of(call)
    body = await call.body(Completion)
    result = None if body.result is UNSET else text(body.result)
    await call.fetch("complete", **attempt, result=result)
    return encoded({**attempt, "state": "succeeded"})


async def fail_job(call: Call) -> Response:
    """End an attempt as failed."""
    attempt = attempt_of(call)
    body = await call.body(Failure)
    wait = body.retry_in_ms
    [(state,)] = await call.fetch(
        "fail",
        **attempt,
        error=body.error,
        error_code=body.error_code,
        retryable=body.retryable,
        retry_in=None if wait is None else timedelta(milliseconds=wait),
        details=None if body.details is None else text(body.details),
    )
    return encoded({**attempt, "state": state})


async def release_job(call: Call) -> Response:
    """Give a job back unfinished, the attempt not counted."""
    attempt = attempt_of(call)
    run_at = (await call.body(Release)).run_at
    [(state,)] = await call.fetch("release", **attempt, run_at=run_at)
    return encoded({**attempt, "state": state})


async def hold_job(call: Call) -> Response:
    """Give a job back, and have the jobs of its concurrency key wait."""
    attempt = attempt_of(call)
    given = await call.body(LaneHold)
    [(state,)] = await call.fetch(
        "rate_limited",
        **attempt,
        retry_in=timedelta(milliseconds=given.retry_in_ms),
        reason=given.reason,
    )
    return encoded({**attempt, "state": state})


async def confirm_cancel(call: Call) -> Response:
    """End an attempt as cancelled, where that was asked for."""
    attempt = attempt_of(call)
    await call.fetch("confirm_cancel", **attempt)
    return encoded({**attempt, "state": "cancelled"})


async def set_progress(call: Call) -> Response:
    """Store how far an attempt is."""
    attempt = attempt_of(call)
    progress = text((await call.body(Progress)).progress)
    await call.fetch("set_progress", **attempt, progress=progress)
    return encoded({**attempt, "state": "running"})


async def add_line(call: Call) -> Response:
    """Add a line to a job's log."""
    attempt = attempt_of(call)
    line = await call.body(Line)
    await call.fetch("log", **attempt, level=line.level, message=line.message)
    return encoded(attempt, 201)


ATTEMPT = "/jobs/{job_id}/attempts/{attempt}"
WORK = ("work",)
LOST = {404: ["JOB_NOT_FOUND"], 409: ["LEASE_LOST"]}

OPERATIONS = (
    Operation(
        "POST",
        "/workers/{worker}/claim",
        claim_jobs,
        "Claim jobs, and wait for one if need be",
        WORK,
        {200: Answer("The jobs, or none.", Claimed, example=examples.CLAIMED)},
        tag="workers",
        body=Claim,
        examples={"ten, within 20 s": examples.CLAIM},
        is_long=True,
    ),
    Operation(
        "POST",
        "/workers/{worker}/heartbeat",
        heartbeat,
        "Extend leases; tell which are lost and which jobs are to be cancelled",
        WORK,
        {200: Answer("What has become of each job.", Beats, example=examples.BEATS)},
        tag="workers",
        body=Heartbeat,
        examples={"one job": examples.BEAT},
    ),
    Operation(
        "POST",
        f"{ATTEMPT}/complete",
        complete_job,
        "Finish an attempt as succeeded; repeating it changes nothing",
        WORK,
        {200: Answer("The job has succeeded.", Settled)},
        {**LOST, 413: ["MESSAGE_TOO_LARGE"], 422: ["INVALID_MESSAGE"]},
        tag="workers",
        body=Completion,
        examples={"a result": {"result": {"message_id": "<a1@example.org>"}}},
    ),
    Operation(
        "POST",
        f"{ATTEMPT}/fail",
        fail_job,
        "End an attempt as failed: the job retries, or is dead",
        WORK,
        {200: Answer("The new state.", Settled)},
        LOST,
        tag="workers",
        body=Failure,
        examples={"try in a minute": examples.FAILURE},
    ),
    Operation(
        "POST",
        f"{ATTEMPT}/release",
        release_job,
        "Give a job back unfinished, the attempt not counted",
        WORK,
        {200: Answer("The new state.", Settled)},
        LOST,
        tag="workers",
        body=Release,
        examples={"not before noon": {"run_at": "2026-03-15T12:00:00Z"}},
    ),
    Operation(
        "POST",
        f"{ATTEMPT}/rate-limited",
        hold_job,
        "Give a job back since whom it calls asked to wait; all jobs of its key wait with it",
        WORK,
        {200: Answer("The new state.", Settled)},
        LOST,
        tag="workers",
        body=LaneHold,
        examples={"half a minute": {"retry_in_ms": 30000, "reason": "status 429"}},
    ),
    Operation(
        "POST",
        f"{ATTEMPT}/cancel",
        confirm_cancel,
        "End an attempt as cancelled, where that was asked for",
        WORK,
        {200: Answer("The job is cancelled.", Settled)},
        {404: LOST[404], 409: ["LEASE_LOST", "ILLEGAL_STATE"]},
        tag="workers",
    ),
    Operation(
        "POST",
        f"{ATTEMPT}/progress",
        set_progress,
        "Store how far an attempt is",
        WORK,
        {200: Answer("It is stored.", Settled)},
        {**LOST, 413: ["MESSAGE_TOO_LARGE"], 422: ["INVALID_MESSAGE"]},
        tag="workers",
        body=Progress,
        examples={"a third": {"progress": {"percent": 33}}},
    ),
    Operation(
        "POST",
        f"{ATTEMPT}/logs",
        add_line,
        "Add a line to a job's log",
        WORK,
        {201: Answer("It is added.", Logged)},
        {404: ["JOB_NOT_FOUND"]},
        tag="workers",
        body=Line,
        examples={"a line": {"message": "connecting", "level": "INFO"}},
    ),
)
