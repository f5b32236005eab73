"""`jobq secrets`: manage the secrets of endpoints."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from jobq_cli.terminal import as_json, asking, database, say, show_rows, with_client
from jobq_delivery.keyring import (
    KEY_FILE,
    KEYS,
    Keyring,
    list_ciphertexts,
    new_key,
    rotate_secret,
)

if TYPE_CHECKING:
    from jobq.client import Client

__all__ = ["secrets"]


@click.group(help=f"Manage the secrets of endpoints, encrypted with keys of {KEYS} or {KEY_FILE}.")
def secrets() -> None:
    """Manage the secrets of endpoints."""


@secrets.command()
def key() -> None:
    """Print a new encryption key."""
    say(new_key())


@secrets.command()
@click.argument("name")
@database
def put(name: str, database_url: str) -> None:
    """Create or replace the secret NAME. The value is read from standard input."""
    value = click.prompt("Value", hide_input=True) if sys.stdin.isatty() else given()
    with asking(database_url) as client:
        stored = client.put_secret(name, value.removesuffix("\n"))
    say(f"{name} is stored as version {stored['version']}")


def given() -> str:
    """Read standard input.

    Raises:
        ClickException: it is not UTF-8. The message does not contain the input.
    """
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise click.ClickException("the value of a secret must be text in UTF-8") from None


@secrets.command("list")
@as_json
@with_client
def list_(client: Client, is_json: bool) -> None:
    """List secrets with their versions and key ids."""
    stored = client.run(list_ciphertexts())
    rows = [{"secret": s.secret, "version": s.version, "key_id": s.key_id} for s in stored]
    show_rows(rows, ("secret", "version", "key_id"), is_json=is_json)


@secrets.command()
@database
def rotate(database_url: str) -> None:
    """Encrypt every secret with the first key. You can then remove older keys."""
    count = 0
    with asking(database_url) as client:
        keyring = Keyring.from_environment()
        current = keyring.current
        for stored in client.run(list_ciphertexts()):
            if stored.key_id != current:
                count += client.run(rotate_secret(keyring, stored))
    say(f"{count} secrets encrypted with key {current}")


@secrets.command()
@click.argument("name")
@with_client
def delete(client: Client, name: str) -> None:
    """Delete the secret NAME. Refused while an endpoint uses it."""
    client.delete_definition("secret", name)
