"""`jobq keys`: keys of the HTTP API."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
import psycopg
from psycopg.rows import dict_row

from jobq.database import conninfo
from jobq.errors import translate
from jobq_cli.terminal import as_json, database, plainly, say, show_rows
from jobq_http.auth import SCOPES
from jobq_http.keys import create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["keys"]


@click.group()
def keys() -> None:
    """Manage the keys of the HTTP API."""


@keys.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(SCOPES),
    help="Scope of the key. Repeatable.",
)
@click.option("--days", type=click.IntRange(1), help="Days until it expires.")
@click.option("--requests-per-second", type=click.IntRange(1), help="Rate limit of the key.")
@database
def create(
    name: str,
    scopes: tuple[str, ...],
    days: int | None,
    requests_per_second: int | None,
    database_url: str,
) -> None:
    """Create the key NAME and print it. It is not shown again."""
    expires_at = datetime.now(UTC) + timedelta(days=days) if days else None
    with session(database_url) as connection:
        key = create_key(
            connection,
            name,
            scopes,
            expires_at=expires_at,
            requests_per_second=requests_per_second,
        )
    say(key)


@keys.command("list")
@as_json
@database
def list_(is_json: bool, database_url: str) -> None:
    """List keys with their prefix, scopes and last use."""
    with session(database_url) as connection, connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute("select * from jobq_http.list_api_keys()").fetchall()
    show_rows(rows, list(rows[0]) if rows else ["name"], is_json=is_json)


@keys.command()
@click.argument("name")
@database
def revoke(name: str, database_url: str) -> None:
    """Revoke the key NAME."""
    with session(database_url) as connection:
        connection.execute("select jobq_http.revoke_api_key(%s)", [name])
    say(f"{name} is revoked; servers refuse it within 5 seconds")


@contextmanager
def session(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Open a connection with one transaction for one command."""
    with plainly(), translate(), psycopg.connect(conninfo(database_url, "jobq")) as connection:
        yield connection
