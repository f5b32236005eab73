"""What the console shows, for everybody: documents whose cost has an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Raw, Struct

from jobq.http.jobs import STATES, metadata_of
from jobq.http.operation import Answer, Operation, encoded, json
from jobq.http.page import Limit, Next, Paging, next_of, page
from jobq.http.values import Moment, Name, State, Text

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call

Count = Annotated[int, Meta(ge=0)]
Length = Annotated[int | None, Meta(description="Milliseconds.")]


class Totals(Struct):
    """How many jobs there are in all queues."""

    queued: Count
    scheduled: Count
    retrying: Count
    running: Count
    blocked: Annotated[int, Meta(description="How many wait for other jobs.")]
    dead: Count
    queues: Count
    paused: Annotated[int, Meta(description="How many queues are.")]
    oldest_runnable_ms: Length
    goes_on: Annotated[list[str], Meta(description="The counts of which there may be more.")]


class QueueGlance(Struct):
    """A queue; if more wait in it than ends_at, there may be more than that."""

    queue: str
    queued: Count
    scheduled: Count
    retrying: Count
    running: Count
    dead: Annotated[int, Meta(description="Of the newest dead jobs of all queues.")]
    blocked: Annotated[int, Meta(description="How many wait for other jobs.")]
    oldest_runnable_ms: Length
    is_paused: bool
    paused_at: Moment | None
    pause_reason: str | None
    is_served: Annotated[bool, Meta(description="Whether a live worker claims from it.")]
    is_declared: bool
    max_depth: int | None
    key_max_running: int | None
    ends_at: Annotated[int, Meta(description="Where its counts of what waits end.")]
    goes_on: Annotated[list[str], Meta(description="The counts of which there may be more.")]


class QueuePage(Paging, forbid_unknown_fields=True, kw_only=True):
    """Which queues."""

    limit: Limit = 200


class QueueGlances(Struct):
    """A page of queues, by name."""

    items: list[QueueGlance]
    cursor: Next


class Found(Paging, forbid_unknown_fields=True, kw_only=True):
    """Which jobs to find; of recurring jobs what they have fired."""

    state: Annotated[str, STATES] | None = None
    kind: Name | None = None
    queue: Name | None = None
    error_code: Text | None = None
    worker: Text | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None
    metadata: Annotated[
        str | None, Meta(description="A JSON object that the job's metadata contains.")
    ] = None


class JobGlance(Struct):
    """A job without what it is given and what came of it."""

    job_id: UUID
    kind: str
    queue: str
    state: State
    priority: int
    attempts: int
    max_attempts: int
    worker: str | None
    created_at: Moment
    run_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    last_error_code: str | None
    last_error: Annotated[str | None, Meta(description="Its first 200 characters.")]


class JobGlances(Struct):
    """A page of jobs, the newest first, and how many fit of the 10,000 that were looked at."""

    items: list[JobGlance]
    matched: Count
    is_all: Annotated[bool, Meta(description="Whether nothing was left to look at.")]
    cursor: Next


class DeadGroup(Struct):
    """Dead jobs of one kind, queue and error code."""

    kind: str
    queue: str
    error_code: str | None
    jobs: Count
    first_at: Moment
    last_at: Moment
    error: Annotated[str | None, Meta(description="Of the newest.")]
    errors: Annotated[int, Meta(description="How many different ones.")]
    workers: list[str | None]
    least_attempts: int
    most_attempts: int
    job_id: Annotated[UUID, Meta(description="Of the newest.")]
    metadata: Annotated[dict[str, str | None], Meta(description="What all of them have.")]


class DeadGroups(Struct):
    """The newest 10,000 dead jobs, in groups that died of the same."""

    looked_at: Count
    is_all: Annotated[bool, Meta(description="Whether no more are dead.")]
    groups: list[DeadGroup]


class History(Struct, forbid_unknown_fields=True):
    """Which history: an hour by minute, a day by ten minutes, a month by hour."""

    span: Literal["hour", "day", "month"] = "hour"
    by: Literal["queue", "kind"] = "queue"
    queue: Name | None = None
    kind: Name | None = None
    max_buckets: Annotated[int, Meta(ge=1, le=720, description="More are told together.")] = 720


class HistoryAnswer(Struct):
    """How many jobs were made and ended, and how long they took."""

    since: Moment
    until: Moment
    width_ms: Annotated[int, Meta(description="Of a bucket.")]
    counts: Annotated[
        list[list[int | str]],
        Meta(
            description="The number of a bucket, the queue or kind, how many were enqueued, "
            "succeeded, failed and were tried again, died, were cancelled."
        ),
    ]
    latency: Annotated[
        list[list[int]],
        Meta(description="The number of a bucket, the median and the 95th percentile in ms."),
    ]


class AuditFilter(Paging, forbid_unknown_fields=True, kw_only=True):
    """Which deeds to list."""

    subject: Annotated[
        Text | None, Meta(description="What it was done to: a job's id, a queue …")
    ] = None


class Deed(Struct):
    """What somebody has done."""

    audit_id: int
    acted_at: Moment
    actor: str
    acting_for: str | None
    application: str | None
    action: str
    subject: str
    reason: str | None


class Deeds(Struct):
    """A page of deeds, the newest first."""

    items: list[Deed]
    cursor: Next


async def glance_at_totals(call: Call) -> Response:
    """Return how many jobs there are in all queues."""
    [(document,)] = await call.fetch("jobq_http.show_totals")
    return json(document)


async def glance_at_queues(call: Call) -> Response:
    """Return a page of queues at a glance."""
    wanted = call.query(QueuePage)
    first = wanted.position(call, str)
    [(document,)] = await call.fetch(
        "jobq_http.show_queues",
        max_queues=wanted.limit + 1,
        **({} if first is None else {"first": first}),
    )
    queues = msgspec.json.decode(document)
    rest = queues[wanted.limit :]
    return encoded(
        {
            "items": queues[: wanted.limit],
            "cursor": next_of(call, rest[0]["queue"] if rest else None),
        }
    )


async def glance_at_jobs(call: Call) -> Response:
    """Return a page of jobs at a glance, and how many fit."""
    wanted = call.query(Found)
    given = {
        "states": wanted.state.split(",") if wanted.state else None,
        "kind": wanted.kind,
        "queue": wanted.queue,
        "error_code": wanted.error_code,
        "worker": wanted.worker,
        "created_after": wanted.created_after,
        "created_before": wanted.created_before,
        "metadata": wanted.metadata and metadata_of(wanted.metadata),
        "before": wanted.position(call, UUID),
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    [(document,)] = await call.fetch("jobq_http.show_jobs", **chosen, max_jobs=wanted.limit)
    found: dict[str, Any] = msgspec.json.decode(document, type=dict[str, Raw])
    del found["job_ids"]
    found["cursor"] = next_of(call, msgspec.json.decode(found["cursor"]))
    return encoded(found)


async def glance_at_dead_jobs(call: Call) -> Response:
    """Return dead jobs in groups."""
    [(document,)] = await call.fetch("jobq_http.show_dead_jobs")
    return json(document)


async def show_history(call: Call) -> Response:
    """Return what the queue has done."""
    given = {k: v for k, v in msgspec.structs.asdict(call.query(History)).items() if v}
    [(document,)] = await call.fetch("jobq_http.show_history", **given)
    return json(document)


async def list_audit(call: Call) -> Response:
    """Return what operators have done."""
    wanted = call.query(AuditFilter)
    return page(
        call,
        await call.fetch(
            "jobq_http.page_audit",
            before=wanted.number(call, 2**63 - 1),
            subject=wanted.subject,
            max_rows=wanted.limit,
        ),
    )


OPERATIONS = (
    Operation(
        "GET",
        "/glance/totals",
        glance_at_totals,
        "How many jobs wait, run and are dead in all queues, counted to 10,000",
        ("read", "operate"),
        {200: Answer("The counts.", Totals)},
        tag="glances",
        may_lag=True,
    ),
    Operation(
        "GET",
        "/glance/queues",
        glance_at_queues,
        "Queues at a glance: counts that end, so that it stays cheap",
        ("read", "operate"),
        {200: Answer("A page of queues, by name.", QueueGlances)},
        tag="glances",
        query=QueuePage,
        may_lag=True,
    ),
    Operation(
        "GET",
        "/glance/jobs",
        glance_at_jobs,
        "Jobs that fit a filter, the newest first, and how many fit",
        ("read", "operate"),
        {200: Answer("A page of jobs.", JobGlances)},
        tag="glances",
        query=Found,
        may_lag=True,
    ),
    Operation(
        "GET",
        "/glance/dead",
        glance_at_dead_jobs,
        "Dead jobs by kind, queue and error code, with what they have in common",
        ("read", "operate"),
        {200: Answer("The groups, the largest first.", DeadGroups)},
        tag="glances",
        may_lag=True,
    ),
    Operation(
        "GET",
        "/history",
        show_history,
        "How many jobs were made and ended, and how long they took",
        ("read", "operate"),
        {200: Answer("By minute, ten minutes or hour.", HistoryAnswer)},
        tag="glances",
        query=History,
        may_lag=True,
    ),
    Operation(
        "GET",
        "/audit",
        list_audit,
        "Who did what, to what, and why",
        ("operate",),
        {200: Answer("A page of deeds, the newest first.", Deeds)},
        tag="glances",
        query=AuditFilter,
    ),
)
