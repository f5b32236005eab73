"""The command line: `jobq`, a thin layer over the client, the worker and the HTTP API."""

from jobq_cli.commands import main

__all__ = ["main"]
