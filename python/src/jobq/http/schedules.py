"""Recurring jobs: versions, status, pause and resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from jobq.http import examples
from jobq.http.enqueued import inputs_of
from jobq.http.errors import ApiError
from jobq.http.graphs import SlotGraph
from jobq.http.operation import Answer, Operation, encoded, json, text
from jobq.http.page import Next, Paging, page
from jobq.http.queues import Pause
from jobq.http.values import (
    AnyJson,
    Attempts,
    ConcurrencyKey,
    EndpointType,
    Json,
    JsonMembers,
    JsonObject,
    KeyText,
    Milliseconds,
    Moment,
    Name,
    Priority,
    Reason,
    Request,
    ScheduleDedup,
    Status,
)

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call

TimeZone = Annotated[str, Meta(min_length=1, max_length=64, description="IANA name.")]
Cron = Annotated[
    str,
    Meta(min_length=1, max_length=512, description="5 fields, or 6 or 7 with seconds and years."),
]

RecurringStatus = Literal["ACTIVE", "PAUSED", "RETIRED"]

# What the database calls it.
COLUMNS = {"timezone": "time_zone", "input": "payload", "endpoint": "kind"}
LENGTHS = {"every_ms": "every", "timeout_ms": "timeout"}


class Timing(Request, kw_only=True):
    """What a recurring job is made of; null means the default."""

    cron: Cron | UnsetType | None = UNSET
    every_ms: Milliseconds | UnsetType | None = UNSET
    timezone: TimeZone | UnsetType = UNSET
    starts_at: Moment | UnsetType | None = UNSET
    ends_at: Moment | UnsetType | None = UNSET
    input: Json | UnsetType = UNSET
    missed: Literal["all", "latest", "none"] | UnsetType = UNSET
    queue: Name | UnsetType | None = UNSET
    priority: Priority | UnsetType | None = UNSET
    max_attempts: Attempts | UnsetType | None = UNSET
    timeout_ms: Milliseconds | UnsetType | None = UNSET
    dedup: ScheduleDedup | UnsetType = UNSET
    dedup_key: KeyText | UnsetType | None = UNSET
    concurrency_key: ConcurrencyKey | UnsetType | None = UNSET
    metadata: JsonMembers | UnsetType = UNSET
    graph: SlotGraph | UnsetType | None = UNSET

    def declared(self) -> dict[str, Any]:
        """Return the object that the database takes."""
        given = {k: v for k, v in msgspec.structs.asdict(self).items() if v is not UNSET}
        for name, column in LENGTHS.items():
            if given.get(name) is not None:
                given[name] = f"{given[name]} ms"
            if name in given:
                given[column] = given.pop(name)
        if isinstance(self.graph, SlotGraph):
            given["graph"] = self.graph.declared()
        return {COLUMNS.get(name, name): value for name, value in given.items()}


def graph_inputs(declared: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the kinds and payloads of the graph of what the database takes."""
    return inputs_of((declared.get("graph") or {"jobs": []})["jobs"])


class Revision(Timing, kw_only=True):
    """What changes of a recurring job; the rest stays."""


class Kind(Struct):
    """Just what a job is of."""

    kind: str


class Recurring(Timing, kw_only=True):
    """A job that is fired again and again, by `cron` or every so often."""

    trigger: Literal["CRON"]
    name: Annotated[
        Name | UnsetType | None, Meta(description="While it is in use it yields the same job.")
    ] = UNSET
    idempotency_key: Annotated[
        KeyText | None, Meta(description="In place of a name, of its endpoint or kind alone.")
    ] = None

    def declared(self) -> dict[str, Any]:
        """Return the object that the database takes.

        Raises:
            ApiError: it fires by cron, and names no time zone.
        """
        if self.timezone is UNSET and isinstance(self.cron, str):
            raise ApiError("INVALID_REQUEST", "cron needs timezone")
        given = super().declared()
        del given["trigger"], given["idempotency_key"]
        return given


class Recurrence(Recurring, kw_only=True):
    """A job of an endpoint, fired again and again, by `cron` or every so often."""

    endpoint: Name


class RecurrenceOfKind(Recurring, kw_only=True):
    """A job of a kind, fired again and again, by `cron` or every so often."""

    kind: Name


class RecurringJob(Struct, kw_only=True):
    """A job that fires by cron, or every so often: one version of it."""

    job_id: UUID
    endpoint: str
    endpoint_type: EndpointType | None
    trigger: Literal["CRON"]
    status: RecurringStatus
    version: int
    previous_version_id: UUID | None
    replaced_by_id: UUID | None
    name: str
    cron: str | None
    every_ms: int | None
    from_completion: bool | None
    timezone: str | None
    gap: str
    fold: str
    missed: Literal["all", "latest", "none"]
    catch_up_ms: int | None
    dedup: str
    dedup_key: str | None
    concurrency_key: str | None
    jitter_ms: int | None
    starts_at: Moment | None
    ends_at: Moment | None
    next_run_at: Moment | None
    last_tick_at: Moment | None
    input: AnyJson | UnsetType = UNSET
    kind: str
    queue: str | None
    payload: AnyJson | UnsetType = UNSET
    metadata: JsonObject
    graph: Annotated[
        JsonObject | None,
        Meta(description="The jobs that run after each of its own; null for none."),
    ]
    priority: int | None
    max_attempts: int | None
    timeout_ms: int | None
    paused_at: Moment | None
    pause_reason: str | None
    region: str
    created_at: Moment
    retired_at: Moment | None


class NewRecurringJob(RecurringJob):
    """A recurring job, and whether this request has created it."""

    created: bool


class RecurringJobPage(Struct):
    """A page of recurring jobs or of their versions, the newest first."""

    items: list[RecurringJob]
    cursor: Next


class LastExecution(Struct):
    """The execution that started last."""

    execution_id: UUID
    status: Status
    started_at: Moment | None
    completed_at: Moment | None
    attempt_number: int


class ActiveExecutions(Struct):
    """What is under way."""

    pending: int
    running: int
    total: int


class Ticks(Struct):
    """When a recurring job fires."""

    expression: str | None
    every_ms: int | None
    next_run_at: Moment | None
    last_tick_at: Moment | None


class Statistics(Struct):
    """How executions ended."""

    total: int
    succeeded: int
    failed: int
    avg_duration_ms: float | None
    p99_duration_ms: float | None


class StatisticsOfDay(Struct):
    """How executions ended, by time."""

    last_24h: Statistics


class JobStatus(Struct):
    """How a recurring job does."""

    job_id: UUID
    name: str
    endpoint: str
    endpoint_type: EndpointType | None
    trigger: Literal["CRON"]
    status: RecurringStatus
    health: Literal["HEALTHY", "DEGRADED", "FAILING", "IDLE"]
    version: int
    last_execution: LastExecution | None
    active_executions: ActiveExecutions
    cron: Ticks
    stats: StatisticsOfDay


class Preview(Struct):
    """When a recurring job fires next."""

    slots: list[Moment]


class JobPausing(Struct):
    """Whether a recurring job is paused."""

    job_id: UUID
    is_paused: bool


class JobRun(Struct):
    """A job that runs what a recurring job runs."""

    job_id: UUID


class Backfill(Request, kw_only=True):
    """A span of the past whose slots are to have their jobs."""

    since: Moment
    until: Moment
    max_slots: Annotated[float, Meta(ge=1, le=10_000, multiple_of=1)] = 1000
    dry_run: bool = False
    reason: Reason | None = None


class BackfilledSlot(Struct):
    """A slot of the past that had not fired, and its job."""

    slot_at: Moment
    job_id: UUID | None


class BackfilledSlots(Struct):
    """The slots of the span that had not fired, in their order."""

    items: list[BackfilledSlot]


async def update_job(call: Call) -> Response:
    """Change a recurring job: a new version takes over, the old one is RETIRED."""
    job_id = call.job_id()
    revision = await call.body(Revision, envelope=4)
    changes = revision.declared()
    inputs = graph_inputs(changes)
    if revision.input is not UNSET:
        [(item,)] = await call.fetch("jobq_http.show_job", job_id=job_id)
        inputs.append((msgspec.json.decode(item, type=Kind).kind, revision.input))
    if inputs:
        await call.check(inputs)
    [(item,)] = await call.fetch("jobq_http.revise_job", job_id=job_id, changes=text(changes))
    if item is None:
        raise ApiError("JOB_NOT_UPDATABLE")
    return json(item)


async def show_status(call: Call) -> Response:
    """Return how a recurring job does."""
    [(item,)] = await call.fetch("schedule_status", schedule=str(call.job_id()))
    return json(item)


async def list_versions(call: Call) -> Response:
    """Return a page of the versions of a recurring job."""
    wanted = call.query(Paging)
    return page(
        call,
        await call.fetch(
            "jobq_http.page_schedule_versions",
            schedule=str(call.job_id()),
            before=wanted.number(call, 2**31 - 1),
            max_versions=wanted.limit,
        ),
    )


async def preview_job(call: Call) -> Response:
    """Return when a recurring job fires next."""
    [(item,)] = await call.fetch("jobq_http.preview_slots", schedule_id=call.job_id())
    return json(item)


async def pause_job(call: Call) -> Response:
    """Let a recurring job fire no more until it is resumed."""
    job_id = call.job_id()
    reason = (await call.body(Pause)).reason
    await call.fetch("pause_schedule", schedule=str(job_id), reason=reason)
    return encoded({"job_id": job_id, "is_paused": True})


async def run_job(call: Call) -> Response:
    """Run what a recurring job runs once more, now, without taking one of its slots."""
    rows = await call.fetch("run_schedule", schedule=str(call.job_id()))
    return encoded({"job_id": rows[0][0]}, 201)


async def backfill_job(call: Call) -> Response:
    """Make the jobs of slots in a span of the past that did not fire, all or none."""
    wanted = await call.body(Backfill)
    rows = await call.fetch_named(
        "backfill_schedule",
        schedule=str(call.job_id()),
        since=wanted.since,
        until=wanted.until,
        max_slots=wanted.max_slots,
        dry_run=wanted.dry_run,
        reason=wanted.reason,
    )
    return encoded({"items": rows})


async def resume_job(call: Call) -> Response:
    """Let a paused recurring job fire again."""
    job_id = call.job_id()
    await call.fetch("resume_schedule", schedule=str(job_id))
    return encoded({"job_id": job_id, "is_paused": False})


MISSING = {404: ["JOB_NOT_FOUND"]}
RETIRED = {404: ["JOB_NOT_FOUND"], 409: ["SCHEDULE_RETIRED"]}

OPERATIONS = (
    Operation(
        "PUT",
        "/jobs/{job_id}",
        update_job,
        "Update a recurring job; one-shot jobs never change",
        ("produce", "operate"),
        {200: Answer("The new version.", RecurringJob, example=examples.RECURRING)},
        {
            400: ["GRAPH_CYCLE"],
            404: ["JOB_NOT_FOUND"],
            409: ["JOB_NOT_UPDATABLE", "SCHEDULE_RETIRED"],
            422: [
                "INPUT_VALIDATION_FAILED",
                "INVALID_CRON",
                "CRON_NEVER_FIRES",
                "INVALID_TIME_ZONE",
            ],
        },
        tag="recurring jobs",
        body=Revision,
        examples={"an hour later": examples.REVISION},
    ),
    Operation(
        "GET",
        "/jobs/{job_id}/status",
        show_status,
        "How a recurring job does: health, last execution, the last 24 hours",
        ("read", "produce", "operate"),
        {200: Answer("How it does.", JobStatus, example=examples.STATUS)},
        MISSING,
        tag="recurring jobs",
    ),
    Operation(
        "GET",
        "/jobs/{job_id}/versions",
        list_versions,
        "List the versions of a recurring job, the newest first",
        ("read", "produce", "operate"),
        {200: Answer("A page of versions.", RecurringJobPage)},
        MISSING,
        tag="recurring jobs",
        query=Paging,
    ),
    Operation(
        "GET",
        "/jobs/{job_id}/preview",
        preview_job,
        "When a recurring job fires next",
        ("read", "produce", "operate"),
        {200: Answer("The next five times.", Preview)},
        MISSING,
        tag="recurring jobs",
    ),
    Operation(
        "POST",
        "/jobs/{job_id}/pause",
        pause_job,
        "Pause a recurring job; what it has fired goes on",
        ("operate",),
        {200: Answer("It is paused.", JobPausing)},
        RETIRED,
        tag="recurring jobs",
        body=Pause,
    ),
    Operation(
        "POST",
        "/jobs/{job_id}/run",
        run_job,
        "Run what a recurring job runs once more, now",
        ("operate",),
        {201: Answer("The job that runs it.", JobRun)},
        {**RETIRED, 403: ["ENQUEUE_DENIED"], 429: ["QUEUE_FULL"]},
        tag="recurring jobs",
    ),
    Operation(
        "POST",
        "/jobs/{job_id}/backfill",
        backfill_job,
        "Make the jobs of a recurring job's slots in a span that did not fire",
        ("operate",),
        {200: Answer("The slots, and their jobs; of a dry run without.", BackfilledSlots)},
        {**RETIRED, 403: ["ENQUEUE_DENIED"]},
        tag="recurring jobs",
        body=Backfill,
    ),
    Operation(
        "POST",
        "/jobs/{job_id}/resume",
        resume_job,
        "Resume a paused recurring job",
        ("operate",),
        {200: Answer("It fires again.", JobPausing)},
        RETIRED,
        tag="recurring jobs",
    ),
)
