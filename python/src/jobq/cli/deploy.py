"""`jobq deploy` and `jobq sql`: install the schema, upgrade it, check it, print it."""

from __future__ import annotations

import click

from jobq import deploy as sqitch
from jobq.cli.terminal import database, plainly, say

__all__ = ["deploy", "print_sql"]


@click.command()
@click.option("--verify", "is_verify", is_flag=True, help="Only check that all is in place.")
@click.option("--adopt", "is_adopt", is_flag=True, help="Take over what jobq.sql installed.")
@database
def deploy(is_verify: bool, is_adopt: bool, database_url: str) -> None:
    """Bring the database to this version's schema; Sqitch upgrades what is there."""
    with plainly():
        if is_verify or is_adopt:
            act = sqitch.verify if is_verify else sqitch.adopt
            say(act(database_url).rstrip())
        else:
            sqitch.deploy(database_url, say)


@click.command("sql")
def print_sql() -> None:
    """Print what installs the schema: jobq sql | psql."""
    with plainly():
        click.echo(sqitch.single_file(), nl=False)
