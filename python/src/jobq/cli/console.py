"""`jobq console`: see the queue, and act on it, in a browser."""

from __future__ import annotations

import socket
import webbrowser

import click

from jobq.cli.terminal import database, needing, one_database

__all__ = ["console"]

HOST = "127.0.0.1"


@click.command()
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The port; 0 takes any.")
@click.option("--hide-payloads", is_flag=True, help="Show no payloads, results, metadata, logs.")
@click.option("--open", "is_opened", is_flag=True, help="Open it in the browser too.")
@database
def console(*, port: int, hide_payloads: bool, is_opened: bool, database_url: str) -> None:
    """Serve the console on this machine, as the log-in of the database's URL.

    What that log-in may look at and do, may whoever opens the address that is printed; it lets
    in once.
    """
    with needing("http"):
        from jobq.console.options import Options  # noqa: PLC0415 - an extra
        from jobq.console.serve import serve  # noqa: PLC0415

    one_database(database_url)

    def say(address: str) -> None:
        click.echo(address)
        if is_opened:
            webbrowser.open(address)

    options = Options(hides_payloads=hide_payloads)
    serve(database_url, socket.create_server((HOST, port)), options, say)
