"""The data of the console, for all clients: documents at a bounded cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw
from starlette.responses import Response

from jobq_http.call import Call, encoded
from jobq_http.jobs import Filters
from jobq_http.operation import section
from jobq_http.page import BigInteger, Limit, Paging, next_of
from jobq_http.values import Count, RequestPart, answer, page_of, request

Totals = answer(
    "Totals",
    "How many jobs there are in all queues.",
    "queued scheduled retrying running blocked dead queues paused oldest_runnable_ms? goes_on*",
    blocked=(int, "How many wait for other jobs."),
    paused="How many queues are.",
    oldest_runnable_ms=(int, "Milliseconds."),
    goes_on=(str, "The counts that may be higher."),
)
QueueGlance = answer(
    "QueueGlance",
    "A queue. If more jobs than ends_at wait, the counts may be too low.",
    "queue queued scheduled retrying running dead blocked oldest_runnable_ms? is_paused paused_at?"
    " pause_reason? is_served is_declared max_depth? key_max_running? ends_at goes_on*",
    dead=(int, "Of the newest dead jobs of all queues."),
    blocked=(int, "How many wait for other jobs."),
    oldest_runnable_ms=(int, "Milliseconds."),
    is_served="Whether a live worker claims from it.",
    ends_at=(int, "The limit of its counts of waiting jobs."),
    goes_on=(str, "The counts that may be higher."),
)


class QueuePage(Paging):
    """Which queues."""

    limit: Limit = 200


QueueGlances = page_of("QueueGlances", "A page of queues, by name.", QueueGlance)
Found = request("Found", "Which jobs to find; of recurring jobs, their runs.", "worker?", Filters)
JobGlance = answer(
    "JobGlance",
    "A job without its payload and result.",
    "job_id kind queue state priority attempts max_attempts worker? created_at run_at started_at?"
    " finished_at? last_error_code? last_error?",
    last_error="Its first 200 characters.",
)
JobGlances = answer(
    "JobGlances",
    "A page of jobs, newest first, and the number of matches among the 10,000 jobs that were read.",
    "items* matched is_all cursor",
    items=JobGlance,
    is_all=(bool, "Whether all jobs were read."),
)
DeadGroup = answer(
    "DeadGroup",
    "Dead jobs of one kind, queue and error code.",
    "kind queue error_code? jobs first_at last_at error? errors workers* least_attempts"
    " most_attempts job_id metadata",
    jobs=Count,
    error="Of the newest.",
    errors="Number of distinct values.",
    workers=str | None,
    job_id="Of the newest.",
    metadata=(dict[str, str | None], "Their common values."),
)
DeadGroups = answer(
    "DeadGroups",
    "The newest 10,000 dead jobs, grouped by error.",
    "looked_at is_all groups*",
    is_all=(bool, "Whether these are all dead jobs."),
    groups=DeadGroup,
)
History = request(
    "History",
    "Which history: an hour by minute, a day by ten minutes, a month by hour.",
    "span by queue? kind? max_buckets",
    RequestPart,
    span=Literal["hour", "day", "month"],
    by=Literal["queue", "kind"],
    max_buckets=Annotated[int, Meta(ge=1, le=720, description="Larger numbers are merged.")],
    defaults={"span": "hour", "by": "queue", "max_buckets": 720},
)
HistoryAnswer = answer(
    "HistoryAnswer",
    "Numbers of created and finished jobs, and their durations.",
    "since until width_ms counts* latency*",
    width_ms="Of a bucket.",
    counts=(
        list[int | str],
        "The number of a bucket, the queue or kind, how many were enqueued, succeeded, failed and"
        " were tried again, died, were cancelled.",
    ),
    latency=(list[int], "The number of a bucket, the median and the 95th percentile in ms."),
)
AuditFilter = request(
    "AuditFilter",
    "Which deeds to list.",
    "subject?",
    Paging,
    subject="The subject: a job's id, a queue …",
)
Deed = answer(
    "Deed",
    "An action.",
    "audit_id acted_at actor acting_for? application? action subject reason?",
)
Deeds = page_of("Deeds", "A page of actions, newest first.", Deed)


async def glance_at_queues(call: Call) -> Response:
    """Return a page of queues for overviews."""
    wanted = call.query(QueuePage)
    given = {"first": wanted.position(call, str), "max_queues": wanted.limit + 1}
    [(document,)] = await call.fetch("jobq_http.show_queues", **given)
    queues = msgspec.json.decode(document)
    rest = queues[wanted.limit :]
    cursor = next_of(call, rest[0]["queue"] if rest else None)
    return encoded({"items": queues[: wanted.limit], "cursor": cursor})


async def glance_at_jobs(call: Call) -> Response:
    """Return a page of jobs for overviews, and the number of matches."""
    wanted = call.query(Found)
    [(document,)] = await call.fetch(
        "jobq_http.show_jobs", **wanted.filters(call), max_jobs=wanted.limit
    )
    found: dict[str, Any] = msgspec.json.decode(document, type=dict[str, Raw])
    del found["job_ids"]
    found["cursor"] = next_of(call, msgspec.json.decode(found["cursor"]))
    return encoded(found)


of = section("glances")
# fmt: off
OPERATIONS = (
    of("GET /glance/totals", "jobq_http.show_totals",
       "Numbers of waiting, running and dead jobs in all queues, up to 10,000",
       "read operate", Totals, may_lag=True),
    of("GET /glance/queues", glance_at_queues,
       "Overview of queues, with bounded counts",
       "read operate", QueueGlances, query=QueuePage, may_lag=True),
    of("GET /glance/jobs", glance_at_jobs,
       "Jobs that match a filter, newest first, and their number",
       "read operate", JobGlances, query=Found, may_lag=True),
    of("GET /glance/dead", "jobq_http.show_dead_jobs",
       "Dead jobs by kind, queue and error code, with their common properties",
       "read operate", DeadGroups, may_lag=True),
    of("GET /history", "jobq_http.show_history",
       "Numbers of created and finished jobs, and their durations",
       "read operate", HistoryAnswer, query=History, may_lag=True),
    of("GET /audit", "jobq_http.page_audit", "Actions with author, subject and reason",
       "operate", Deeds, query=AuditFilter, place=("before", BigInteger, "max_rows")),
)
# fmt: on
