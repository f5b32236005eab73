"""What the console shows, for everybody: documents whose cost has an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Raw, Struct

from jobq.models import State
from jobq_http.declared import given_of, section
from jobq_http.jobs import STATES, metadata_of
from jobq_http.operation import encoded
from jobq_http.page import Limit, Paging, next_of
from jobq_http.values import Moment, Name, Next, Text, page_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq_http.operation import Call

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


QueueGlances = page_of("QueueGlances", "A page of queues, by name.", QueueGlance)


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


Deeds = page_of("Deeds", "A page of deeds, the newest first.", Deed)


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
    cursor = next_of(call, rest[0]["queue"] if rest else None)
    return encoded({"items": queues[: wanted.limit], "cursor": cursor})


async def glance_at_jobs(call: Call) -> Response:
    """Return a page of jobs at a glance, and how many fit."""
    wanted = call.query(Found)
    given = given_of(wanted)
    del given["limit"]
    if "state" in given:
        given["states"] = given.pop("state").split(",")
    if "metadata" in given:
        given["metadata"] = metadata_of(given["metadata"])
    if given.pop("cursor", None):
        given["before"] = wanted.position(call, UUID)
    [(document,)] = await call.fetch("jobq_http.show_jobs", **given, max_jobs=wanted.limit)
    found: dict[str, Any] = msgspec.json.decode(document, type=dict[str, Raw])
    del found["job_ids"]
    found["cursor"] = next_of(call, msgspec.json.decode(found["cursor"]))
    return encoded(found)


NUMBER = Annotated[int, Meta(ge=0, le=2**63 - 1)]
of = section("glances")
# fmt: off
OPERATIONS = (
    of("GET /glance/totals", "jobq_http.show_totals",
       "How many jobs wait, run and are dead in all queues, counted to 10,000",
       "read operate", Totals, may_lag=True),
    of("GET /glance/queues", glance_at_queues,
       "Queues at a glance: counts that end, so that it stays cheap",
       "read operate", QueueGlances, query=QueuePage, may_lag=True),
    of("GET /glance/jobs", glance_at_jobs,
       "Jobs that fit a filter, the newest first, and how many fit",
       "read operate", JobGlances, query=Found, may_lag=True),
    of("GET /glance/dead", "jobq_http.show_dead_jobs",
       "Dead jobs by kind, queue and error code, with what they have in common",
       "read operate", DeadGroups, may_lag=True),
    of("GET /history", "jobq_http.show_history",
       "How many jobs were made and ended, and how long they took",
       "read operate", HistoryAnswer, query=History, may_lag=True),
    of("GET /audit", "jobq_http.page_audit", "Who did what, to what, and why",
       "operate", Deeds, query=AuditFilter, place=("before", NUMBER, "max_rows")),
)
# fmt: on
