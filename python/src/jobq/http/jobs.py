"""Jobs: create, look up, list, cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from jobq.http import documents, examples, metrics
from jobq.http.documents import Moment
from jobq.http.errors import ApiError
from jobq.http.operation import Answer, Operation, encoded, json, text
from jobq.http.page import Paging, page
from jobq.http.schedules import Recurrence
from jobq.http.values import (
    Attempts,
    Dedup,
    Json,
    JsonMembers,
    KeyText,
    Milliseconds,
    Name,
    Priority,
    Reason,
)

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.responses import Response

    from jobq.http.operation import Call


class Options(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
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


class Batch(Struct, forbid_unknown_fields=True):
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


ANY_STATE = "|".join(get_args(documents.State))
STATES = Meta(
    description="One state or more, with commas between them.",
    pattern=f"^({ANY_STATE})(,({ANY_STATE}))*$",
)


class JobFilter(Paging, forbid_unknown_fields=True, kw_only=True):
    """Which jobs to list."""

    trigger: Annotated[
        Literal["CRON"] | None, Meta(description="Recurring jobs, in place of what they fire.")
    ] = None
    status: Annotated[documents.RecurringStatus | None, Meta(description="With trigger=CRON.")] = (
        None
    )
    state: Annotated[str, STATES] | None = None
    kind: Name | None = None
    endpoint: Annotated[Name | None, Meta(description="The same as kind.")] = None
    queue: Name | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None
    metadata: Annotated[
        str | None, Meta(description="A JSON object that the job's metadata contains.")
    ] = None


class Cancel(Struct, forbid_unknown_fields=True):
    """Why a job is cancelled."""

    reason: Reason | None = None


async def create_job(call: Call) -> Response:
    """Create a job, or return the one that its key has made: 201, then 200."""
    body = await call.body(Raw)
    model = msgspec.json.decode(body, type=Vocabulary).model
    job = msgspec.json.decode(body, type=model)
    if isinstance(job, Recurrence):
        job.name = one_key(call.request.headers, job.name or None) or UNSET
        await call.check([(job.endpoint, None if job.input is UNSET else job.input)])
        rows = await call.fetch("submit_schedule", given=text(job.declared()))
    else:
        job.idempotency_key = one_key(call.request.headers, job.idempotency_key)
        arguments = job.enqueued()
        await call.check([(arguments["kind"], arguments.get("payload"))])
        for name in arguments.keys() & {"payload", "metadata"}:
            arguments[name] = text(arguments[name])
        rows = await call.fetch("submit_job", **arguments)
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


async def get_job(call: Call) -> Response:
    """Return a job, live or archived."""
    [(item,)] = await call.fetch("show_job", job_id=call.job_id())
    return json(item)


async def list_jobs(call: Call) -> Response:
    """Return a page of jobs: one-shot ones and firings, or recurring ones."""
    wanted = call.query(JobFilter)
    if wanted.trigger == "CRON":
        return await list_recurring(call, wanted)
    if wanted.status:
        raise ApiError("INVALID_REQUEST", "status: of recurring jobs, with trigger=CRON")
    if wanted.kind and wanted.endpoint and wanted.kind != wanted.endpoint:
        raise ApiError("INVALID_REQUEST", "kind and endpoint are the same filter")
    return page(
        await call.fetch(
            "page_jobs",
            states=wanted.state.split(",") if wanted.state else None,
            kind=wanted.kind or wanted.endpoint,
            queue=wanted.queue,
            created_after=wanted.created_after,
            created_before=wanted.created_before,
            metadata=wanted.metadata and metadata_of(wanted.metadata),
            before=wanted.position(UUID),
            max_jobs=wanted.limit,
        )
    )


async def list_recurring(call: Call, wanted: JobFilter) -> Response:
    """Return a page of recurring jobs.

    Raises:
        ApiError: a filter is given that they do not have.
    """
    others = ("state", "created_after", "created_before", "metadata")
    for name in others:
        if getattr(wanted, name) is not None:
            raise ApiError("INVALID_REQUEST", f"{name}: not with trigger=CRON")
    return page(
        await call.fetch(
            "page_schedules",
            status=wanted.status and wanted.status.lower(),
            kind=wanted.kind or wanted.endpoint,
            queue=wanted.queue,
            before=wanted.position(UUID),
            max_schedules=wanted.limit,
        )
    )


def metadata_of(given: str) -> str:
    """Return the filter on metadata, if it is a JSON object."""
    msgspec.json.decode(given, type=dict[str, Raw])
    return given


async def cancel_job(call: Call) -> Response:
    """Cancel a job: 200 when done, 202 when its worker is asked, 409 when too late.

    A recurring job is retired; what it has fired goes on.
    """
    job_id = call.job_id()
    reason = (await call.body(Cancel)).reason
    [(outcome,)] = await call.fetch("stop_job", job_id=job_id, reason=reason)
    if outcome == "already_finished":
        raise ApiError(
            "EXECUTION_NOT_CANCELLABLE",
            f"job_id {job_id} has ended",
            message="The job has ended already.",
        )
    answer = {"job_id": job_id, "outcome": outcome}
    return encoded(answer, 202 if outcome == "cancel_requested" else 200)


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
                documents.NewJobAnswer | documents.NewRecurringJob,
                example=examples.NEW_JOB,
            ),
            200: Answer(
                "The idempotency key or dedup key has a job already: this one.",
                documents.NewJobAnswer | documents.NewRecurringJob,
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
        "GET",
        "/jobs/{job_id}",
        get_job,
        "Look a job up",
        ("read", "produce", "work", "operate"),
        {200: Answer("The job.", documents.Job | documents.RecurringJob, example=examples.JOB)},
        {404: ["JOB_NOT_FOUND"]},
    ),
    Operation(
        "GET",
        "/jobs",
        list_jobs,
        "List jobs, the newest first",
        ("read", "operate"),
        {
            200: Answer(
                "A page of jobs.",
                documents.JobPage | documents.RecurringJobPage,
                example=examples.JOBS,
            )
        },
        query=JobFilter,
    ),
    Operation(
        "POST",
        "/jobs/{job_id}/cancel",
        cancel_job,
        "Cancel a job: at once while it waits, by asking its worker while it runs",
        ("produce", "operate"),
        {
            200: Answer("It is cancelled, or retired.", documents.Cancellation),
            202: Answer("Its worker is asked to stop.", documents.Cancellation),
        },
        {404: ["JOB_NOT_FOUND"], 409: ["EXECUTION_NOT_CANCELLABLE"]},
        body=Cancel,
        examples={"why": {"reason": "ordered twice"}},
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
                documents.BatchAnswer,
                example=examples.BATCH_ANSWER,
            ),
            200: Answer(
                "Every key has a job already.",
                documents.BatchAnswer,
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
