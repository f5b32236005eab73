"""Run jobs that are functions of the database."""

from __future__ import annotations

from dataclasses import asdict

import click

from jobq.cli.terminal import as_json, asking, database, show_rows

__all__ = ["work"]


@click.command()
@click.option("--queue", "queues", multiple=True, default=("default",), show_default=True)
@click.option("--limit", default=100, type=click.IntRange(1, 10_000), help="So many at a time.")
@click.option("--until-empty", is_flag=True, help="Go on until none is due.")
@as_json
@database
def work(
    *, queues: tuple[str, ...], limit: int, until_empty: bool, is_json: bool, database_url: str
) -> None:
    """Run jobs whose kinds are functions of the database, with the rights of the log-in."""
    with asking(database_url) as client:
        ended = client.work(queues, limit)
        show_rows([asdict(job) for job in ended], ("job_id", "kind", "state"), is_json=is_json)
        while until_empty and ended:
            ended = client.work(queues, limit)
            rows = [asdict(job) for job in ended]
            show_rows(rows, ("job_id", "kind", "state"), is_json=is_json)
