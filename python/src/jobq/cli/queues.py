"""Queues and workers on the command line: how they stand, pause and resume."""

from __future__ import annotations

from dataclasses import asdict

import click

from jobq.cli.terminal import as_json, asking, database, show_rows
from jobq.errors import NotFound

__all__ = ["pause", "queues", "resume", "workers"]


WORKER = ("worker", "queues", "is_live", "seen_at", "jobs", "release", "except_kinds")


@click.command()
@click.option("--declared", "is_declared", is_flag=True, help="What is declared of them instead.")
@as_json
@database
def queues(is_declared: bool, is_json: bool, database_url: str) -> None:
    """Show how each queue stands."""
    with asking(database_url) as client:
        found = client.list_queues() if is_declared else client.queue_stats()
    rows = [asdict(queue) for queue in found]
    names = list(rows[0]) if rows else ["queue"]
    if is_declared and rows:  # there are many settings, and a queue says few
        names = [name for name in names if any(row[name] is not None for row in rows)]
    show_rows(rows, names, is_json=is_json)


@click.command()
@as_json
@database
def workers(is_json: bool, database_url: str) -> None:
    """List workers, and what they work on."""
    with asking(database_url) as client:
        show_rows([asdict(worker) for worker in client.list_workers()], WORKER, is_json=is_json)


@click.command()
@click.argument("queue")
@click.option("--reason", help="Why; shown by explain.")
@click.option("--new", "is_new", is_flag=True, help="Also one that is not declared and has no job.")
@database
def pause(queue: str, reason: str | None, is_new: bool, database_url: str) -> None:
    """Stop claims from QUEUE; running jobs go on."""
    with asking(database_url) as client:
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
@database
def resume(queue: str, database_url: str) -> None:
    """Allow claims from QUEUE again."""
    with asking(database_url) as client:
        client.resume(queue)
