"""`jobq secrets`: manage the secrets of endpoints."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from jobq.client import Client
from jobq_cli.declared import calling, group
from jobq_cli.parameters import DATABASE, argument
from jobq_cli.terminal import asking, say
from jobq_delivery.keyring import (
    KEY_FILE,
    KEYS,
    Keyring,
    list_ciphertexts,
    new_key,
    rotate_secret,
)

COLUMNS: Final = ("secret", "version", "key_id")


@click.command()
def key() -> None:
    """Print a new encryption key."""
    say(new_key())


@click.command(params=[argument("name"), DATABASE])
def put(name: str, database_url: str) -> None:
    """Create or replace the secret NAME. The value is read from standard input."""
    value = click.prompt("Value", hide_input=True) if sys.stdin.isatty() else given()
    with asking(database_url) as client:
        stored = client.put_secret(name, value.removesuffix("\n"))
    say(f"{name} is stored as version {stored['version']}")


def given() -> str:
    """Read standard input; the error if it is not UTF-8 does not contain it."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise click.ClickException("the value of a secret must be text in UTF-8") from None


@click.command(params=[DATABASE])
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


def listed(client: Client) -> list[dict[str, Any]]:
    """Return the secrets without their ciphertexts."""
    stored = client.run(list_ciphertexts())
    return [{name: getattr(each, name) for name in COLUMNS} for each in stored]


# fmt: off
secrets = group(
    "secrets", f"Manage the secrets of endpoints, encrypted with keys of {KEYS} or {KEY_FILE}.",
    key, put, rotate,
    calling("list", listed, "List secrets with their versions and key ids.", rows=COLUMNS),
    calling("delete", "delete_definition",
            "Delete the secret NAME. Refused while an endpoint uses it.",
            argument("name"), fixed={"type": "secret"}),
)
# fmt: on
