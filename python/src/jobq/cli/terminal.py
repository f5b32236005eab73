"""What the commands share: how they reach the database, and how they print."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
import psycopg

from jobq.client import Client
from jobq.database import conninfo, use_json
from jobq.deploy import DeployError
from jobq.embedded import ServerError
from jobq.errors import JobqError, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

database = click.option(
    "--database",
    "database_url",
    envvar="DATABASE_URL",
    required=True,
    show_envvar=True,
    help="The database, as a libpq URL.",
)
as_json = click.option("--json", "is_json", is_flag=True, help="Print JSON, a line for each row.")


def logged(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that serves `--log-format` and `--log-level`, and do as they say."""

    @click.option("--log-format", default="pretty", type=click.Choice(("pretty", "json")))
    @click.option("--log-level", default="info", type=click.Choice(("debug", "info", "warning")))
    @wraps(command)
    def logging_command(log_format: Any, log_level: str, **options: Any) -> Any:  # noqa: ANN401
        from jobq.worker.logs import configure_logging  # noqa: PLC0415 - only where one serves

        configure_logging(log_format, logging.getLevelNamesMapping()[log_level.upper()])
        return command(**options)

    return logging_command


@contextmanager
def asking(database_url: str) -> Iterator[Client]:
    """Give a client for one command, on a connection whose failure is told at once."""
    with (
        plainly(),
        translate(),
        psycopg.connect(conninfo(database_url, "jobq"), autocommit=True) as connection,
    ):
        use_json(connection)
        yield Client(connection)


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what is refused into one line on stderr, with the remedy, and exit status 1."""
    try:
        yield
    except JobqError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise click.ClickException(f"{error.code}: {error}{hint}") from error
    except (DeployError, ServerError) as error:
        raise click.ClickException(str(error)) from error


def say(line: str) -> None:
    """Print a line of a report at once, whoever reads it."""
    click.echo(line)
    sys.stdout.flush()


def show_json(rows: Iterable[dict[str, Any]]) -> None:
    """Print records as JSON, a line for each."""
    for row in rows:
        click.echo(json.dumps(row, default=str, ensure_ascii=False))


def show_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their names, in columns as wide as needed."""
    cells = [names, *[[str(value) for value in row] for row in rows]]
    widths = [max(len(row[place]) for row in cells) for place in range(len(names))]
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def plain(value: object) -> str:
    """A value as people read it."""
    if value is None:
        return ""
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)


@contextmanager
def needing(extras: str) -> Iterator[None]:
    """Say which extras a command needs when they are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is missing; install it with: pip install 'jobq[{extras}]'"
        ) from error
