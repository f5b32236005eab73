"""`jobq top`: live view of queues, workers and running jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from jobq.client import Client
from jobq_cli.parameters import DATABASE, Seconds, option
from jobq_cli.queues import sickest_first
from jobq_cli.terminal import asking, needing, plain
from jobq_operations.visible import in_line

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

# Columns of short texts, which are not folded.
BRIEF: Final = frozenset({"oldest", "ended/s", "seen", "attempt", "for"})


@click.command(
    params=[
        option("--interval", default=1.0, type=Seconds(0.1, 3600), help="Refresh interval."),
        option("--once", is_flag=True, help="Print once and exit."),
        option("--limit", default=20, type=click.IntRange(1, 1000), help="Maximum running jobs."),
        DATABASE,
    ]
)
def top(*, interval: float, once: bool, limit: int, database_url: str) -> None:
    """Show queues, rates, workers and running jobs live. Needs the extra `top`.

    Without a terminal, each view is printed after the previous one.
    """
    with needing("top"):
        from rich.console import Console  # noqa: PLC0415 - an extra
        from rich.live import Live  # noqa: PLC0415

    with asking(database_url) as client:
        console = Console()
        if console.is_interactive and not once:
            with Live(frame(client, limit), auto_refresh=False, screen=True) as live:
                while True:
                    time.sleep(interval)
                    live.update(frame(client, limit), refresh=True)
        console.print(frame(client, limit))
        while not once:
            time.sleep(interval)
            console.print(frame(client, limit))


def frame(client: Client, limit: int) -> Group:
    """Return the current view."""
    from rich.console import Group  # noqa: PLC0415

    now = datetime.now(UTC)
    stats = sickest_first(client.queue_stats())
    queues = table(
        f"queues at {now:%H:%M:%S} UTC",
        ("queue", "waiting", "later", "running", "retrying", "dead", "oldest", "ended/s"),
        [
            (
                f"{queue.queue} (paused)" if queue.is_paused else queue.queue,
                queue.queued,
                queue.scheduled,
                queue.running,
                queue.retrying,
                queue.dead,
                queue.oldest_runnable and brief(queue.oldest_runnable),
                f"{queue.finished_last_minute / 60:.1f}",
            )
            for queue in stats
        ],
    )
    workers = table(
        "workers",
        ("worker", "queues", "jobs", "seen", "does not know"),
        [
            (
                w.worker,
                w.queues,
                w.jobs,
                f"{(now - w.seen_at).total_seconds():.0f} s ago",
                w.except_kinds,
            )
            for w in client.list_workers()
            if w.is_live
        ],
    )
    running = table(
        "running",
        ("job", "kind", "queue", "attempt", "worker", "for", "progress"),
        [
            (
                job.job_id,
                job.kind,
                job.queue,
                f"{job.attempts}/{job.max_attempts}",
                job.worker,
                job.claimed_at and f"{(now - job.claimed_at).total_seconds():.1f} s",
                job.progress,
            )
            for job in client.list_jobs("running", max_jobs=limit)
        ],
    )
    return Group(queues, workers, running)


def brief(age: timedelta) -> str:
    """Return an age in days, or below one day in hours, minutes and seconds."""
    return f"{age.days} d" if age.days else str(age).partition(".")[0]


def table(title: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Return a table. Numbers are right-aligned; only names are folded."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    made = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), expand=True)
    for place, name in enumerate(names):
        is_number = any(isinstance(row[place], int) for row in rows)
        made.add_column(
            name,
            justify="right" if is_number else "left",
            no_wrap=is_number or name in BRIEF,
            overflow="fold",
            min_width=None if place else 10,
        )
    for row in rows:
        made.add_row(*(Text(in_line(plain(value))) for value in row))
    return made
