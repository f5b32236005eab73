"""Schedules, and the calls that declare, change and show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Unpack
from uuid import UUID

from jobq.calls.arguments import as_jsonb, as_timedelta, refuse_unknown
from jobq.calls.call import Call, first, nothing, scalar
from jobq.calls.graph import as_document, payloads_of
from jobq.calls.options import ScheduleOptions, Span, in_time
from jobq.models import Json, record

ScheduleStatus = Literal["active", "paused", "retired"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A version of a schedule: a row of the view ``jobq.schedule``.

    Attributes:
        schedule_id: id of this version.
        name: the same for all versions.
        status: of this version; older versions are ``retired``.
        cron: the cron expression; None with an interval.
        every: the interval; None with a cron expression.
        from_completion: whether the interval is measured from the end of the previous job.
        missed: which missed slots fire: ``all``, ``latest`` or ``none``.
        catch_up: maximum age of a missed slot.
        dedup: what to do while a job with the same key is live.
        next_run_at: the next slot; None if there is none, or until the previous job has ended.
        last_tick_at: the last slot that has fired, including those of earlier versions.
        graph: the jobs to run after each job, as for ``enqueue_graph``.
    """

    schedule_id: UUID
    name: str
    version: int
    status: ScheduleStatus
    kind: str
    queue: str | None
    cron: str | None
    every: timedelta | None
    from_completion: bool
    time_zone: str
    gap: str
    fold: str
    missed: str
    catch_up: timedelta | None
    dedup: str
    dedup_key: str | None
    concurrency_key: str | None
    jitter: timedelta
    starts_at: datetime | None
    ends_at: datetime | None
    next_run_at: datetime | None
    last_tick_at: datetime | None
    payload: Json
    metadata: dict[str, Json]
    graph: dict[str, Json] | None
    priority: int | None
    max_attempts: int | None
    timeout: timedelta | None
    previous_version_id: UUID | None
    replaced_by_id: UUID | None
    awaited_job_id: UUID | None
    paused_at: datetime | None
    pause_reason: str | None
    region: str
    created_at: datetime
    retired_at: datetime | None


@dataclass(frozen=True, slots=True)
class Slot:
    """A time at which a schedule fires.

    Attributes:
        slot_at: the time.
        local_time: the local time in the schedule's zone.
    """

    slot_at: datetime
    local_time: datetime


@dataclass(frozen=True, slots=True)
class Backfilled:
    """A past slot that had not fired.

    Attributes:
        slot_at: the time.
        job_id: the job created for it; None for a dry run.
    """

    slot_at: datetime
    job_id: UUID | None


SCHEDULE: Final = record(Schedule)


def create_schedule(
    name: str,
    kind: str,
    cron: str | None = None,
    *,
    every: Span | None = None,
    **options: Unpack[ScheduleOptions],
) -> Call[UUID]:
    """Declare a schedule, and return the id of the current version.

    Declaring it again is harmless. The same definition changes nothing. Another definition creates
    a new version, which continues where the old one is. Options that are None take their defaults.

    Args:
        name: 1 to 128 characters, not a UUID.
        kind: kind of the jobs.
        cron: an expression with 5, 6 (seconds) or 7 fields (years), or a word such as ``@daily``.
        every: an interval instead, 1 s to 3660 days.
        options: see `jobq.calls.options.ScheduleOptions`.

    Raises:
        InvalidSchedule: the expression or the time zone is invalid; the detail names the field.
        PayloadInvalid: the payload does not match the schema of its kind.
        PayloadTooLarge: payload and metadata have too many bytes.
    """
    refuse_unknown(options, ScheduleOptions)
    given: dict[str, Any] = {"name": name, "kind": kind, "cron": cron, **in_time(options)}
    given["every"] = as_timedelta(every)
    graph, payload = given.get("graph"), given.get("payload")
    after = None if graph is None else as_document(graph)
    given |= {
        "payload": as_jsonb(payload),
        "metadata": as_jsonb(given.get("metadata")),
        "graph": as_jsonb(after),
    }
    inputs = [(kind, payload), *payloads_of(after or {})]
    return Call("create_schedule", given, scalar, inputs=inputs)


def update_schedule(schedule: UUID | str, **changes: Json) -> Call[UUID]:
    """Change a schedule by creating a new version, and return its id.

    Args:
        schedule: its name, or the id of its current version.
        **changes: arguments of ``create_schedule``; None means the default. Others are unchanged.

    Raises:
        IllegalState: it is retired.
        JobqError: as ``create_schedule``.
    """
    return Call("update_schedule", {**locals(), "changes": as_jsonb(changes)}, scalar)


def pause_schedule(schedule: UUID | str, reason: str | None = None) -> Call[None]:
    """Pause a schedule. Its jobs continue.

    Raises:
        IllegalState: it is retired.
    """
    return Call("pause_schedule", locals(), nothing)


def run_schedule(schedule: UUID | str) -> Call[UUID]:
    """Create a job of a schedule now, in addition to its slots, and return the job's id.

    Raises:
        IllegalState: it is retired.
    """
    return Call("run_schedule", locals(), scalar)


def backfill_schedule(
    schedule: UUID | str,
    since: datetime,
    until: datetime,
    *,
    max_slots: int = 1000,
    dry_run: bool = False,
    reason: str | None = None,
) -> Call[list[Backfilled]]:
    """Create the jobs of past slots that did not fire, each once, all or none.

    Args:
        schedule: its name or id.
        since: slots at or after this time.
        until: slots before this time, at most now.
        max_slots: maximum number of slots in this period, 1 to 10000.
        dry_run: whether to only return the slots.
        reason: for the audit.

    Raises:
        IllegalState: it is retired.
        InvalidArgument: the period is in the future or has too many slots, or the schedule
            measures its interval from the end of each job.
    """
    return Call("backfill_schedule", locals(), list, record(Backfilled))


def resume_schedule(schedule: UUID | str) -> Call[None]:
    """Resume a paused schedule, from its next slot.

    Raises:
        IllegalState: it is retired.
    """
    return Call("resume_schedule", locals(), nothing)


def retire_schedule(schedule: UUID | str) -> Call[None]:
    """End a schedule. Its jobs continue."""
    return Call("retire_schedule", locals(), nothing)


def get_schedule(schedule: UUID | str) -> Call[Schedule]:
    """Return a schedule by its name, or a version by its id."""
    return Call("get_schedule", locals(), first, SCHEDULE)


def list_schedules(
    status: ScheduleStatus | None = None,
    kind: str | None = None,
    queue: str | None = None,
    before: UUID | str | None = None,
    max_schedules: int = 50,
) -> Call[list[Schedule]]:
    """Return a page of schedules, newest version first.

    Args:
        status: only schedules with this status; None means active and paused.
        kind: only schedules of this kind.
        queue: only schedules of this queue.
        before: the last id of the previous page.
        max_schedules: 1 to 1000.
    """
    return Call("list_schedules", locals(), list, SCHEDULE, may_lag=True)


def schedule_versions(schedule: UUID | str) -> Call[list[Schedule]]:
    """Return every version of a schedule, newest first."""
    return Call("list_schedule_versions", locals(), list, SCHEDULE)


def schedule_status(schedule: UUID | str) -> Call[dict[str, Any]]:
    """Return the health of a schedule, its last execution, its live job and statistics."""
    return Call("schedule_status", locals(), scalar)


def preview_schedule(schedule: UUID | str, ticks: int = 5) -> Call[list[Slot]]:
    """Return the next slots of a schedule.

    Args:
        schedule: its name or id.
        ticks: number of slots, 1 to 1000.
    """
    return Call("preview_schedule", locals(), list, record(Slot))


def preview_cron(
    cron: str,
    time_zone: str | None = None,
    ticks: int = 5,
    *,
    after: datetime | None = None,
    gap: str | None = None,
    fold: str | None = None,
) -> Call[list[Slot]]:
    """Return the next slots of a cron expression.

    Args:
        cron: the expression.
        time_zone: IANA name of the time zone; UTC by default.
        ticks: number of slots, 1 to 1000.
        after: only slots after this time; now by default.
        gap: for local times that do not exist: ``run``, ``skip`` or ``auto``.
        fold: for local times that occur twice: ``once``, ``both`` or ``auto``.

    Raises:
        InvalidSchedule: the expression or the time zone is invalid; the detail names the field.
    """
    return Call("preview_cron", locals(), list, record(Slot))
