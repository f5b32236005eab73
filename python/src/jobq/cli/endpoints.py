"""`jobq endpoints`: how the endpoints stand, pause and resume, and a delivery to try one."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import click

from jobq.cli.terminal import (
    Seconds,
    as_json,
    asking,
    database_option,
    needing,
    parsed,
    say,
    show_rows,
)

__all__ = ["endpoints"]

# Of a command under `jobq endpoints`: its own, or that of the group.
own_database = database_option(default=lambda: click.get_current_context().obj)


@click.group(invoke_without_command=True)
@click.option("--limit", default=50, type=click.IntRange(1, 200), help="At most so many.")
@as_json
@database_option(is_required=False)
@click.pass_context
def endpoints(
    context: click.Context, *, limit: int, is_json: bool, database_url: str | None
) -> None:
    """List the endpoints by name, or look after one of them."""
    context.obj = database_url
    if context.invoked_subcommand:
        return
    if database_url is None:
        raise click.UsageError("Missing option '--database' (env var: 'DATABASE_URL').")
    with asking(database_url) as client:
        found = client.list_definitions("endpoint", max_definitions=limit)
    columns = ("name", "type", "version", "queue", "paused_at", "pause_reason")
    rows = [{column: endpoint[column] for column in columns} for endpoint in found]
    show_rows(rows, columns, is_json=is_json)


@endpoints.command()
@click.argument("endpoint")
@click.option("--hours", default=1, type=click.IntRange(1, 720), help="How far to look back.")
@as_json
@own_database
def stats(endpoint: str, hours: int, is_json: bool, database_url: str) -> None:
    """Tell how deliveries to ENDPOINT went of late: the newest 1,000 attempts at most."""
    with asking(database_url) as client:
        found = asdict(client.endpoint_stats(endpoint, timedelta(hours=hours)))
    show_rows([found], list(found), is_json=is_json)


@endpoints.command()
@click.argument("endpoint")
@click.option("--reason", help="Why; shown by explain.")
@own_database
def pause(endpoint: str, reason: str | None, database_url: str) -> None:
    """Stop deliveries to ENDPOINT; running ones go on, and its jobs wait."""
    with asking(database_url) as client:
        client.pause_endpoint(endpoint, reason)


@endpoints.command()
@click.argument("endpoint")
@own_database
def resume(endpoint: str, database_url: str) -> None:
    """Allow deliveries to ENDPOINT again."""
    with asking(database_url) as client:
        client.resume_endpoint(endpoint)


@endpoints.command()
@click.argument("endpoint")
@click.argument("payload", default="{}", callback=parsed)
@own_database
def preview(endpoint: str, payload: Any, database_url: str) -> None:  # noqa: ANN401 - JSON
    """Show what would be sent to ENDPOINT for the JSON PAYLOAD, secrets masked; sends nothing."""
    with needing("delivery"):
        from jobq.delivery.endpoint import get_delivery  # noqa: PLC0415 - an extra
        from jobq.delivery.preview import preview as shown  # noqa: PLC0415 - an extra
    with asking(database_url) as client, needing("delivery"):
        found = client.run(get_delivery(endpoint, None, None))
        message = shown(endpoint, found, json.dumps(payload))
    say(json.dumps(message, indent=2, ensure_ascii=False))


@endpoints.command()
@click.argument("endpoint")
@click.argument("payload", default="{}", callback=parsed)
@click.option("--timeout", default=60.0, type=Seconds(0), help="How many seconds to wait.")
@own_database
def test(endpoint: str, payload: Any, timeout: float, database_url: str) -> None:  # noqa: ANN401 - JSON
    """Deliver the JSON PAYLOAD to ENDPOINT once, also if it is paused, and print the answer.

    A worker delivers it, so one must run.
    """
    with asking(database_url) as client:
        job_id = client.test_endpoint(endpoint, payload)
        try:
            result = client.result(job_id, timeout)
        except TimeoutError as error:
            raise click.ClickException(f"job {job_id} has not ended in {timeout:g} s") from error
    say(json.dumps(result, ensure_ascii=False))
