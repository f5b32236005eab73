"""`jobq limits`: limits of single concurrency keys."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from jobq_cli.terminal import (
    LONGEST_DELAY,
    Seconds,
    as_json,
    say,
    show_rows,
    with_client,
)

if TYPE_CHECKING:
    from jobq.client import Client

__all__ = ["limits"]

COLUMNS = (
    "queue",
    "concurrency_key",
    "max_running",
    "rate_limit",
    "rate_period",
    "rate_burst",
    "running",
)


@click.group()
def limits() -> None:
    """Limit or hold single concurrency keys."""


queue_argument = click.argument("queue")
key_argument = click.argument("key")


@limits.command("list")
@click.argument("queue", required=False)
@as_json
@with_client
def list_(client: Client, queue: str | None, is_json: bool) -> None:
    """List the limits of single keys in QUEUE or all queues."""
    show_rows(client.list_limits(queue), COLUMNS, is_json=is_json)


@limits.command()
@queue_argument
@key_argument
@click.option("--max-running", type=int, help="Maximum running jobs.")
@click.option("--rate-limit", type=int, help="Maximum starts per period.")
@click.option("--rate-period", help="Period, such as '1 min'; one second by default.")
@click.option("--rate-burst", type=int, help="Maximum starts at once; 1 by default.")
@with_client
def put(client: Client, queue: str, key: str, **limits: Any) -> None:  # noqa: ANN401
    """Say what holds for KEY in QUEUE, in place of what the queue says for each key."""
    client.put_limit(queue, key, **limits)


@limits.command()
@queue_argument
@key_argument
@with_client
def delete(client: Client, queue: str, key: str) -> None:
    """Delete the limits of KEY. The limits of QUEUE for each key apply again."""
    client.delete_limit(queue, key)


@limits.command()
@queue_argument
@key_argument
@click.option(
    "--seconds", type=Seconds(0, LONGEST_DELAY), required=True, help="Duration of the hold."
)
@click.option("--reason", help="Reason, shown by explain.")
@with_client
def hold(client: Client, queue: str, key: str, seconds: float, reason: str | None) -> None:
    """Start no jobs of KEY in QUEUE for a time. Running jobs continue."""
    client.hold_key(queue, key, timedelta(seconds=seconds), reason)


@limits.command()
@queue_argument
@key_argument
@with_client
def release(client: Client, queue: str, key: str) -> None:
    """End the hold of KEY."""
    was_held = client.release_key(queue, key)
    say("released" if was_held else "the key was not held")
