"""New jobs: one, or many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from jobq.http import examples, metrics
from jobq.http.errors import ApiError
from jobq.http.jobs import Job
from jobq.http.operation import Answer, Operation, encoded, json, text
from jobq.http.schedules import NewRecurringJob, Recurrence
from jobq.http.values import (
    Attempts,
    Dedup,
    Json,
    JsonMembers,
    KeyText,
    Milliseconds,
    Moment,
    Name,
    Priority,
    Request,
)

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.responses import Response

    from jobq.http.operation import Call


class Options(Request, kw_only=True, omit_defaults=True):
    """What every way to create a job can say."""

    idempotency_key: KeyText | None = None
    run_at: Moment | None = None


class NewJob(Options, kw_only=True, omit_defaults=True):
    """A job of a kind."""

    kind: Name
    payload: Json | UnsetType = UNSET
    queue: Name | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    timeout_ms: Milliseconds | None = None
    dedup_key: KeyText | None = None
    dedup: Dedup | None = None
    metadata: JsonMembers | None = None

    def enqueued(self) -> dict[str, Any]:
        """Return the object that the database takes."""
        given = msgspec.structs.asdict(self)
        milliseconds = given.pop("timeout_ms")
        given["timeout"] = milliseconds and f"{milliseconds} ms"
        if self.run_at:
            given["run_at"] = self.run_at
        return {k: v for k, v in given.items() if v is not None and v is not UNSET}


class Invocation(Options, kw_only=True, omit_defaults=True):
    """A job of an endpoint, fired now or later."""

    endpoint: Name
    trigger: Literal["IMMEDIATE", "DELAYED"]
    input: Json | UnsetType = UNSET

    def enqueued(self) -> dict[str, Any]:
        """Return the object that the database takes.

        Raises:
            ApiError: the trigger and the rest do not fit together.
        """
        if self.idempotency_key is None:
            raise ApiError("INVALID_REQUEST", f"{self.trigger} needs idempotency_key")
        if (self.trigger == "DELAYED") != (self.run_at is not None):
            raise ApiError("INVALID_REQUEST", "run_at: DELAYED needs it, IMMEDIATE not")
        given: dict[str, Any] = {
            "kind": self.endpoint,
            "idempotency_key": self.idempotency_key,
        }
        if self.input is not UNSET:
            given["payload"] = self.input
        if self.run_at:
            given["run_at"] = self.run_at
            given["metadata"] = {"trigger": "DELAYED"}
        return given


class Batch(Request):
    """Many jobs, all or none."""

    jobs: Annotated[list[NewJob], Meta(min_length=1, max_length=10_000)]


class Vocabulary(Struct):
    """Just what tells which way to create a job a request has taken."""

    endpoint: Raw | UnsetType = UNSET
    trigger: Raw | UnsetType = UNSET

    @property
    def model(self) -> type[NewJob | Invocation | Recurrence]:
        """What the request must be."""
        if self.endpoint is UNSET:
            return NewJob
        is_cron = self.trigger is not UNSET and bytes(self.trigger) == b'"CRON"'
        return Recurrence if is_cron else Invocation


class NewJobAnswer(Job):
    """A job, and whether this request has created it."""

    created: bool


class Reference(Struct):
    """A job of a batch."""

    job_id: UUID
    created: bool


class BatchAnswer(Struct):
    """The jobs of a batch, in its order."""

    items: list[Reference]


async def create_job(call: Call) -> Response:
    """Create a job, or return the one that its key has made: 201, then 200."""
    body = await call.body(Raw)
    model = msgspec.json.decode(body, type=Vocabulary).model
    job = msgspec.json.decode(body, type=model)
    if isinstance(job, Recurrence):
        job.name = one_key(call.request.headers, job.name or None) or UNSET
        await call.check([(job.endpoint, None if job.input is UNSET else job.input)])
        rows = await call.fetch("jobq_http.submit_schedule", given=text(job.declared()))
    else:
        job.idempotency_key = one_key(call.request.headers, job.idempotency_key)
        arguments = job.enqueued()
        await call.check([(arguments["kind"], arguments.get("payload"))])
        for name in arguments.keys() & {"payload", "metadata"}:
            arguments[name] = text(arguments[name])
        rows = await call.fetch("jobq_http.submit_job", **arguments)
    [(created, item)] = rows
    if not created:
        metrics.CONFLICTS.inc()
    said = b',"created":true}' if created else b',"created":false}'
    return json(item[:-1] + said, 201 if created else 200)


def one_key(headers: Headers, given: str | None) -> str | None:
    """Return the key of the Idempotency-Key header, or else the body's.

    Raises:
        ApiError: there are two, and they differ.
        UnicodeDecodeError: it is not UTF-8.
    """
    header = headers.get("idempotency-key")
    if header is None:
        return given
    key = header.encode("latin-1").decode()
    if given not in (None, key):
        raise ApiError("INVALID_REQUEST", "idempotency_key: not that of the Idempotency-Key header")
    return key


async def create_jobs(call: Call) -> Response:
    """Create many jobs, all or none."""
    batch = await call.body(Batch, envelope=3)
    jobs = [job.enqueued() for job in batch.jobs]
    await call.check([(job["kind"], job.get("payload")) for job in jobs])
    rows = await call.fetch("enqueue_many", jobs=text(jobs))
    items = [{"job_id": job_id, "created": created} for _, job_id, created in rows]
    created = any(item["created"] for item in items)
    return encoded({"items": items}, 201 if created else 200)


OPERATIONS = (
    Operation(
        "POST",
        "/jobs",
        create_job,
        "Create a job",
        ("produce",),
        {
            201: Answer(
                "The job is created.",
                NewJobAnswer | NewRecurringJob,
                example=examples.NEW_JOB,
            ),
            200: Answer(
                "The idempotency key or dedup key has a job already: this one.",
                NewJobAnswer | NewRecurringJob,
                example=examples.SAME_JOB,
            ),
        },
        {
            409: ["DEDUP_CONFLICT"],
            413: ["MESSAGE_TOO_LARGE"],
            422: [
                "INPUT_VALIDATION_FAILED",
                "INVALID_MESSAGE",
                "INVALID_CRON",
                "CRON_NEVER_FIRES",
                "INVALID_TIME_ZONE",
            ],
            429: ["QUEUE_FULL"],
        },
        body=NewJob | Invocation | Recurrence,
        headers={"Idempotency-Key": KeyText},
        examples=examples.NEW_JOBS,
    ),
    Operation(
        "POST",
        "/jobs:batch",
        create_jobs,
        "Create many jobs, all or none",
        ("produce",),
        {
            201: Answer(
                "At least one job is created.",
                BatchAnswer,
                example=examples.BATCH_ANSWER,
            ),
            200: Answer(
                "Every key has a job already.",
                BatchAnswer,
            ),
        },
        {
            409: ["DEDUP_CONFLICT"],
            413: ["MESSAGE_TOO_LARGE"],
            422: ["INPUT_VALIDATION_FAILED", "INVALID_MESSAGE"],
            429: ["QUEUE_FULL"],
        },
        body=Batch,
        examples={"two jobs": examples.BATCH},
    ),
)
