"""Grants by queue on the command line: `jobq grants`."""

from __future__ import annotations

from dataclasses import asdict
from typing import get_args

import click

from jobq.cli.terminal import as_json, asking, database, show_rows
from jobq.models import Privilege

__all__ = ["grants"]


@click.group()
def grants() -> None:
    """Say which log-ins may use which queues; all but list are for the owner alone."""


@grants.command("list")
@as_json
@database
def list_(is_json: bool, database_url: str) -> None:
    """List who may use which queue, and how."""
    with asking(database_url) as client:
        found = [asdict(grant) for grant in client.list_queue_grants()]
    show_rows(found, ("grantee", "queue", "privilege"), is_json=is_json)


privilege_argument = click.argument("privilege", type=click.Choice(get_args(Privilege)))


@grants.command()
@click.argument("role")
@click.argument("queue")
@privilege_argument
@database
def grant(role: str, queue: str, privilege: Privilege, database_url: str) -> None:
    """Let ROLE use QUEUE, or '*' for all: enqueue to it, or work it."""
    with asking(database_url) as client:
        client.grant_queue(role, queue, privilege)


@grants.command()
@click.argument("role")
@click.argument("queue")
@privilege_argument
@database
def revoke(role: str, queue: str, privilege: Privilege, database_url: str) -> None:
    """Take back what was granted."""
    with asking(database_url) as client:
        client.revoke_queue(role, queue, privilege)


@grants.command()
@click.option("--off", "is_off", is_flag=True, help="Let everybody use all queues again.")
@database
def enforce(is_off: bool, database_url: str) -> None:
    """Have every log-in see and touch only the queues that it holds."""
    with asking(database_url) as client:
        client.enforce_queue_grants(enforced=not is_off)
