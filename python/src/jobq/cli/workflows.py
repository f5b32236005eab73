"""Events, signals and graphs on the command line."""

from __future__ import annotations

from typing import Any

import click

from jobq.cli.terminal import asking, database, object_parsed, parsed, say

__all__ = ["cancel_tree", "emit", "graph", "signal"]


@click.command()
@click.argument("event")
@click.argument("payload", default="null", callback=parsed)
@database
def emit(event: str, payload: Any, database_url: str) -> None:  # noqa: ANN401 - any JSON
    """Say that EVENT has happened, with PAYLOAD: a JSON text, or - for standard input.

    All jobs that wait for it go on. The first emit of an event stays.
    """
    with asking(database_url) as client:
        _say(is_first=client.emit(event, payload))


@click.command()
@click.argument("job_id")
@click.argument("name")
@click.argument("payload", default="null", callback=parsed)
@database
def signal(job_id: str, name: str, payload: Any, database_url: str) -> None:  # noqa: ANN401
    """Tell one job that NAME has happened, with PAYLOAD: a JSON text, or - for standard input."""
    with asking(database_url) as client:
        _say(is_first=client.signal(job_id, name, payload))


@click.command()
@click.argument("graph", callback=object_parsed)
@database
def graph(graph: dict[str, Any], database_url: str) -> None:
    """Add the jobs of GRAPH, a JSON text or - for standard input; print names and ids."""
    with asking(database_url) as client:
        for name, job_id in client.enqueue_graph(graph).items():
            say(f"{job_id} {name}")


@click.command("cancel-tree")
@click.argument("job_id")
@click.option("--downstream", is_flag=True, help="Only the job and what waits for it.")
@click.option("--reason", help="Why; kept with the jobs.")
@database
def cancel_tree(job_id: str, downstream: bool, reason: str | None, database_url: str) -> None:
    """Cancel JOB_ID with all that hangs together with it; print the jobs."""
    with asking(database_url) as client:
        for job in client.cancel_tree(job_id, reason, "downstream" if downstream else "all"):
            say(f"{job.job_id} {job.outcome}")


def _say(*, is_first: bool) -> None:
    say("emitted" if is_first else "was there already: the first payload stays")
