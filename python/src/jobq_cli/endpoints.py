"""`jobq endpoints`: list, pause, preview and test endpoints."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from jobq_cli.terminal import (
    Seconds,
    as_json,
    asking,
    database_option,
    limit_option,
    listing,
    needing,
    own_database,
    parsed,
    say,
    show_rows,
    with_own_client,
)

if TYPE_CHECKING:
    from jobq.client import Client

__all__ = ["endpoints"]


@click.group(invoke_without_command=True)
@limit_option(50, 200)
@as_json
@database_option(is_required=False)
@click.pass_context
def endpoints(
    context: click.Context, *, limit: int, is_json: bool, database_url: str | None
) -> None:
    """List the endpoints, or manage one."""
    context.obj = database_url
    if context.invoked_subcommand:
        return
    columns = ("name", "type", "version", "queue", "paused_at", "pause_reason")
    with listing(database_url) as client:
        found = client.list_definitions("endpoint", max_definitions=limit)
    show_rows([{name: row[name] for name in columns} for row in found], columns, is_json=is_json)


@endpoints.command()
@click.argument("endpoint")
@click.option("--hours", default=1, type=click.IntRange(1, 720), help="Hours to look back.")
@as_json
@with_own_client
def stats(client: Client, endpoint: str, hours: int, is_json: bool) -> None:
    """Show statistics of deliveries to ENDPOINT, of at most 1,000 recent attempts."""
    found = asdict(client.endpoint_stats(endpoint, timedelta(hours=hours)))
    show_rows([found], list(found), is_json=is_json)


@endpoints.command()
@click.argument("endpoint")
@click.option("--reason", help="Reason, shown by explain.")
@with_own_client
def pause(client: Client, endpoint: str, reason: str | None) -> None:
    """Pause deliveries to ENDPOINT. Running ones finish; other jobs wait."""
    client.pause_endpoint(endpoint, reason)


@endpoints.command()
@click.argument("endpoint")
@with_own_client
def resume(client: Client, endpoint: str) -> None:
    """Resume deliveries to ENDPOINT."""
    client.resume_endpoint(endpoint)


@endpoints.command()
@click.argument("endpoint")
@click.argument("payload", default="{}", callback=parsed)
@own_database
def preview(endpoint: str, payload: Any, database_url: str) -> None:  # noqa: ANN401 - JSON
    """Show what would be sent to ENDPOINT for PAYLOAD (JSON), with masked secrets."""
    with needing("delivery"):
        from jobq_delivery.endpoint import get_delivery  # noqa: PLC0415 - an extra
        from jobq_delivery.preview import preview as shown  # noqa: PLC0415 - an extra
    with asking(database_url) as client, needing("delivery"):
        found = client.run(get_delivery(endpoint, None, None))
        message = shown(endpoint, found, json.dumps(payload))
    say(json.dumps(message, indent=2, ensure_ascii=False))


@endpoints.command()
@click.argument("endpoint")
@click.argument("payload", default="{}", callback=parsed)
@click.option("--timeout", default=60.0, type=Seconds(0), help="Seconds to wait.")
@with_own_client
def test(client: Client, endpoint: str, payload: Any, timeout: float) -> None:  # noqa: ANN401 - JSON
    """Deliver PAYLOAD (JSON) to ENDPOINT once, even if it is paused. Prints the response.

    A worker delivers it, so one must run.
    """
    job_id = client.test_endpoint(endpoint, payload)
    try:
        result = client.result(job_id, timeout)
    except TimeoutError as error:
        raise click.ClickException(f"job {job_id} has not finished within {timeout:g} s") from error
    say(json.dumps(result, ensure_ascii=False))
