"""`jobq deploy` and `jobq sql`: install the schema, upgrade it, check it, print it."""

from __future__ import annotations

import click

from jobq_cli.parameters import DATABASE, option
from jobq_cli.terminal import plainly, say
from jobq_operations import deploy as sqitch


@click.command(
    params=[
        option("--verify", "is_verify", is_flag=True, help="Only check the installation."),
        option(
            "--adopt",
            "is_adopt",
            is_flag=True,
            help="Take over an installation made with jobq.sql.",
        ),
        option(
            "--back-to",
            "version",
            metavar="VERSION",
            help="Return to an earlier release. Jobs stay.",
        ),
        DATABASE,
    ]
)
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
