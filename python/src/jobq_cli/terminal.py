"""Shared helpers of the commands: connections, output, errors."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from decimal import Decimal
from functools import wraps
from typing import Any, Final

import click
import psycopg

from jobq.client import Client
from jobq.database import configure, conninfo
from jobq.errors import JobqError, NotDeployed, translate
from jobq_embedded import ServerError
from jobq_operations.deploy import DeployError
from jobq_operations.visible import in_line, visible

# Types whose texts PostgreSQL reads, as messages name them.
KINDS: Final = {"interval": "a duration, such as '30 s'", "numeric": "a number"}


def logged(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--log-format` and `--log-level`, and configure logging."""

    @click.option("--log-format", default="pretty", type=click.Choice(("pretty", "json")))
    @click.option(
        "--log-level", default="info", type=click.Choice(("debug", "info", "warning", "error"))
    )
    @wraps(command)
    def logging_command(log_format: Any, log_level: str, **options: Any) -> Any:  # noqa: ANN401
        from jobq_cli.logs import configure_logging  # noqa: PLC0415 - only where one serves

        configure_logging(log_format, logging.getLevelNamesMapping()[log_level.upper()])
        return command(**options)

    return logging_command


@contextmanager
def asking(database_url: str) -> Iterator[Client]:
    """Open a client for one command. A failed connection is reported at once."""
    with (
        plainly(),
        translate(),
        psycopg.connect(conninfo(database_url, "jobq"), autocommit=True) as connection,
    ):
        configure(connection)
        yield Client(connection)


def one_database(database_url: str) -> None:
    """Refuse a router of shards, which has no views and no jobq_http.

    An unreachable database is accepted: servers wait for it.
    """
    try:
        with translate(), psycopg.connect(conninfo(database_url, "jobq")) as connection:
            Client(connection).replica_lag()
    except JobqError as error:
        if error.code == "ONE_DATABASE":
            words = (
                f"{error.code}: this is a cluster's router, which cannot serve HTTP; {error.hint}"
            )
            raise click.ClickException(words) from error


@contextmanager
def plainly() -> Iterator[None]:
    """Report errors in one line on stderr, with the remedy, and exit with 1."""
    try:
        yield
    except JobqError as error:
        raise click.ClickException(in_line(f"{error.code}: {_worded(error)}")) from error
    except (DeployError, ServerError) as error:
        raise click.ClickException(visible(str(error))) from error


def _worded(error: JobqError) -> str:
    """Return an error and its remedy, in which options have the names of the command line."""
    if isinstance(error, NotDeployed) and error.sqlstate == "42883":  # no such function
        return "the features of this release are not installed; run: jobq deploy"
    text = f"{error}; {error.hint}" if error.hint else str(error)
    context = click.get_current_context(silent=True)
    if context is None:
        return text
    for each in context.command.params:
        if isinstance(each, click.Option):
            text = re.sub(rf"\b{each.name}(?= must|:)", each.opts[0], text)
            for kind, wanted in KINDS.items():
                given = f'invalid input syntax for type {kind}: "{context.params.get(each.name)}"'
                text = text.replace(given, f"{each.opts[0]} must be {wanted}")
    return text


def say(line: object, *, err: bool = False) -> None:
    """Print a line immediately, without terminal control characters."""
    click.echo(visible(str(line)), err=err)
    sys.stdout.flush()


def show_json(found: Iterable[object]) -> None:
    """Print records as JSON lines."""
    for row in found:
        say(json.dumps(_members(row), default=_written, ensure_ascii=False))


def show_rows(
    found: Sequence[Any],
    names: Sequence[str],
    cells: Callable[[Any], Sequence[object]] | None = None,
    *,
    is_json: bool,
) -> None:
    """Print records as JSON, or as a table of their cells or of their members with these names."""
    if is_json:
        show_json(found)
    elif cells:
        show_table(names, [cells(row) for row in found])
    else:
        rows = [_members(row) for row in found]
        show_table(names, [[plain(row[name]) for name in names] for row in rows])


def _members(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass or its members
    return row if isinstance(row, dict) else asdict(row)


def _written(value: object) -> object:
    """Return a number as JSON has it, other values as text."""
    if not isinstance(value, Decimal):
        return str(value)
    return int(value) if value == value.to_integral_value() else float(value)


def show_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows as a table, with a header if names are given."""
    cells = [*([names] if names else []), *[[in_line(str(v)) for v in row] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(padded).rstrip())


def plain(value: object) -> str:
    """A value as plain text."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    if isinstance(value, dict | list):
        return json.dumps(value, default=str)
    return str(_written(value))


@contextmanager
def needing(extras: str) -> Iterator[None]:
    """Report the extra that a command needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is missing; install it with: pip install 'jobq[{extras}]'"
        ) from error
