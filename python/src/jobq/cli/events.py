"""What has ended, on the command line: `jobq events`."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from jobq.cli.terminal import as_json, database, in_utc, plainly, say
from jobq.client import Client
from jobq.errors import translate

__all__ = ["events"]

LOOK_BACK = timedelta(hours=1)


@click.command()
@click.option("--queue", "queues", multiple=True, help="Only this queue; may be given again.")
@click.option("--kind", "kinds", multiple=True, help="Only this kind; may be given again.")
@click.option("--after", help="The cursor of an event: begin after it.")
@click.option(
    "--since",
    type=click.DateTime(),
    callback=in_utc,
    help="Ended then or later, in UTC.  [default: now with --follow, else an hour ago]",
)
@click.option("--follow", is_flag=True, help="Go on: print jobs as they end.")
@click.option(
    "--listen-database",
    help="Where to listen, past a pooler.  [default: --database]",
)
@as_json
@database
def events(
    *,
    queues: tuple[str, ...],
    kinds: tuple[str, ...],
    after: str | None,
    since: datetime | None,
    follow: bool,
    listen_database: str | None,
    is_json: bool,
    database_url: str,
) -> None:
    """Print the jobs that have ended, each once and in the order of their ends."""
    if after is None and since is None and not follow:
        since = datetime.now(UTC) - LOOK_BACK
    with (
        plainly(),
        translate(),
        Client(
            database_url,
            listen_database=listen_database or database_url,
        ) as client,
        closing(
            client.listen_events(
                after, queues=queues or None, kinds=kinds or None, since=since, follow=follow
            )
        ) as found,
    ):
        for event in found:
            if is_json:
                say(json.dumps(asdict(event), default=str, ensure_ascii=False))
                continue
            moment = f"{event.finished_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
            code = f" {event.error_code}" if event.error_code else ""
            say(f"{moment}  {event.job_id}  {event.state:<9}  {event.queue}  {event.kind}{code}")
