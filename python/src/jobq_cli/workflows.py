"""Commands for events, signals and graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jobq_cli.terminal import object_parsed, parsed, say, with_client

if TYPE_CHECKING:
    from jobq.client import Client

__all__ = ["cancel_tree", "emit", "graph", "signal"]


@click.command()
@click.argument("event")
@click.argument("payload", default="null", callback=parsed)
@with_client
def emit(client: Client, event: str, payload: Any) -> None:  # noqa: ANN401 - any JSON
    """Emit EVENT with PAYLOAD (JSON, or - for standard input).

    All jobs that wait for it continue. Only the first emit of an event counts.
    """
    _say(is_first=client.emit(event, payload))


@click.command()
@click.argument("job_id")
@click.argument("name")
@click.argument("payload", default="null", callback=parsed)
@with_client
def signal(client: Client, job_id: str, name: str, payload: Any) -> None:  # noqa: ANN401
    """Send the signal NAME with PAYLOAD (JSON, or - for standard input) to a job."""
    _say(is_first=client.signal(job_id, name, payload))


@click.command()
@click.argument("graph", callback=object_parsed)
@with_client
def graph(client: Client, graph: dict[str, Any]) -> None:
    """Enqueue GRAPH (JSON, or - for standard input). Prints ids and names."""
    for name, job_id in client.enqueue_graph(graph).items():
        say(f"{job_id} {name}")


@click.command("cancel-tree")
@click.argument("job_id")
@click.option("--downstream", is_flag=True, help="Only the job and those that wait for it.")
@click.option("--reason", help="Reason, stored with the jobs.")
@with_client
def cancel_tree(client: Client, job_id: str, downstream: bool, reason: str | None) -> None:
    """Cancel JOB_ID and all connected jobs. Prints the jobs."""
    for job in client.cancel_tree(job_id, reason, "downstream" if downstream else "all"):
        say(f"{job.job_id} {job.outcome}")


def _say(*, is_first: bool) -> None:
    say("emitted" if is_first else "already emitted: the first payload is kept")
