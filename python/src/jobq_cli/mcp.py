"""`jobq mcp`: tools for assistants."""

from __future__ import annotations

import asyncio

import click

from jobq_cli.parameters import DATABASE
from jobq_cli.terminal import one_database
from jobq_mcp import serve


@click.command(params=[DATABASE])
def mcp(*, database_url: str) -> None:
    """Serve tools for an assistant (MCP) over standard input and output.

    They have the rights of the login of the database URL. `jobq http --mcp` serves them over HTTP,
    behind API keys.
    """
    one_database(database_url)
    asyncio.run(serve(database_url))
