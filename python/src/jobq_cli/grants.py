"""`jobq grants`: grants by queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from jobq.models import Privilege
from jobq_cli.terminal import as_json, show_rows, with_client

if TYPE_CHECKING:
    from jobq.client import Client

__all__ = ["grants"]


@click.group()
def grants() -> None:
    """Manage which roles may use which queues. Only the owner may change grants."""


@grants.command("list")
@as_json
@with_client
def list_(client: Client, is_json: bool) -> None:
    """List the grants."""
    show_rows(client.list_queue_grants(), ("grantee", "queue", "privilege"), is_json=is_json)


privilege_argument = click.argument("privilege", type=click.Choice(get_args(Privilege)))


@grants.command()
@click.argument("role")
@click.argument("queue")
@privilege_argument
@with_client
def grant(client: Client, role: str, queue: str, privilege: Privilege) -> None:
    """Grant ROLE the right to enqueue to or work QUEUE ('*' for all)."""
    client.grant_queue(role, queue, privilege)


@grants.command()
@click.argument("role")
@click.argument("queue")
@privilege_argument
@with_client
def revoke(client: Client, role: str, queue: str, privilege: Privilege) -> None:
    """Revoke a grant."""
    client.revoke_queue(role, queue, privilege)


@grants.command()
@click.option("--off", "is_off", is_flag=True, help="Stop enforcing: all roles may use all queues.")
@with_client
def enforce(client: Client, is_off: bool) -> None:
    """Restrict every login to the queues granted to it."""
    client.enforce_queue_grants(enforced=not is_off)
