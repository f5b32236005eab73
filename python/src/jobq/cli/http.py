"""`jobq http`: serve the HTTP API."""

from __future__ import annotations

from ipaddress import ip_network
from socket import socket

import click

from jobq.cli.terminal import Seconds, checked, database, logged, needing, one_database

__all__ = ["http"]


def networks(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """See that each value is a network.

    Raises:
        click.BadParameter: one is none.
    """
    try:
        return tuple(str(ip_network(value)) for value in values)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


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
@click.option("--console/--no-console", "has_console", default=True, help="Serve the console too.")
@click.option("--hide-payloads", is_flag=True, help="The console shows none, nor log lines.")
@click.option(
    "--proxy-from",
    multiple=True,
    callback=networks,
    metavar="NETWORK",
    help="Where a proxy is whose X-Forwarded-For and -Proto hold; may be given again.",
)
@click.option("--proxy-header", help="The header by which that proxy names the console's user.")
@click.option(
    "--proxy-scopes",
    default="read",
    type=click.Choice(("read", "read,operate")),
    help="What the proxy's users may do.",
)
@click.option(
    "--read-database",
    "read_database_url",
    envvar="JOBQ_READ_DATABASE",
    show_envvar=True,
    callback=checked,
    help="A standby that answers lists and figures while it answers and is not far behind.",
)
@click.option(
    "--longest-lag",
    default=30.0,
    type=Seconds(0),
    help="While the standby lies further behind, the database is asked.",
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
    has_console: bool,
    hide_payloads: bool,
    proxy_header: str | None,
    proxy_from: tuple[str, ...],
    proxy_scopes: str,
    read_database_url: str | None,
    longest_lag: float,
    database_url: str,
) -> None:
    """Serve the HTTP API and the console, and log a line for each request."""
    if proxy_header and not proxy_from:
        raise click.UsageError("--proxy-header needs --proxy-from")
    with needing("http"):
        from jobq.console.options import Options, Proxy  # noqa: PLC0415 - an extra
        from jobq.http import Settings, serve  # noqa: PLC0415
    one_database(database_url)
    proxy = Proxy(proxy_header, tuple(proxy_scopes.split(","))) if proxy_header else None
    listening = None if fd is None else socket(fileno=fd)
    console = Options(hides_payloads=hide_payloads, proxy=proxy) if has_console else None
    settings = Settings(
        is_metrics_open=is_metrics_open,
        pool_size=pool_size,
        console=console,
        read_database_url=read_database_url,
        longest_lag=longest_lag,
        proxy_from=proxy_from,
    )
    serve(database_url, host, port, settings, listening=listening)
