"""Limits of single concurrency keys on the command line: `jobq limits`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import click

from jobq.cli.terminal import (
    LONGEST_DELAY,
    Seconds,
    as_json,
    asking,
    database,
    say,
    show_rows,
)

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
    """Say how many jobs of single keys run at once and start, and hold keys."""


queue_argument = click.argument("queue")
key_argument = click.argument("key")


@limits.command("list")
@click.argument("queue", required=False)
@as_json
@database
def list_(queue: str | None, is_json: bool, database_url: str) -> None:
    """List the limits of single keys, of QUEUE or of all queues."""
    with asking(database_url) as client:
        found = [asdict(limit) for limit in client.list_limits(queue)]
    show_rows(found, COLUMNS, is_json=is_json)


@limits.command()
@queue_argument
@key_argument
@click.option("--max-running", type=int, help="At most so many run at once.")
@click.option("--rate-limit", type=int, help="At most so many start in each period.")
@click.option("--rate-period", help="The period, such as '1 min'; a second by default.")
@click.option("--rate-burst", type=int, help="So many may start together; 1 by default.")
@database
def put(  # noqa: PLR0917 - as many options
    queue: str,
    key: str,
    max_running: int | None,
    rate_limit: int | None,
    rate_period: str | None,
    rate_burst: int | None,
    database_url: str,
) -> None:
    """Say what holds for KEY in QUEUE, in place of what the queue says for each key."""
    with asking(database_url) as client:
        client.put_limit(
            queue,
            key,
            max_running,
            rate_limit=rate_limit,
            rate_period=rate_period,
            rate_burst=rate_burst,
        )


@limits.command()
@queue_argument
@key_argument
@database
def delete(queue: str, key: str, database_url: str) -> None:
    """Have KEY follow again what QUEUE says for each key."""
    with asking(database_url) as client:
        client.delete_limit(queue, key)


@limits.command()
@queue_argument
@key_argument
@click.option("--seconds", type=Seconds(0, LONGEST_DELAY), required=True, help="For how long.")
@click.option("--reason", help="Why; shown by explain.")
@database
def hold(queue: str, key: str, seconds: float, reason: str | None, database_url: str) -> None:
    """Start no job of KEY in QUEUE for a while; running jobs go on."""
    with asking(database_url) as client:
        client.hold_key(queue, key, timedelta(seconds=seconds), reason)


@limits.command()
@queue_argument
@key_argument
@database
def release(queue: str, key: str, database_url: str) -> None:
    """Let the jobs of a held KEY start again."""
    with asking(database_url) as client:
        was_held = client.release_key(queue, key)
    say("released" if was_held else "it was not held")
