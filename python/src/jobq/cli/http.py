"""`jobq http`: serve the HTTP API."""

from __future__ import annotations

from socket import socket

import click

from jobq.cli.terminal import database, logged, needing

__all__ = ["http"]


@click.command()
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option("--port", default=8080, type=click.IntRange(0, 65535), help="The port; 0 takes any.")
@click.option("--fd", type=click.IntRange(0), hidden=True, help="A socket that listens already.")
@click.option(
    "--open-metrics/--metrics-with-key",
    "is_metrics_open",
    default=True,
    help="Whether /metrics answers without a key, or only to the scopes read and operate.",
)
@click.option(
    "--pool-size",
    default=8,
    envvar="JOBQ_HTTP_POOL_SIZE",
    type=click.IntRange(1),
    help="At most as many connections for each of the four roles.",
)
@logged
@database
def http(
    *,
    host: str,
    port: int,
    fd: int | None,
    is_metrics_open: bool,
    pool_size: int,
    database_url: str,
) -> None:
    """Serve the HTTP API, and log a line for each request."""
    with needing("http"):
        from jobq.http import Settings, serve  # noqa: PLC0415 - an extra
    listening = None if fd is None else socket(fileno=fd)
    settings = Settings(is_metrics_open=is_metrics_open, pool_size=pool_size)
    serve(database_url, host, port, settings, listening=listening)
