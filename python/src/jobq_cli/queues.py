"""Commands for queues and workers."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from jobq.errors import NotFound
from jobq_cli.terminal import as_json, show_rows, with_client

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobq.client import Client
    from jobq.models import QueueStats

__all__ = ["pause", "queues", "resume", "sickest_first", "workers"]


WORKER = ("worker", "queues", "is_live", "seen_at", "jobs", "release", "except_kinds")


@click.command()
@click.option("--declared", "is_declared", is_flag=True, help="Show the declarations instead.")
@as_json
@with_client
def queues(client: Client, is_declared: bool, is_json: bool) -> None:
    """Show statistics of each queue."""
    found = client.list_queues() if is_declared else sickest_first(client.queue_stats())
    rows = [asdict(queue) for queue in found]
    names = list(rows[0]) if rows else ["queue"]
    if is_declared and rows:  # there are many settings, and a queue says few
        names = [name for name in names if any(row[name] is not None for row in rows)]
    show_rows(rows, names, is_json=is_json)


def sickest_first(found: Iterable[QueueStats]) -> list[QueueStats]:
    """Sort queues by the longest wait, then by the number of dead jobs."""
    waited = timedelta()
    return sorted(
        found, key=lambda q: (-(q.oldest_runnable or waited), -q.dead, -q.queued, q.queue)
    )


@click.command()
@as_json
@with_client
def workers(client: Client, is_json: bool) -> None:
    """List workers and their jobs."""
    show_rows(client.list_workers(), WORKER, is_json=is_json)


@click.command()
@click.argument("queue")
@click.option("--reason", help="Reason, shown by explain.")
@click.option(
    "--new", "is_new", is_flag=True, help="Also if the queue is neither declared nor used."
)
@with_client
def pause(client: Client, queue: str, reason: str | None, is_new: bool) -> None:
    """Pause QUEUE. Running jobs continue."""
    known = {"default", *(stats.queue for stats in client.queue_stats())}
    if not is_new and queue not in known:
        raise NotFound(
            "queue not found",
            code="QUEUE_NOT_FOUND",
            detail=f"queue {queue}",
            hint="jobq queues lists those that there are; --new pauses any other",
        )
    client.pause(queue, reason)


@click.command()
@click.argument("queue")
@with_client
def resume(client: Client, queue: str) -> None:
    """Resume QUEUE."""
    client.resume(queue)
