"""New jobs: one, or many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from jobq.http import examples, metrics
from jobq.http.enqueued import enqueued, given_of, inputs_of
from jobq.http.errors import ApiError
from jobq.http.jobs import Job
from jobq.http.operation import Answer, Operation, encoded, json, text
from jobq.http.schedules import NewRecurringJob, Recurrence, RecurrenceOfKind, graph_inputs
from jobq.http.values import (
    AfterFailure,
    Attempts,
    ConcurrencyKey,
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
    expires_at: Moment | None = None
    queue: Name | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    timeout_ms: Milliseconds | None = None
    metadata: JsonMembers | None = None
    after: Annotated[list[UUID], Meta(max_length=10_000)] | None = None
    after_failure: AfterFailure | None = None
    batch_id: UUID | None = None

    def enqueued(self) -> dict[str, Any]:
        """Return the object that the database takes."""
        return enqueued(self)


class NewJob(Options, kw_only=True, omit_defaults=True):
    """A job of a kind."""

    kind: Name
    payload: Json | UnsetType = UNSET
    dedup_key: KeyText | None = None
    dedup: Dedup | None = None
    concurrency_key: ConcurrencyKey | None = None


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
        said = bytes((self.metadata or {}).get("trigger", b""))
        if self.trigger == "IMMEDIATE" and said == b'"DELAYED"':
            raise ApiError("INVALID_REQUEST", "metadata: trigger says DELAYED, the job IMMEDIATE")
        given = super().enqueued()
        given["kind"] = given.pop("endpoint")
        if "input" in given:
            given["payload"] = given.pop("input")
        if given.pop("trigger") == "DELAYED":
            given["metadata"] = {**(self.metadata or {}), "trigger": "DELAYED"}
        return given


class BatchJob(Options, kw_only=True, omit_defaults=True):
    """A job of a kind, or of an endpoint, as POST /jobs takes it."""

    kind: Name | UnsetType = UNSET
    payload: Json | UnsetType = UNSET
    dedup_key: KeyText | None = None
    dedup: Dedup | None = None
    concurrency_key: ConcurrencyKey | None = None
    endpoint: Name | UnsetType = UNSET
    trigger: Literal["IMMEDIATE", "DELAYED"] | UnsetType = UNSET
    input: Json | UnsetType = UNSET

    def job(self) -> NewJob | Invocation:
        """Return the one or the other.

        Raises:
            ApiError: it has members of both, or too few.
        """
        given = given_of(self)
        model: type[NewJob | Invocation] = Invocation if "endpoint" in given else NewJob
        needed = {"endpoint", "trigger"} if model is Invocation else {"kind"}
        for name in sorted(needed - given.keys()):
            raise ApiError("INVALID_REQUEST", f"jobs: {name} is missing")
        for name in sorted(given.keys() - set(model.__struct_fields__)):
            raise ApiError("INVALID_REQUEST", f"jobs: {name} does not go with {min(needed)}")
        return model(**given)


class Batch(Request):
    """Many jobs, all or none."""

    jobs: Annotated[list[BatchJob], Meta(min_length=1, max_length=10_000)]


class Vocabulary(Struct):
    """Just what tells which way to create a job a request has taken."""

    endpoint: Raw | UnsetType = UNSET
    trigger: Raw | UnsetType = UNSET

    @property
    def model(self) -> type[NewJob | Invocation | Recurrence | RecurrenceOfKind]:
        """What the request must be."""
        is_cron = self.trigger is not UNSET and bytes(self.trigger) == b'"CRON"'
        if self.endpoint is UNSET:
            return RecurrenceOfKind if is_cron else NewJob
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
    body = await call.body(Raw, envelope=4)
    model = msgspec.json.decode(body, type=Vocabulary).model
    job = msgspec.json.decode(body, type=model)
    is_endpoint = isinstance(job, Invocation | Recurrence)
    if isinstance(job, Recurrence | RecurrenceOfKind):
        call.audit()
        declared = job.declared()
        key = one_key(call.request.headers, job.idempotency_key)
        if key is not None and job.name:
            raise ApiError("INVALID_REQUEST", "name, idempotency_key: one of them")
        await call.check([*inputs_of([declared]), *graph_inputs(declared)])
        rows = await call.fetch(
            "jobq_http.submit_schedule",
            given=text(declared),
            idempotency_key=key,
            is_endpoint=is_endpoint,
        )
    else:
        job.idempotency_key = one_key(call.request.headers, job.idempotency_key)
        arguments = job.enqueued()
        await call.check(inputs_of([arguments]))
        for name in arguments.keys() & {"payload", "metadata"}:
            arguments[name] = text(arguments[name])
        rows = await call.fetch("jobq_http.submit_job", is_endpoint=is_endpoint, **arguments)
    [(created, item)] = rows
    if not created:
        metrics.CONFLICTS.inc()
    said = b',"created":true}' if created else b',"created":false}'
    return json(item[:-1] + said, 201 if created else 200)


def one_key(headers: Headers, given: str | None) -> str | None:
    """Return the key of the Idempotency-Key header, or else the body's.

    Raises:
        ApiError: there are several, and they differ.
        UnicodeDecodeError: it is not UTF-8.
        ValidationError: it is none, as the specification has it.
    """
    keys = {header.encode("latin-1").decode() for header in headers.getlist("idempotency-key")}
    if not keys:
        return given
    key = keys.pop()
    if keys or given not in (None, key):
        raise ApiError("INVALID_REQUEST", "idempotency_key: there are two that differ")
    return msgspec.convert(key, KeyText)


async def create_jobs(call: Call) -> Response:
    """Create many jobs, all or none."""
    if "idempotency-key" in call.request.headers:
        raise ApiError("INVALID_REQUEST", "Idempotency-Key: each job of a batch has its own")
    batch = await call.body(Batch, envelope=3)
    given = [job.job() for job in batch.jobs]
    jobs = [job.enqueued() for job in given]
    await call.check(inputs_of(jobs))
    endpoints = sorted({job.endpoint for job in given if isinstance(job, Invocation)})
    rows = await call.fetch("jobq_http.submit_jobs", jobs=text(jobs), endpoints=endpoints)
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
            400: ["GRAPH_CYCLE"],
            404: ["ENDPOINT_NOT_FOUND", "JOB_NOT_FOUND", "BATCH_NOT_FOUND"],
            409: ["DEDUP_CONFLICT", "DEFINITION_EXISTS", "BATCH_ENDED"],
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
        body=NewJob | Invocation | Recurrence | RecurrenceOfKind,
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
            404: ["ENDPOINT_NOT_FOUND", "JOB_NOT_FOUND", "BATCH_NOT_FOUND"],
            409: ["DEDUP_CONFLICT", "BATCH_ENDED"],
            413: ["MESSAGE_TOO_LARGE"],
            422: ["INPUT_VALIDATION_FAILED", "INVALID_MESSAGE"],
            429: ["QUEUE_FULL"],
        },
        body=Batch,
        examples={"two jobs": examples.BATCH},
    ),
)
