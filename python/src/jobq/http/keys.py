"""Keys of the HTTP API: made here, shown once, stored as SHA-256; `jobq keys`."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
import psycopg

from jobq.http.auth import SCOPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREFIX_LENGTH = 12


def create_key(
    connection: psycopg.Connection[Any],
    name: str,
    scopes: Sequence[str] = SCOPES,
    *,
    expires_at: datetime | None = None,
    requests_per_second: int | None = None,
) -> str:
    """Make a key, store its SHA-256 in the caller's transaction, and return it.

    Args:
        connection: a connection of a user who may act as jobq_operator.
        name: what logs and lists call it; never used before.
        scopes: some of produce, work, operate and read.
        expires_at: when it stops working; None for never.
        requests_per_second: its limit; None for the server's.

    Returns:
        The key, 256 random bits, which cannot be shown again.

    Raises:
        psycopg.Error: the name is taken (JQ004), or an argument refused (22023).
    """
    key = f"jobq_{secrets.token_urlsafe(32)}"
    connection.execute(
        "select jobq.create_api_key("
        "%(name)s, %(key_hash)s, %(prefix)s, %(scopes)s, %(expires_at)s, %(rate)s)",
        {
            "name": name,
            "key_hash": hashlib.sha256(key.encode()).digest(),
            "prefix": key[:PREFIX_LENGTH],
            "scopes": list(scopes),
            "expires_at": expires_at,
            "rate": requests_per_second,
        },
    )
    return key


database_option = click.option(
    "--database",
    "database_url",
    envvar="DATABASE_URL",
    required=True,
    help="The database to use.",
)


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
    help="What the key may do; repeat for more.",
)
@click.option("--days", type=click.IntRange(1), help="Days until it expires.")
@click.option("--requests-per-second", type=click.IntRange(1), help="Its own rate limit.")
@database_option
def create(
    name: str,
    scopes: tuple[str, ...],
    days: int | None,
    requests_per_second: int | None,
    database_url: str,
) -> None:
    """Make a key called NAME and print it, this once."""
    expires_at = datetime.now(UTC) + timedelta(days=days) if days else None
    with session(database_url) as connection:
        key = create_key(
            connection,
            name,
            scopes,
            expires_at=expires_at,
            requests_per_second=requests_per_second,
        )
    click.echo(key)


@keys.command("list")
@database_option
def list_(database_url: str) -> None:
    """List keys: their first letters, scopes and last use."""
    with session(database_url) as connection:
        rows = connection.execute("select * from jobq.list_api_keys()").fetchall()
    for name, prefix, scopes, _, created, expires, revoked, used in rows:
        state = (
            f"revoked {revoked:%Y-%m-%d}"
            if revoked
            else f"expires {expires:%Y-%m-%d}"
            if expires
            else "valid"
        )
        last = f"last used {used:%Y-%m-%d %H:%M}" if used else "never used"
        click.echo(
            f"{name}\t{prefix}…\t{','.join(scopes)}\tcreated {created:%Y-%m-%d}\t{state}\t{last}"
        )


@keys.command()
@click.argument("name")
@database_option
def revoke(name: str, database_url: str) -> None:
    """Take the key called NAME out of use."""
    with session(database_url) as connection:
        connection.execute("select jobq.revoke_api_key(%s)", [name])
    click.echo(f"{name} is revoked; servers forget it within 5 seconds")


@contextmanager
def session(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect for one command; what the database refuses ends it in one line."""
    try:
        with psycopg.connect(database_url) as connection:
            yield connection
    except psycopg.Error as error:
        detail = error.diag.message_detail
        said = error.diag.message_primary or str(error)
        raise click.ClickException(f"{said}: {detail}" if detail else said) from error
