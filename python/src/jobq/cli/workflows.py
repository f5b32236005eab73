"""Events, signals and graphs on the command line."""

from __future__ import annotations

import json
import sys

import click

from jobq.cli.terminal import asking, database

__all__ = ["cancel_tree", "emit", "graph", "signal"]


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


@click.command()
@click.argument("graph")
@database
def graph(graph: str, database_url: str) -> None:
    """Add the jobs of GRAPH, a JSON text or - for standard input; print names and ids."""
    given = _json(graph)
    if not isinstance(given, dict):
        raise click.BadParameter("not a JSON object", param_hint="GRAPH")
    with asking(database_url) as client:
        for name, job_id in client.enqueue_graph(given).items():
            click.echo(f"{job_id} {name}")


@click.command("cancel-tree")
@click.argument("job_id")
@click.option("--downstream", is_flag=True, help="Only the job and what waits for it.")
@click.option("--reason", help="Why; kept with the jobs.")
@database
def cancel_tree(job_id: str, downstream: bool, reason: str | None, database_url: str) -> None:
    """Cancel JOB_ID with all that hangs together with it; print the jobs."""
    with asking(database_url) as client:
        for job in client.cancel_tree(job_id, reason, "downstream" if downstream else "all"):
            click.echo(f"{job.job_id} {job.outcome}")


def _json(payload: str) -> object:
    text = sys.stdin.read() if payload == "-" else payload
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="PAYLOAD") from error


def _say(*, is_first: bool) -> None:
    click.echo("emitted" if is_first else "was there already: the first payload stays")
