"""Commands for kinds: list, declare, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from jobq.calls.options import CommonOptions, KindOptions, LimitOptions
from jobq_cli.options import options_of
from jobq_cli.terminal import (
    as_json,
    plain,
    show_json,
    show_rows,
    show_table,
    with_client,
)

if TYPE_CHECKING:
    from jobq.client import Client

__all__ = ["declare", "delete_kind", "kinds", "settings"]

COLUMNS: Final = ("kind", "queue", "priority", "max_attempts", "timeout", "keep_succeeded", "run")


@click.command()
@as_json
@with_client
def kinds(client: Client, is_json: bool) -> None:
    """List the declared kinds."""
    show_rows(client.list_kinds(), COLUMNS, is_json=is_json)


@click.command()
@click.argument("kind", required=False)
@click.option("--queue", help="Queue.  [default: the kind's queue]")
@as_json
@with_client
def settings(client: Client, kind: str | None, queue: str | None, is_json: bool) -> None:
    """Show the effective settings of KIND: from the kind, the queue or the defaults."""
    holds = client.settings(kind, queue)
    if is_json:
        show_json([holds])
    else:
        show_table((), [(name, plain(holds[name])) for name in sorted(holds)])


@click.command()
@click.argument("kind")
@options_of(LimitOptions, CommonOptions, KindOptions)
@with_client
def declare(client: Client, kind: str, **said: Any) -> None:  # noqa: ANN401 - as many options
    """Declare KIND, replacing its declaration. Omitted options get their defaults."""
    client.put_kind(kind, **{name: value for name, value in said.items() if value != ()})


@click.command()
@click.argument("kind")
@with_client
def delete_kind(client: Client, kind: str) -> None:
    """Delete the declaration of KIND. It must have no live jobs and schedules."""
    client.delete_kind(kind)
