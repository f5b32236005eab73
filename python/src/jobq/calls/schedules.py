"""Calls that declare and change schedules."""

from __future__ import annotations

from typing import Any, Unpack
from uuid import UUID

from jobq.calls.arguments import as_jsonb, as_timedelta, refuse_unknown
from jobq.calls.call import Call, scalar
from jobq.calls.graph import as_document, payloads_of
from jobq.calls.options import ScheduleOptions, Span, in_time
from jobq.models import Json


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
