"""The tools for an assistant on this machine, over standard input and output."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from jobq_http.database import LOG_IN, Database
from jobq_mcp.caller import Caller
from jobq_mcp.server import server

PATIENCE = 30.0
POOL_SIZE = 4


async def serve(database_url: str) -> None:
    """Serve the tools with the rights of a login until standard input ends.

    Args:
        database_url: a PostgreSQL connection string.
    """
    database = Database(database_url, POOL_SIZE, PATIENCE, (LOG_IN,))
    await database.open()
    try:
        caller = Caller(database, None)
        made = server(lambda _context: caller)
        async with stdio_server() as (read, write):
            await made.run(read, write, made.create_initialization_options())
    finally:
        await database.close()
