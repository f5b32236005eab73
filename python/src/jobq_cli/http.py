"""`jobq http` and `jobq console`: serve the HTTP API, or the console alone."""

from __future__ import annotations

import re
import socket
import webbrowser
from ipaddress import ip_network
from typing import Any, Final

import click

from jobq_cli.parameters import DATABASE, Seconds, Url, option
from jobq_cli.terminal import logged, needing, one_database, say


def networks(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Check that each value is a network."""
    try:
        return tuple(str(ip_network(value)) for value in values)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def prefixed(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """Return a path that begins with a slash and does not end with one."""
    path = text.rstrip("/")
    if path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path):
        raise click.BadParameter("must be a path such as /jobs, of letters, digits and . _ ~ -")
    return path


# fmt: off
OPTIONS: Final = (
    option("--host", default="127.0.0.1", help="Address to listen on."),
    option("--port", default=8080, type=click.IntRange(0, 65535), help="The port; 0 takes any."),
    option("--open-metrics/--metrics-with-key", "is_metrics_open", default=True,
           help="Serve /metrics without a key, or only for the scopes read and operate."),
    option("--pool-size", default=8, envvar="JOBQ_HTTP_POOL_SIZE", type=click.IntRange(1),
           help="Maximum connections for each of the four roles."),
    option("--console/--no-console", "has_console", default=True, help="Also serve the console."),
    option("--mcp/--no-mcp", "has_mcp", default=False,
           help="Also serve tools for assistants at /mcp; requires jobq[mcp]."),
    option("--hide-payloads", is_flag=True, help="Hide payloads and logs in the console."),
    option("--proxy-from", multiple=True, callback=networks, metavar="NETWORK",
           help="Network of a proxy whose X-Forwarded-For and -Proto are trusted. Repeatable."),
    option("--prefix", default="", callback=prefixed, metavar="PATH",
           help="Path that a proxy puts before this server, such as /jobs, and removes."),
    option("--proxy-header",
           help="Header with the user name, set by that proxy, for the console."),
    option("--proxy-scopes", default="read", type=click.Choice(("read", "read,operate")),
           help="Scopes of the proxy's users."),
    option("--read-database", "read_database_url", envvar="JOBQ_READ_DATABASE", show_envvar=True,
           type=Url(),
           help="Standby that serves lists and statistics while it is available and up to date."),
    option("--longest-lag", default=30.0, type=Seconds(0),
           help="Maximum lag of the standby; above it, the primary is used."),
    DATABASE,
)
# fmt: on


@click.command(params=list(OPTIONS))
@logged
def http(
    *,
    host: str,
    port: int,
    has_console: bool,
    has_mcp: bool,
    hide_payloads: bool,
    prefix: str,
    proxy_header: str | None,
    proxy_scopes: str,
    database_url: str,
    **settings: Any,  # noqa: ANN401 - those of `Settings`
) -> None:
    """Serve the HTTP API and the console, and log a line for each request."""
    if proxy_header and not settings["proxy_from"]:
        raise click.UsageError("--proxy-header requires --proxy-from")
    with needing("http"):
        from jobq_console import Options, Proxy, Site  # noqa: PLC0415 - an extra
        from jobq_http import Settings, serve  # noqa: PLC0415
    mcp = None
    if has_mcp:
        with needing("mcp"):
            from jobq_mcp import McpSite  # noqa: PLC0415 - an extra
        mcp = McpSite
    one_database(database_url)
    proxy = Proxy(proxy_header, tuple(proxy_scopes.split(","))) if proxy_header else None
    options = Options(hides_payloads=hide_payloads, proxy=proxy, prefix=prefix)
    console = Site.maker(options) if has_console else None
    serve(database_url, host, port, Settings(console=console, mcp=mcp, **settings))


@click.command(
    params=[
        option("--port", default=0, type=click.IntRange(0, 65535),
               help="Port; 0 chooses a free one."),
        option("--hide-payloads", is_flag=True, help="Hide payloads, results, metadata and logs."),
        option("--open", "is_opened", is_flag=True, help="Open it in the browser."),
        DATABASE,
    ]
)  # fmt: skip
def console(*, port: int, hide_payloads: bool, is_opened: bool, database_url: str) -> None:
    """Serve the console on this machine, with the login of the database URL.

    The printed address works once and gives the rights of that login.
    """
    with needing("http"):
        from jobq_console.options import Options  # noqa: PLC0415 - an extra
        from jobq_console.serve import serve  # noqa: PLC0415

    one_database(database_url)

    def tell(address: str) -> None:
        say(address)
        if is_opened:
            webbrowser.open(address)

    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise click.ClickException(f"cannot listen on port {port}: {error.strerror}") from error
    serve(database_url, listening, Options(hides_payloads=hide_payloads), tell)
