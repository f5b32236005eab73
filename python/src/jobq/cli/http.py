"""`jobq http`: serve the HTTP API."""

from __future__ import annotations

import click

from jobq.cli.terminal import database, needing

__all__ = ["http"]


@click.command()
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option("--port", default=8080, type=click.IntRange(0, 65535), help="The port.")
@database
def http(host: str, port: int, database_url: str) -> None:
    """Serve the HTTP API."""
    with needing("http"):
        from jobq.http import serve  # noqa: PLC0415 - an extra
    serve(database_url, host, port)
