"""Recurring jobs: what a schedule is, and the calls that declare, change and show them.

`Client` and `AsyncClient` have a method for each of these calls.
"""

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
        schedule_id: of this version.
        name: that all its versions share.
        status: a retired version is history.
        cron: the expression, or None when it fires every so often.
        every: the interval, or None when it fires by ``cron``.
        from_completion: whether the interval begins when the job before has ended.
        missed: what becomes of missed slots: ``all``, ``latest`` or ``none``.
        catch_up: slots missed for longer do not fire.
        dedup: what becomes of a slot while a job of the same key lives.
        next_run_at: the next slot; None when there is none, or it awaits a job's end.
        last_tick_at: the last slot that has fired, also of earlier versions.
        graph: the jobs that run after each of its jobs, as ``enqueue_graph`` takes them.
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
        slot_at: the instant.
        local_time: what the clocks of its zone show then.
    """

    slot_at: datetime
    local_time: datetime


@dataclass(frozen=True, slots=True)
class Backfilled:
    """A past slot that had not fired.

    Attributes:
        slot_at: the instant.
        job_id: the job that was made for it; None for a dry run.
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
    """Declare a recurring job under a name; declaring it again is harmless.

    The same definition changes nothing. Another one becomes a new version, which takes
    over where the old one is. What is None takes its default, whatever it was before.

    Args:
        name: 1 to 128 characters, and no UUID.
        kind: of the jobs.
        cron: an expression of 5, 6 (with seconds) or 7 fields (with years), or ``@daily``
            and the like.
        every: the interval instead, 1 s to 3660 days.
        options: see `jobq.calls.options.ScheduleOptions`.

    Returns:
        The id of the version that is in force.

    Raises:
        TypeError: there is no such option.
        InvalidSchedule: the expression or the zone is refused; the detail names the field.
        PayloadInvalid: the payload does not match the schema of its kind.
        PayloadTooLarge: payload and metadata have too many bytes.
        InvalidArgument: an argument may not have this value.
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
    """Change a schedule: a new version takes over from the old.

    Args:
        schedule: its name, or the id of its present version.
        **changes: parameters of ``create_schedule``; None means the default. What is not
            named stays.

    Returns:
        The id of the version that is in force.

    Raises:
        NotFound: there is no such schedule.
        IllegalState: it is retired.
        JobqError: as ``create_schedule``.
    """
    return Call("update_schedule", {**locals(), "changes": as_jsonb(changes)}, scalar)


def pause_schedule(schedule: UUID | str, reason: str | None = None) -> Call[None]:
    """Stop a schedule from firing until it is resumed; jobs that it has made go on.

    Raises:
        NotFound: there is no such schedule.
        IllegalState: it is retired.
    """
    return Call("pause_schedule", locals(), nothing)


def run_schedule(schedule: UUID | str) -> Call[UUID]:
    """Run what a schedule runs once more, now, and return the id of the job; it takes no slot.

    Raises:
        NotFound: there is no such schedule.
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
    """Make the jobs of slots in a span of the past that did not fire, each once, all or none.

    Args:
        schedule: its name or its id.
        since: slots at or after this moment.
        until: slots before this moment, which is not later than now.
        max_slots: a span with more slots is refused, 1 to 10000.
        dry_run: make nothing, and return the slots that would be.
        reason: why, for the audit.

    Raises:
        NotFound: there is no such schedule.
        IllegalState: it is retired.
        InvalidArgument: the span lies ahead or has too many slots, or the schedule counts
            from the end of its jobs.
    """
    return Call("backfill_schedule", locals(), list, record(Backfilled))


def resume_schedule(schedule: UUID | str) -> Call[None]:
    """Let a paused schedule fire again, from its next slot on.

    Raises:
        NotFound: there is no such schedule.
        IllegalState: it is retired.
    """
    return Call("resume_schedule", locals(), nothing)


def retire_schedule(schedule: UUID | str) -> Call[None]:
    """End a schedule; jobs that it has made run to their end.

    Raises:
        NotFound: there is no such schedule.
    """
    return Call("retire_schedule", locals(), nothing)


def get_schedule(schedule: UUID | str) -> Call[Schedule]:
    """Return a schedule by its name, or one of its versions by its id.

    Raises:
        NotFound: there is no such schedule.
    """
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
        status: only those with it; without, those in force: active and paused.
        kind: only schedules of this kind.
        queue: only schedules of this queue.
        before: the last id of the page before.
        max_schedules: 1 to 1000.
    """
    return Call("list_schedules", locals(), list, SCHEDULE, may_lag=True)


def schedule_versions(schedule: UUID | str) -> Call[list[Schedule]]:
    """Return every version of a schedule, newest first.

    Raises:
        NotFound: there is no such schedule.
    """
    return Call("list_schedule_versions", locals(), list, SCHEDULE)


def schedule_status(schedule: UUID | str) -> Call[dict[str, Any]]:
    """Return how a schedule does: health, last execution, what is under way, statistics.

    Raises:
        NotFound: there is no such schedule.
    """
    return Call("schedule_status", locals(), scalar)


def preview_schedule(schedule: UUID | str, ticks: int = 5) -> Call[list[Slot]]:
    """Return when a schedule will fire next.

    Args:
        schedule: its name or its id.
        ticks: how many slots, 1 to 1000.

    Raises:
        NotFound: there is no such schedule.
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
    """Return the next firings of a cron expression.

    Args:
        cron: the expression.
        time_zone: the IANA name of a zone; UTC.
        ticks: how many, 1 to 1000.
        after: they are later than this moment; now by default.
        gap: for clock readings that do not exist: ``run``, ``skip`` or ``auto``.
        fold: for clock readings that come twice: ``once``, ``both`` or ``auto``.

    Raises:
        InvalidSchedule: the expression or the zone is refused; the detail names the field.
    """
    return Call("preview_cron", locals(), list, record(Slot))
