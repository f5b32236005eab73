"""What operators do to jobs: run them again, and ask why they do not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from jobq.http import examples
from jobq.http.errors import ApiError
from jobq.http.operation import Answer, Operation, encoded
from jobq.http.steering import JobIds  # noqa: TC001 - msgspec reads it
from jobq.http.values import Moment, Name, Request

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call


Latest = Annotated[bool, Meta(description="Deliver by the endpoint as it is now, not as it was.")]


class RedriveOne(Request, kw_only=True):
    """How to run a job again."""

    latest: Latest = False


class Redrive(Request, kw_only=True):
    """Which dead jobs to run again: those that fit everything given, or expressly all."""

    all: Annotated[bool, Meta(description="Needed where nothing else chooses jobs.")] = False
    job_ids: JobIds | None = None
    queue: Name | None = None
    kind: Name | None = None
    endpoint: Annotated[Name | None, Meta(description="The same as kind.")] = None
    since: Moment | None = None
    error_code: Annotated[str, Meta(max_length=128)] | None = None
    max_jobs: Annotated[float, Meta(ge=1, le=10_000, multiple_of=1)] = 1000
    latest: Latest = False
    dry_run: Annotated[bool, Meta(description="Only say which jobs.")] = False


class Reason(Struct):
    """A reason why a job is not running."""

    reason: str
    explanation: str


class Explanation(Struct):
    """Why a job is not running."""

    reasons: list[Reason]


class Redriven(Struct):
    """A job that will run again, and its new state."""

    job_id: UUID
    state: Literal["queued", "blocked"]


class RedrivenMany(Struct):
    """The jobs that will run again."""

    job_ids: list[UUID]


async def redrive_job(call: Call) -> Response:
    """Put a dead or cancelled job back in its queue."""
    job_id = call.job_id()
    latest = (await call.body(RedriveOne)).latest
    [(state,)] = await call.fetch("redrive", job_id=job_id, latest=latest)
    return encoded({"job_id": job_id, "state": state})


def same(kind: str | None, endpoint: str | None) -> str | None:
    """Return what is one filter under two names.

    Raises:
        ApiError: they differ.
    """
    if kind and endpoint and kind != endpoint:
        raise ApiError("INVALID_REQUEST", "kind and endpoint are the same filter")
    return kind or endpoint


async def redrive_jobs(call: Call) -> Response:
    """Put dead jobs back in their queues.

    Ask for `job_ids`, a `queue`, `kind` or `endpoint`, `since` or `error_code`, or for `all` of
    them. Of `job_ids` those go back that are dead.
    """
    wanted = await call.body(Redrive)
    kind = same(wanted.kind, wanted.endpoint)
    filters = (wanted.job_ids, wanted.queue, kind, wanted.since, wanted.error_code)
    if not wanted.all and all(value is None for value in filters):
        raise ApiError(
            "INVALID_REQUEST",
            "give job_ids, queue, kind, endpoint, since or error_code, or all: true",
        )
    since = {"since": wanted.since} if wanted.since else {}
    rows = await call.fetch(
        "redrive_many",
        job_ids=wanted.job_ids,
        queue=wanted.queue,
        kind=kind,
        error_code=wanted.error_code,
        max_jobs=wanted.max_jobs,
        dry_run=wanted.dry_run,
        latest=wanted.latest,
        **since,
    )
    return encoded({"job_ids": [job_id for (job_id,) in rows]})


async def explain_job(call: Call) -> Response:
    """Say why a job is not running."""
    reasons = await call.fetch_named("explain", job_id=call.job_id())
    return encoded({"reasons": reasons})


OPERATIONS = (
    Operation(
        "GET",
        "/jobs/{job_id}/explain",
        explain_job,
        "Why a job is not running",
        ("read", "produce", "operate"),
        {
            200: Answer(
                "Every reason that holds, the first one first.",
                Explanation,
                example=examples.EXPLANATION,
            )
        },
        {404: ["JOB_NOT_FOUND", "JOB_IS_RECURRING"]},
        tag="operators",
    ),
    Operation(
        "POST",
        "/jobs/{job_id}/redrive",
        redrive_job,
        "Run a dead or cancelled job again",
        ("operate",),
        {200: Answer("It is back in its queue; blocked where it has to wait again.", Redriven)},
        {
            404: ["JOB_NOT_FOUND", "JOB_IS_RECURRING"],
            409: ["ILLEGAL_STATE", "DEDUP_CONFLICT", "IDEMPOTENCY_CONFLICT"],
        },
        tag="operators",
        body=RedriveOne,
        examples={"by the endpoint as it is now": {"latest": True}},
    ),
    Operation(
        "POST",
        "/jobs:redrive",
        redrive_jobs,
        "Run many dead jobs again",
        ("operate",),
        {200: Answer("The jobs that are back in their queues.", RedrivenMany)},
        tag="operators",
        body=Redrive,
        examples={"a queue, since noon": examples.REDRIVE},
    ),
)
