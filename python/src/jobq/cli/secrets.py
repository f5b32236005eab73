"""`jobq secrets`: keep the secrets of endpoints."""

from __future__ import annotations

import sys

import click

from jobq import definitions
from jobq.cli.terminal import as_json, asking, database, say, show_rows
from jobq.delivery.secret import KEY_FILE, KEYS, Keyring, new_key

__all__ = ["secrets"]


@click.group(help=f"Keep the secrets of endpoints, under the keys of {KEYS} or {KEY_FILE}.")
def secrets() -> None:
    """Keep the secrets of endpoints."""


@secrets.command()
def key() -> None:
    """Print a new key for secrets."""
    say(new_key())


@secrets.command()
@click.argument("name")
@database
def put(name: str, database_url: str) -> None:
    """Store the secret NAME, or replace it; its value is read from standard input."""
    value = click.prompt("Value", hide_input=True) if sys.stdin.isatty() else given()
    with asking(database_url) as client:
        stored = client.put_secret(name, value.removesuffix("\n"))
    say(f"{name} is stored as version {stored['version']}")


def given() -> str:
    """Return what stands in standard input.

    Raises:
        ClickException: it is not UTF-8; nothing of it is told.
    """
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise click.ClickException("the value of a secret must be text in UTF-8") from None


@secrets.command("list")
@as_json
@database
def list_(is_json: bool, database_url: str) -> None:
    """List the secrets, their versions and the ids of their keys."""
    with asking(database_url) as client:
        stored = client.run(definitions.list_ciphertexts())
    rows = [{"secret": s.secret, "version": s.version, "key_id": s.key_id} for s in stored]
    show_rows(rows, ("secret", "version", "key_id"), is_json=is_json)


@secrets.command()
@database
def rotate(database_url: str) -> None:
    """Encrypt every secret with the first key, so that older keys can go."""
    count = 0
    with asking(database_url) as client:
        keyring = Keyring.from_environment()
        current = keyring.current
        for stored in client.run(definitions.list_ciphertexts()):
            if stored.key_id != current:
                count += client.run(definitions.rotate_secret(keyring, stored))
    say(f"{count} secrets are encrypted anew, with key {current}")


@secrets.command()
@click.argument("name")
@database
def delete(name: str, database_url: str) -> None:
    """Delete the secret NAME; refused while an endpoint refers to it."""
    with asking(database_url) as client:
        client.delete_definition("secret", name)
