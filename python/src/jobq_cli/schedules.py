"""`jobq schedules` and `jobq preview`."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, get_args

import click

from jobq.calls.arguments import Fold, Gap
from jobq.calls.options import ScheduleOptions
from jobq.client import Client
from jobq.models import Schedule, ScheduleStatus, Slot
from jobq_cli.declared import calling, limited, listing_group
from jobq_cli.parameters import (
    AS_JSON,
    DATABASE,
    OWN_DATABASE,
    PAYLOAD,
    argument,
    limit,
    moment,
    option,
    options_of,
    reason,
)
from jobq_cli.terminal import asking, plain, show_rows

own: Final = partial(calling, of=OWN_DATABASE)
SCHEDULE: Final = argument("schedule")
TICKS: Final = option(
    "--count", "ticks", default=5, type=click.IntRange(1, 1000), help="Number of times."
)


def timing(schedule: Schedule) -> str:
    """Return the timing of a schedule as text."""
    if schedule.every is None:
        return schedule.cron or ""
    return f"every {schedule.every}" + (" after its job" if schedule.from_completion else "")


def in_utc(moment: datetime) -> str:
    """Return a time to the second, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def show_slots(slots: list[Slot], zone: str, *, is_json: bool) -> None:
    """Print times in local time and UTC."""
    show_rows(
        slots,
        (zone, "UTC"),
        lambda slot: (f"{slot.local_time:%a %Y-%m-%d %H:%M:%S}", in_utc(slot.slot_at)),
        is_json=is_json,
    )


def standing(client: Client, *, schedule: str) -> list[str]:
    """Return the members of a schedule and its status."""
    found = client.get_schedule(schedule)
    status = client.schedule_status(found.schedule_id)
    shown = {name: value for name, value in asdict(found).items() if value not in (None, {})}
    for name in ("health", "last_execution", "active_executions", "stats"):
        shown[name] = status[name]
    return [f"{name:<20} {plain(value)}" for name, value in shown.items()]


def backfilled(client: Client, *, until: datetime | None, **given: Any) -> Any:  # noqa: ANN401
    """Backfill a schedule, by default until now."""
    return client.backfill_schedule(until=until or datetime.now(UTC), **given)


@click.command("preview", params=[SCHEDULE, TICKS, AS_JSON, OWN_DATABASE])
def preview_one(schedule: str, ticks: int, is_json: bool, database_url: str) -> None:
    """Show the next times of SCHEDULE."""
    with asking(database_url) as client:
        slots = client.preview_schedule(schedule, ticks)
        zone = client.get_schedule(schedule).time_zone
    show_slots(slots, zone, is_json=is_json)


# fmt: off
schedules = listing_group(
    "List current schedules, newest first, or manage one.",
    calling("schedules", limited("list_schedules", "max_schedules", "schedules"),
            "List current schedules.",
            option("--status", type=click.Choice(get_args(ScheduleStatus)),
                   help="Only schedules with this status."),
            option("--kind", help="Only schedules of this kind."),
            option("--queue", help="Only schedules of this queue."),
            limit(50, name="max_schedules"),
            rows=("name", "version", "status", "kind", "fires", "zone", "next_run_at"),
            cells=lambda s: (s.name, s.version, s.status, s.kind, timing(s), s.time_zone,
                             s.next_run_at or "")),
    own("create", "create_schedule",
        "Create the schedule NAME for jobs of KIND with PAYLOAD (JSON). Prints its id.\n\n"
        "Repeating it with the same options changes nothing; other options create a new version.",
        argument("name"), argument("kind"), PAYLOAD,
        option("--cron", help="Cron expression of 5 to 7 fields, or @daily etc."),
        option("--every", help="Interval instead of --cron, such as '15 min'."),
        option("--zone", "time_zone", help="IANA time zone of --cron.  [default: UTC]"),
        option("--from-completion", is_flag=True,
               help="Count --every from the end of the last job."),
        *options_of(ScheduleOptions, but=("from_completion", "payload", "time_zone")),
        lines=lambda schedule_id: [schedule_id]),
    own("show", standing, "Show SCHEDULE (name or id) and its status.", SCHEDULE,
        lines=list),
    own("versions", "schedule_versions", "List the versions of SCHEDULE, newest first.", SCHEDULE,
        rows=("version", "schedule_id", "status", "fires", "zone", "payload", "created_at"),
        cells=lambda s: (s.version, s.schedule_id, s.status, timing(s), s.time_zone,
                         json.dumps(s.payload), s.created_at)),
    preview_one,
    own("pause", "pause_schedule", "Pause SCHEDULE.", SCHEDULE, reason("stored with the schedule")),
    own("resume", "resume_schedule", "Resume SCHEDULE from its next slot.", SCHEDULE),
    own("run", "run_schedule", "Run SCHEDULE once now. Prints the id of the job.", SCHEDULE,
        lines=lambda job_id: [job_id]),
    own("backfill", backfilled, "Create the jobs of past slots of SCHEDULE that did not fire.",
        SCHEDULE,
        moment("--since", "Start of the span, in UTC.", required=True),
        moment("--until", "End of the span, in UTC.  [default: now]"),
        limit(1000, 10_000, "max_slots", of="slots"),
        option("--dry-run", is_flag=True, help="Only print the slots."),
        reason("stored in the audit log"),
        rows=("slot", "job_id"), cells=lambda s: (in_utc(s.slot_at), s.job_id or "-")),
    own("retire", "retire_schedule", "Retire SCHEDULE. Existing jobs continue.", SCHEDULE),
)
# fmt: on


@click.command(
    params=[
        argument("cron"),
        option("--zone", default="UTC", help="IANA time zone."),
        TICKS,
        moment("--after", "Only times after this one, in UTC."),
        option(
            "--gap",
            default="auto",
            type=click.Choice(get_args(Gap)),
            help="What to do with times that do not exist when clocks change.",
        ),
        option(
            "--fold",
            default="auto",
            type=click.Choice(get_args(Fold)),
            help="What to do with times that occur twice when clocks change.",
        ),
        AS_JSON,
        DATABASE,
    ]
)
def preview(cron: str, zone: str, is_json: bool, database_url: str, **options: Any) -> None:  # noqa: ANN401
    """Show the next times of the expression CRON, in local time and UTC."""
    with asking(database_url) as client:
        slots = client.preview_cron(cron, zone, **options)
    show_slots(slots, zone, is_json=is_json)
