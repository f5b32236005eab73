"""`jobq run`: run all of jobq on one machine, with example jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from jobq_cli.parameters import database, option
from jobq_cli.terminal import needing, plainly, say


@click.command(
    params=[
        option("--exit", "is_brief", is_flag=True, help="Exit after the examples."),
        option("--port", default=8080, type=click.IntRange(1, 65535), help="Port of the API."),
        database(required=False),
    ]
)
def run(is_brief: bool, port: int, database_url: str | None) -> None:
    """Start everything, run the example jobs, and serve until interrupted.

    Without a database it starts one of its own.
    """
    with needing("http,examples,embedded"):
        from jobq_cli.local import RunError, run  # noqa: PLC0415 - extras
    try:
        with plainly():
            sys.exit(run(database_url, folder=Path(".jobq"), port=port, is_brief=is_brief, say=say))
    except RunError as error:
        raise click.ClickException(str(error)) from error
