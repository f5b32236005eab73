"""`jobq schedules` and `jobq preview`."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

import click

from jobq.calls.options import Fold, Gap, ScheduleOptions
from jobq.calls.schedules import ScheduleStatus
from jobq_cli.options import options_of
from jobq_cli.terminal import (
    as_json,
    database_option,
    limit_option,
    listing,
    moment_option,
    parsed,
    plain,
    say,
    show_rows,
    with_client,
    with_own_client,
)

if TYPE_CHECKING:
    from jobq.calls.schedules import Schedule, Slot
    from jobq.client import Client

__all__ = ["preview", "schedules"]


@click.group(invoke_without_command=True)
@click.option(
    "--status", type=click.Choice(get_args(ScheduleStatus)), help="Only schedules with this status."
)
@click.option("--kind", help="Only schedules of this kind.")
@click.option("--queue", help="Only schedules of this queue.")
@limit_option(50)
@as_json
@database_option(is_required=False)
@click.pass_context
def schedules(
    context: click.Context,
    *,
    status: Any,  # noqa: ANN401 - click has checked it
    kind: str | None,
    queue: str | None,
    limit: int,
    is_json: bool,
    database_url: str | None,
) -> None:
    """List current schedules, newest first, or manage one."""
    context.obj = database_url
    if context.invoked_subcommand:
        return
    with listing(database_url) as client:
        found = client.list_schedules(status, kind, queue, max_schedules=limit)
    show_rows(
        found,
        ("name", "version", "status", "kind", "fires", "zone", "next_run_at"),
        lambda s: (
            s.name, s.version, s.status, s.kind, timing(s), s.time_zone, s.next_run_at or "",
        ),
        is_json=is_json,
    )  # fmt: skip


def timing(schedule: Schedule) -> str:
    """Return the timing of a schedule as text."""
    if schedule.every is None:
        return schedule.cron or ""
    return f"every {schedule.every}" + (" after its job" if schedule.from_completion else "")


@schedules.command()
@click.argument("name")
@click.argument("kind")
@click.argument("payload", default="{}", callback=parsed)
@click.option("--cron", help="Cron expression of 5 to 7 fields, or @daily etc.")
@click.option("--every", help="Interval instead of --cron, such as '15 min'.")
@click.option("--zone", "time_zone", help="IANA time zone of --cron.  [default: UTC]")
@click.option("--from-completion", is_flag=True, help="Count --every from the end of the last job.")
@options_of(ScheduleOptions, but=("from_completion", "payload", "time_zone"))
@with_own_client
def create(client: Client, name: str, kind: str, **options: Any) -> None:  # noqa: ANN401 - those of create_schedule() that have these names
    """Create the schedule NAME for jobs of KIND with PAYLOAD (JSON). Prints its id.

    Repeating it with the same options changes nothing; other options create a new version.
    """
    say(client.create_schedule(name, kind, **options))


@schedules.command()
@click.argument("schedule")
@with_own_client
def show(client: Client, schedule: str) -> None:
    """Show SCHEDULE (name or id) and its status."""
    found = client.get_schedule(schedule)
    status = client.schedule_status(found.schedule_id)
    for name, value in asdict(found).items():
        if value not in (None, {}):
            say(f"{name:<20} {plain(value)}")
    for name in ("health", "last_execution", "active_executions", "stats"):
        say(f"{name:<20} {plain(status[name])}")


@schedules.command()
@click.argument("schedule")
@as_json
@with_own_client
def versions(client: Client, schedule: str, is_json: bool) -> None:
    """List the versions of SCHEDULE, newest first."""
    show_rows(
        client.schedule_versions(schedule),
        ("version", "schedule_id", "status", "fires", "zone", "payload", "created_at"),
        lambda s: (
            s.version, s.schedule_id, s.status, timing(s), s.time_zone, json.dumps(s.payload),
            s.created_at,
        ),
        is_json=is_json,
    )  # fmt: skip


@schedules.command("preview")
@click.argument("schedule")
@click.option("--count", default=5, type=click.IntRange(1, 1000), help="Number of times.")
@as_json
@with_own_client
def preview_(client: Client, schedule: str, count: int, is_json: bool) -> None:
    """Show the next times of SCHEDULE."""
    slots = client.preview_schedule(schedule, count)
    zone = client.get_schedule(schedule).time_zone
    show_slots(slots, zone, is_json=is_json)


@schedules.command()
@click.argument("schedule")
@click.option("--reason", help="Reason, stored with the schedule.")
@with_own_client
def pause(client: Client, schedule: str, reason: str | None) -> None:
    """Pause SCHEDULE."""
    client.pause_schedule(schedule, reason)


@schedules.command("run")
@click.argument("schedule")
@with_own_client
def run_now(client: Client, schedule: str) -> None:
    """Run SCHEDULE once now. Prints the id of the job."""
    say(client.run_schedule(schedule))


@schedules.command()
@click.argument("schedule")
@moment_option("--since", "Start of the span, in UTC.", required=True)
@moment_option("--until", "End of the span, in UTC.  [default: now]")
@limit_option(1000, 10_000, of="slots")
@click.option("--dry-run", is_flag=True, help="Only print the slots.")
@click.option("--reason", help="Reason, stored in the audit log.")
@as_json
@with_own_client
def backfill(
    client: Client,
    *,
    schedule: str,
    since: datetime,
    until: datetime | None,
    limit: int,
    dry_run: bool,
    reason: str | None,
    is_json: bool,
) -> None:
    """Create the jobs of past slots of SCHEDULE that did not fire."""
    made = client.backfill_schedule(
        schedule,
        since,
        until or datetime.now(UTC),
        max_slots=limit,
        dry_run=dry_run,
        reason=reason,
    )
    show_rows(
        made,
        ("slot", "job_id"),
        lambda s: (f"{s.slot_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}", s.job_id or "-"),
        is_json=is_json,
    )


@schedules.command()
@click.argument("schedule")
@with_own_client
def resume(client: Client, schedule: str) -> None:
    """Resume SCHEDULE from its next slot."""
    client.resume_schedule(schedule)


@schedules.command()
@click.argument("schedule")
@with_own_client
def retire(client: Client, schedule: str) -> None:
    """Retire SCHEDULE. Existing jobs continue."""
    client.retire_schedule(schedule)


@click.command()
@click.argument("cron")
@click.option("--zone", default="UTC", help="IANA time zone.")
@click.option("--count", default=5, type=click.IntRange(1, 1000), help="Number of times.")
@click.option(
    "--after",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M%z"]),
    help="Only times after this one.",
)
@click.option("--gap", default="auto", type=click.Choice(get_args(Gap)))
@click.option("--fold", default="auto", type=click.Choice(get_args(Fold)))
@as_json
@with_client
def preview(
    client: Client,
    *,
    cron: str,
    zone: str,
    count: int,
    is_json: bool,
    **options: Any,  # noqa: ANN401 - the parameters of preview_cron() that have these names
) -> None:
    """Show the next times of the expression CRON, in local time and UTC."""
    slots = client.preview_cron(cron, zone, count, **options)
    show_slots(slots, zone, is_json=is_json)


def show_slots(slots: list[Slot], zone: str, *, is_json: bool) -> None:
    """Print times in local time and UTC."""
    show_rows(
        slots,
        (zone, "UTC"),
        lambda slot: (
            f"{slot.local_time:%a %Y-%m-%d %H:%M:%S}",
            f"{slot.slot_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
        ),
        is_json=is_json,
    )
