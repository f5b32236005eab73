"""`jobq events`: jobs that have ended."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

import click

from jobq.client import Client
from jobq.errors import translate
from jobq_cli.parameters import AS_JSON, DATABASE, moment, option
from jobq_cli.terminal import plainly, say, show_json

LOOK_BACK = timedelta(hours=1)


@click.command(
    params=[
        option("--queue", "queues", multiple=True, help="Only this queue. Repeatable."),
        option("--kind", "kinds", multiple=True, help="Only this kind. Repeatable."),
        option("--after", help="Start after this cursor."),
        moment(
            "--since", "Start at this time, in UTC.  [default: now with --follow, else an hour ago]"
        ),
        option("--follow", is_flag=True, help="Continue: print jobs as they end."),
        option(
            "--listen-database",
            help="Direct database URL for LISTEN, bypassing a pooler.  [default: --database]",
        ),
        AS_JSON,
        DATABASE,
    ]
)
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
    """Print jobs that have ended, each once, in the order in which they ended."""
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
                show_json([event])
                continue
            moment = f"{event.finished_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
            code = f" {event.error_code}" if event.error_code else ""
            say(f"{moment}  {event.job_id}  {event.state:<9}  {event.queue}  {event.kind}{code}")
