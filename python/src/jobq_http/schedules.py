"""Recurring jobs: versions, status, pause and resume."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.responses import Response

from jobq.calls.arguments import Missed, ScheduleDedup
from jobq.models import Backfilled
from jobq_http.call import Call, json
from jobq_http.errors import ApiError
from jobq_http.operation import Answer, section
from jobq_http.page import Integer, Paging
from jobq_http.queues import Pause
from jobq_http.values import (
    KeyText,
    Moment,
    Name,
    answer,
    answer_of,
    list_of,
    page_of,
    request,
    text,
)
from jobq_http.workflows import SlotGraph

RecurringStatus = Literal["ACTIVE", "PAUSED", "RETIRED"]

Timing: Any = request(
    "Timing",
    "Options of a recurring job; null means the default.",
    "cron?~ every_ms?~ timezone~ starts_at?~ ends_at?~ input~ missed~ queue?~ priority?~"
    " max_attempts?~ timeout_ms?~ dedup~ dedup_key?~ concurrency_key?~ metadata~ graph?~",
    cron=Annotated[
        str, Meta(max_length=512, description="5 fields, or 6 or 7 with seconds and years.")
    ],
    timezone=Annotated[str, Meta(min_length=1, max_length=64, description="IANA name.")],
    missed=Missed,
    dedup=ScheduleDedup,
    graph=SlotGraph,
)
Revision = request(
    "Revision", "Changes of a recurring job; omitted members keep their values.", "", Timing
)


class Kind(Struct):
    """The kind of a job."""

    kind: str


class Recurring(Timing, kw_only=True):  # type: ignore[call-arg,misc]
    """A recurring job, by `cron` or at an interval."""

    trigger: Literal["CRON"]
    name: Annotated[
        Name | UnsetType | None, Meta(description="While it is in use, it returns the same job.")
    ] = UNSET
    idempotency_key: Annotated[
        KeyText | None, Meta(description="Instead of a name; unique per endpoint or kind.")
    ] = None

    def declared(self) -> dict[str, Any]:
        """Return the object for the database; refuse members that do not go together."""
        if self.timezone is UNSET and isinstance(self.cron, str):
            raise ApiError("INVALID_REQUEST", "cron needs timezone")
        if self.idempotency_key is not None and self.name:
            raise ApiError("INVALID_REQUEST", "name, idempotency_key: one of them")
        given: dict[str, Any] = super().declared()
        return {n: v for n, v in given.items() if n not in {"trigger", "idempotency_key"}}


Recurrence = request(
    "Recurrence",
    "A recurring job of an endpoint, by `cron` or at an interval.",
    "endpoint",
    Recurring,
)
RecurrenceOfKind = request(
    "RecurrenceOfKind",
    "A recurring job of a kind, by `cron` or at an interval.",
    "kind",
    Recurring,
)
RecurringJob = answer(
    "RecurringJob",
    "One version of a recurring job, by cron or at an interval.",
    "job_id endpoint endpoint_type? trigger status version previous_version_id? replaced_by_id?"
    " name cron? every_ms? from_completion? timezone? gap fold missed catch_up_ms? dedup dedup_key?"
    " concurrency_key? jitter_ms? starts_at? ends_at? next_run_at? last_tick_at? input~ kind queue?"
    " payload~ metadata graph? priority? max_attempts? timeout_ms? paused_at? pause_reason? region"
    " created_at retired_at?",
    trigger=Literal["CRON"],
    status=RecurringStatus,
    missed=Missed,
    graph="The jobs that run after each of its own; null for none.",
)
NewRecurringJob = answer(
    "NewRecurringJob",
    "A recurring job, and whether this request has created it.",
    "created",
    RecurringJob,
)
RecurringJobPage = page_of(
    "RecurringJobPage",
    "A page of recurring jobs or of their versions, the newest first.",
    RecurringJob,
)
LastExecution = answer(
    "LastExecution",
    "The execution that started last.",
    "execution_id status started_at? completed_at? attempt_number",
)
ActiveExecutions = answer(
    "ActiveExecutions",
    "Work in progress.",
    "pending running total",
)
Ticks = answer(
    "Ticks",
    "When a recurring job fires.",
    "expression? every_ms? next_run_at? last_tick_at?",
)
Statistics = answer(
    "Statistics",
    "Outcomes of executions.",
    "total succeeded failed avg_duration_ms? p99_duration_ms?",
)
StatisticsOfDay = answer(
    "StatisticsOfDay", "Outcomes of executions, by time.", "last_24h", last_24h=Statistics
)
JobStatus = answer(
    "JobStatus",
    "Status of a recurring job.",
    "job_id name endpoint endpoint_type? trigger status health version last_execution?"
    " active_executions cron stats",
    trigger=Literal["CRON"],
    status=RecurringStatus,
    health=Literal["HEALTHY", "DEGRADED", "FAILING", "IDLE"],
    last_execution=LastExecution,
    active_executions=ActiveExecutions,
    cron=Ticks,
    stats=StatisticsOfDay,
)
Preview = list_of("Preview", "When a recurring job fires next.", Moment, "slots")
JobPausing = answer("JobPausing", "Whether a recurring job is paused.", "job_id is_paused")
JobRun = answer("JobRun", "A job that runs what a recurring job runs.", "job_id")
Backfill = request(
    "Backfill",
    "A past span to backfill.",
    "since until max_slots dry_run reason?",
    max_slots=Annotated[float, Meta(ge=1, le=10_000, multiple_of=1)],
    defaults={"max_slots": 1000, "dry_run": False},
)
BackfilledSlot = answer_of(Backfilled, "BackfilledSlot")
BackfilledSlots = list_of(
    "BackfilledSlots", "The unfired slots of the span, in their order.", BackfilledSlot
)


async def update_job(call: Call) -> Response:
    """Change a recurring job: creates a new version, and the old one is RETIRED."""
    job_id = call.job_id()
    revision = await call.body(Revision)
    kind = None
    if revision.input is not UNSET:
        [(item,)] = await call.fetch("jobq_http.show_job", job_id=job_id)
        kind = msgspec.json.decode(item, type=Kind).kind
    if inputs := revision.inputs(kind):
        await call.check(inputs)
    changes = text(revision.declared())
    [(item,)] = await call.fetch("jobq_http.revise_job", job_id=job_id, changes=changes)
    if item is None:
        raise ApiError("JOB_NOT_UPDATABLE")
    return json(item)


READERS = "read produce operate"
RETIRED = "SCHEDULE_RETIRED"
SCHEDULE = {"job_id": "schedule"}
of = section("recurring jobs")
# fmt: off
OPERATIONS = (
    of("PUT /jobs/{job_id}", update_job,
       "Update a recurring job by a new version; one-shot jobs never change",
       "produce operate", RecurringJob, body=Revision,
       errors="GRAPH_CYCLE JOB_NOT_UPDATABLE SCHEDULE_RETIRED"
              " INPUT_VALIDATION_FAILED INVALID_CRON CRON_NEVER_FIRES INVALID_TIME_ZONE",
       examples={"an hour later": {"cron": "0 10 * * MON"}}),
    of("GET /jobs/{job_id}/status", "schedule_status",
       "Status of a recurring job: health, last execution, the last 24 hours",
       READERS, JobStatus, names=SCHEDULE),
    of("GET /jobs/{job_id}/versions", "jobq_http.page_schedule_versions",
       "List the versions of a recurring job, the newest first", READERS, RecurringJobPage,
       names=SCHEDULE, query=Paging, place=("before", Integer, "max_versions")),
    of("GET /jobs/{job_id}/preview", "jobq_http.preview_slots",
       "When a recurring job fires next: five times",
       READERS, {200: Answer("The next five times.", Preview)}, names={"job_id": "schedule_id"}),
    of("POST /jobs/{job_id}/pause", "pause_schedule",
       "Pause a recurring job; its runs continue",
       "operate", JobPausing, body=Pause, names=SCHEDULE, errors=RETIRED,
       always={"is_paused": True}),
    of("POST /jobs/{job_id}/run", "run_schedule",
       "Create one additional run of a recurring job now, without using a slot",
       "operate", JobRun, status=201, names=SCHEDULE, value="job_id",
       errors=f"{RETIRED} ENQUEUE_DENIED QUEUE_FULL"),
    of("POST /jobs/{job_id}/backfill", "backfill_schedule",
       "Create the jobs of a recurring job's slots in a past span that did not fire; all or none",
       "operate", BackfilledSlots, body=Backfill, names=SCHEDULE,
       errors=f"{RETIRED} ENQUEUE_DENIED"),
    of("POST /jobs/{job_id}/resume", "resume_schedule", "Resume a paused recurring job",
       "operate", JobPausing, names=SCHEDULE, always={"is_paused": False}, errors=RETIRED),
)
# fmt: on
