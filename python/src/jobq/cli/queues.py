"""Queues on the command line: how they stand, pause and resume."""

from __future__ import annotations

from dataclasses import asdict

import click

from jobq.cli.terminal import as_json, asking, database, plain, show_json, show_table

__all__ = ["pause", "queues", "resume"]


@click.command()
@as_json
@database
def queues(is_json: bool, database_url: str) -> None:
    """Show how each queue stands."""
    with asking(database_url) as client:
        stats = [asdict(queue) for queue in client.queue_stats()]
    if is_json:
        show_json(stats)
    else:
        names = list(stats[0]) if stats else ["queue"]
        show_table(names, [[plain(queue[name]) for name in names] for queue in stats])


@click.command()
@click.argument("queue")
@click.option("--reason", help="Why; shown by explain.")
@database
def pause(queue: str, reason: str | None, database_url: str) -> None:
    """Stop claims from QUEUE; running jobs go on."""
    with asking(database_url) as client:
        client.pause(queue, reason)


@click.command()
@click.argument("queue")
@database
def resume(queue: str, database_url: str) -> None:
    """Allow claims from QUEUE again."""
    with asking(database_url) as client:
        client.resume(queue)
