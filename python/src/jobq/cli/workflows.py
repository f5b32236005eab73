"""Events and signals on the command line."""

from __future__ import annotations

import json
import sys

import click

from jobq.cli.terminal import asking, database

__all__ = ["emit", "signal"]


@click.command()
@click.argument("event")
@click.argument("payload", default="null")
@database
def emit(event: str, payload: str, database_url: str) -> None:
    """Say that EVENT has happened, with PAYLOAD: a JSON text, or - for standard input.

    All jobs that wait for it go on. The first emit of an event stays.
    """
    given = _json(payload)
    with asking(database_url) as client:
        _say(is_first=client.emit(event, given))


@click.command()
@click.argument("job_id")
@click.argument("name")
@click.argument("payload", default="null")
@database
def signal(job_id: str, name: str, payload: str, database_url: str) -> None:
    """Tell one job that NAME has happened, with PAYLOAD: a JSON text, or - for standard input."""
    given = _json(payload)
    with asking(database_url) as client:
        _say(is_first=client.signal(job_id, name, given))


def _json(payload: str) -> object:
    text = sys.stdin.read() if payload == "-" else payload
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="PAYLOAD") from error


def _say(*, is_first: bool) -> None:
    click.echo("emitted" if is_first else "was there already: the first payload stays")
