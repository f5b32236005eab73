"""`jobq console`: the console in a browser."""

from __future__ import annotations

import socket
import webbrowser

import click

from jobq_cli.parameters import DATABASE, option
from jobq_cli.terminal import needing, one_database

HOST = "127.0.0.1"


@click.command(
    params=[
        option(
            "--port", default=0, type=click.IntRange(0, 65535), help="Port; 0 chooses a free one."
        ),
        option("--hide-payloads", is_flag=True, help="Hide payloads, results, metadata and logs."),
        option("--open", "is_opened", is_flag=True, help="Open it in the browser."),
        DATABASE,
    ]
)
def console(*, port: int, hide_payloads: bool, is_opened: bool, database_url: str) -> None:
    """Serve the console on this machine, with the login of the database URL.

    The printed address works once and gives the rights of that login.
    """
    with needing("http"):
        from jobq_console.options import Options  # noqa: PLC0415 - an extra
        from jobq_console.serve import serve  # noqa: PLC0415

    one_database(database_url)

    def say(address: str) -> None:
        click.echo(address)
        if is_opened:
            webbrowser.open(address)

    options = Options(hides_payloads=hide_payloads)
    serve(database_url, socket.create_server((HOST, port)), options, say)
