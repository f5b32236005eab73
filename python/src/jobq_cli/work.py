"""`jobq work`: run jobs that are database functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jobq_cli.terminal import as_json, show_rows, with_client

if TYPE_CHECKING:
    from jobq.client import Client

__all__ = ["work"]


@click.command()
@click.option("--queue", "queues", multiple=True, default=("default",), show_default=True)
@click.option("--limit", default=100, type=click.IntRange(1, 10_000), help="Jobs per call.")
@click.option("--until-empty", is_flag=True, help="Continue until no job is due.")
@as_json
@with_client
def work(
    client: Client, *, queues: tuple[str, ...], limit: int, until_empty: bool, is_json: bool
) -> None:
    """Run due jobs whose kinds are database functions, with the rights of the login."""
    while True:
        ended = client.work(queues, limit)
        show_rows(ended, ("job_id", "kind", "state"), is_json=is_json)
        if not (ended and until_empty):
            break
