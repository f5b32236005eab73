"""`jobq migration`: print the schema as a migration of another tool."""

from __future__ import annotations

from typing import Any

import click

from jobq.version import __version__
from jobq_cli.parameters import option
from jobq_cli.terminal import plainly
from jobq_operations.migration import FORMATS
from jobq_operations.migration import migration as made


@click.command(
    params=[
        option("--from", "since", help="The installed release, such as 1.0.0; none by default."),
        option(
            "--to",
            "until",
            default=__version__,
            show_default=True,
            help="The target release.",
        ),
        option(
            "--format", "form", default="sql", type=click.Choice(list(FORMATS)), help="The tool."
        ),
    ]
)
def migration(since: str | None, until: str, form: Any) -> None:  # noqa: ANN401 - a Format
    """Print a migration that installs or upgrades the schema in your own tool.

    Everything runs in the tool's transaction, as a user who may create roles. Use either these
    migrations or `jobq deploy` for a database. Both record the release for `jobq doctor`.
    """
    with plainly():
        click.echo(made(since, until, form), nl=False)
