"""`jobq events`: jobs that have ended."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from jobq.client import Client
from jobq.errors import translate
from jobq_cli.parameters import AS_JSON, DATABASE, Url, moment, option
from jobq_cli.terminal import plainly, say, show_json
from jobq_operations.visible import in_line

LOOK_BACK = timedelta(hours=1)


@click.command(
    params=[
        option("--queue", "queues", multiple=True, help="Only this queue. Repeatable."),
        option("--kind", "kinds", multiple=True, help="Only this kind. Repeatable."),
        option("--after", help="Start after this cursor."),
        moment("--since",
               "Start at this time, in UTC.  [default: now with --follow, else an hour ago]"),
        option("--follow", is_flag=True, help="Continue: print jobs as they end."),
        option("--listen-database", type=Url(),
               help="Direct database URL for LISTEN, bypassing a pooler."
               "  [default: --database]"),
        AS_JSON,
        DATABASE,
    ]
)  # fmt: skip
def events(
    *,
    listen_database: str | None,
    is_json: bool,
    database_url: str,
    **chosen: Any,  # noqa: ANN401
) -> None:
    """Print jobs that have ended, each once, in the order in which they ended."""
    if chosen["after"] is None and chosen["since"] is None and not chosen["follow"]:
        chosen["since"] = datetime.now(UTC) - LOOK_BACK
    chosen |= {name: chosen[name] or None for name in ("queues", "kinds")}
    with (
        plainly(),
        translate(),
        Client(database_url, listen_database=listen_database or database_url) as client,
        closing(client.listen_events(**chosen)) as found,
    ):
        for event in found:
            if is_json:
                show_json([event])
                continue
            moment = f"{event.finished_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
            code = f" {event.error_code}" if event.error_code else ""
            where = f"{event.queue}  {event.kind}{code}"
            say(in_line(f"{moment}  {event.job_id}  {event.state:<9}  {where}"))
