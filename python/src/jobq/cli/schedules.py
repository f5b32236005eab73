"""Schedules on the command line: `jobq schedules` and `jobq preview`."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

import click

from jobq.cli.terminal import (
    as_json,
    asking,
    database,
    database_option,
    in_utc,
    object_parsed,
    parsed,
    plain,
    say,
    show_json,
    show_table,
)
from jobq.schedules import ScheduleStatus

if TYPE_CHECKING:
    from jobq.schedules import Schedule, Slot

__all__ = ["preview", "schedules"]


# Of a command under `jobq schedules`: its own, or that of the group.
own_database = database_option(default=lambda: click.get_current_context().obj)


@click.group(invoke_without_command=True)
@click.option("--status", type=click.Choice(get_args(ScheduleStatus)), help="Only with it.")
@click.option("--kind", help="Only schedules of this kind.")
@click.option("--queue", help="Only schedules of this queue.")
@click.option("--limit", default=50, type=click.IntRange(1, 1000), help="At most so many.")
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
    """List the schedules in force, newest first, or look after one of them."""
    context.obj = database_url
    if context.invoked_subcommand:
        return
    if database_url is None:
        raise click.UsageError("Missing option '--database' (env var: 'DATABASE_URL').")
    with asking(database_url) as client:
        found = client.list_schedules(status, kind, queue, max_schedules=limit)
    if is_json:
        show_json(asdict(schedule) for schedule in found)
        return
    show_table(
        ("name", "version", "status", "kind", "fires", "zone", "next_run_at"),
        [
            (s.name, s.version, s.status, s.kind, timing(s), s.time_zone, s.next_run_at or "")
            for s in found
        ],
    )


def timing(schedule: Schedule) -> str:
    """Return when a schedule fires, in a few words."""
    if schedule.every is None:
        return schedule.cron or ""
    return f"every {schedule.every}" + (" after its job" if schedule.from_completion else "")


@schedules.command()
@click.argument("name")
@click.argument("kind")
@click.argument("payload", default="{}", callback=parsed)
@click.option("--cron", help="When its jobs run: 5 to 7 fields, or @daily and the like.")
@click.option("--every", help="How often they run instead, such as '15 min'.")
@click.option("--zone", "time_zone", help="The IANA name of cron's time zone.  [default: UTC]")
@click.option("--from-completion", is_flag=True, help="Count --every from the end of the last job.")
@click.option("--gap", type=click.Choice(("auto", "run", "skip")))
@click.option("--fold", type=click.Choice(("auto", "once", "both")))
@click.option("--missed", type=click.Choice(("all", "latest", "none")), help="Slots missed.")
@click.option("--catch-up", help="Slots missed for longer do not fire, such as '2 h'.")
@click.option("--jitter", help="Jobs start at random up to so much later, such as '30 s'.")
@click.option("--starts-at", type=click.DateTime(), callback=in_utc, help="No slot before, in UTC.")
@click.option("--ends-at", type=click.DateTime(), callback=in_utc, help="None from then, in UTC.")
@click.option("--queue", help="Of the jobs, instead of the kind's own queue.")
@click.option("--priority", type=int, help="Of the jobs.")
@click.option("--timeout", help="Of each attempt, such as '30 s'.")
@click.option("--max-attempts", type=int, help="How many attempts of a job may fail.")
@click.option("--dedup", type=click.Choice(("enqueue", "skip", "replace")), help="While one lives.")
@click.option("--dedup-key", help="Of the jobs.  [default: NAME]")
@click.option("--concurrency-key", help="For whom the jobs run.")
@click.option("--metadata", callback=object_parsed, help="A JSON object that handlers see.")
@click.option("--graph", callback=object_parsed, help="Jobs to run after each: JSON, or -.")
@own_database
def create(name: str, kind: str, database_url: str, **options: Any) -> None:  # noqa: ANN401 - those of create_schedule() that have these names
    """Declare a schedule NAME that makes jobs of KIND with PAYLOAD, a JSON text; print its id.

    Once more with the same options it changes nothing, with others it is a new version.
    """
    with asking(database_url) as client:
        say(client.create_schedule(name, kind, **options))


@schedules.command()
@click.argument("schedule")
@own_database
def show(schedule: str, database_url: str) -> None:
    """Show all that is known of SCHEDULE, a name or an id, and how it does."""
    with asking(database_url) as client:
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
@own_database
def versions(schedule: str, is_json: bool, database_url: str) -> None:
    """List the versions of SCHEDULE, newest first."""
    with asking(database_url) as client:
        found = client.schedule_versions(schedule)
    if is_json:
        show_json(asdict(schedule) for schedule in found)
        return
    show_table(
        ("version", "schedule_id", "status", "fires", "zone", "payload", "created_at"),
        [
            (
                s.version,
                s.schedule_id,
                s.status,
                timing(s),
                s.time_zone,
                json.dumps(s.payload),
                s.created_at,
            )
            for s in found
        ],
    )


@schedules.command("preview")
@click.argument("schedule")
@click.option("--count", default=5, type=click.IntRange(1, 1000), help="How many times.")
@as_json
@own_database
def preview_(schedule: str, count: int, is_json: bool, database_url: str) -> None:
    """Tell when SCHEDULE will fire next."""
    with asking(database_url) as client:
        slots = client.preview_schedule(schedule, count)
        zone = client.get_schedule(schedule).time_zone
    show_slots(slots, zone, is_json=is_json)


@schedules.command()
@click.argument("schedule")
@click.option("--reason", help="Why; kept with the schedule.")
@own_database
def pause(schedule: str, reason: str | None, database_url: str) -> None:
    """Let SCHEDULE fire no more until it is resumed."""
    with asking(database_url) as client:
        client.pause_schedule(schedule, reason)


@schedules.command("run")
@click.argument("schedule")
@own_database
def run_now(schedule: str, database_url: str) -> None:
    """Run what SCHEDULE runs once more, now, and print the id of the job."""
    with asking(database_url) as client:
        say(client.run_schedule(schedule))


@schedules.command()
@click.argument("schedule")
@click.option(
    "--since", type=click.DateTime(), callback=in_utc, required=True, help="From then on, in UTC."
)
@click.option(
    "--until", type=click.DateTime(), callback=in_utc, help="Before then, in UTC.  [default: now]"
)
@click.option("--limit", default=1000, type=click.IntRange(1, 10_000), help="Refuse if more.")
@click.option("--dry-run", is_flag=True, help="Only print what would be made.")
@click.option("--reason", help="Why; kept in the audit.")
@as_json
@own_database
def backfill(
    *,
    schedule: str,
    since: datetime,
    until: datetime | None,
    limit: int,
    dry_run: bool,
    reason: str | None,
    is_json: bool,
    database_url: str,
) -> None:
    """Make the jobs of SCHEDULE's slots in a span of the past that did not fire."""
    with asking(database_url) as client:
        made = client.backfill_schedule(
            schedule,
            since,
            until or datetime.now(UTC),
            max_slots=limit,
            dry_run=dry_run,
            reason=reason,
        )
    if is_json:
        show_json(asdict(slot) for slot in made)
        return
    show_table(
        ("slot", "job_id"),
        [(f"{s.slot_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}", s.job_id or "-") for s in made],
    )


@schedules.command()
@click.argument("schedule")
@own_database
def resume(schedule: str, database_url: str) -> None:
    """Let a paused SCHEDULE fire again, from its next slot on."""
    with asking(database_url) as client:
        client.resume_schedule(schedule)


@schedules.command()
@click.argument("schedule")
@own_database
def retire(schedule: str, database_url: str) -> None:
    """End SCHEDULE; jobs that it has made run to their end."""
    with asking(database_url) as client:
        client.retire_schedule(schedule)


@click.command()
@click.argument("cron")
@click.option("--zone", default="UTC", help="The IANA name of a time zone.")
@click.option("--count", default=5, type=click.IntRange(1, 1000), help="How many times.")
@click.option(
    "--after", type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M%z"]), help="Later than."
)
@click.option("--gap", default="auto", type=click.Choice(("auto", "run", "skip")))
@click.option("--fold", default="auto", type=click.Choice(("auto", "once", "both")))
@as_json
@database
def preview(
    *,
    cron: str,
    zone: str,
    count: int,
    is_json: bool,
    database_url: str,
    **options: Any,  # noqa: ANN401 - the parameters of preview_cron() that have these names
) -> None:
    """Tell when the expression CRON fires next, by the clocks of a zone and in UTC."""
    with asking(database_url) as client:
        slots = client.preview_cron(cron, zone, count, **options)
    show_slots(slots, zone, is_json=is_json)


def show_slots(slots: list[Slot], zone: str, *, is_json: bool) -> None:
    """Print times as the clocks of a zone show them, and in UTC."""
    if is_json:
        show_json(asdict(slot) for slot in slots)
        return
    show_table(
        (zone, "UTC"),
        [
            (
                f"{slot.local_time:%a %Y-%m-%d %H:%M:%S}",
                f"{slot.slot_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            )
            for slot in slots
        ],
    )
