"""`jobq deploy`, `jobq sql`, `jobq migration`: install the schema, upgrade, check, print it."""

from __future__ import annotations

from typing import Any

import click

from jobq.version import __version__
from jobq_cli.parameters import DATABASE, option
from jobq_cli.terminal import plainly, say
from jobq_operations import deploy as sqitch
from jobq_operations.migration import FORMATS
from jobq_operations.migration import migration as made


@click.command(
    params=[
        option("--verify", "is_verify", is_flag=True, help="Only check the installation."),
        option("--adopt", "is_adopt", is_flag=True,
               help="Take over an installation made with jobq.sql."),
        option("--back-to", "version", metavar="VERSION",
               help="Return to an earlier release. Jobs stay."),
        DATABASE,
    ]
)  # fmt: skip
def deploy(is_verify: bool, is_adopt: bool, version: str | None, database_url: str) -> None:
    """Install or upgrade the schema, with Sqitch."""
    with plainly():
        if version is not None:
            sqitch.revert(database_url, version, say)
        elif is_verify or is_adopt:
            act = sqitch.verify if is_verify else sqitch.adopt
            say(act(database_url).rstrip())
        else:
            sqitch.deploy(database_url, say)


@click.command(
    "sql",
    params=[
        option("--core", "is_core", is_flag=True, help="Print only the core, without the features.")
    ],
)
def print_sql(is_core: bool) -> None:
    """Print the SQL that installs the schema: jobq sql | psql."""
    with plainly():
        click.echo(sqitch.single_file(is_core=is_core), nl=False)


@click.command(
    params=[
        option("--from", "since", help="The installed release, such as 1.0.0; none by default."),
        option("--to", "until", show_default=__version__, help="The target release."),
        option("--format", "form", default="sql", type=click.Choice(list(FORMATS)),
               help="The tool."),
    ]
)  # fmt: skip
def migration(since: str | None, until: str | None, form: Any) -> None:  # noqa: ANN401 - a Format
    """Print a migration that installs or upgrades the schema in your own tool.

    Everything runs in the tool's transaction, as a user who may create roles. Use either these
    migrations or `jobq deploy` for a database. Both record the release for `jobq doctor`.
    """
    with plainly():
        click.echo(made(since, until, form), nl=False)
