"""What the commands share: how they reach the database, and how they print."""

from __future__ import annotations

import json
import logging
import math
import sys
from contextlib import contextmanager
from datetime import UTC
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import psycopg
from psycopg.conninfo import conninfo_to_dict

from jobq.client import Client
from jobq.database import conninfo, use_json
from jobq.deploy import DeployError
from jobq.embedded import ServerError
from jobq.errors import JobqError, translate
from jobq.unseen import in_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

Command = TypeVar("Command", bound="Callable[..., Any]")


def checked(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    """Refuse what is no connection string before anything is done."""
    if url is None and parameter.required:  # a default may be None
        raise click.MissingParameter(ctx=context, param=parameter)
    try:
        conninfo_to_dict(url or "")
    except psycopg.ProgrammingError as error:
        raise click.BadParameter(str(error).strip(), param=parameter) from error
    return url


def database_option(*, is_required: bool = True, **options: Any) -> Callable[[Command], Command]:  # noqa: ANN401
    """Return the option `--database`."""
    return click.option(
        "--database",
        "database_url",
        envvar="DATABASE_URL",
        required=is_required,
        show_envvar=True,
        callback=checked,
        help="The database, as a libpq URL.",
        **options,
    )


class Url(click.types.StringParamType):
    """A connection string. DATABASE_URL holds one, which may have spaces in it."""

    name = "url"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return the string, if it is one."""
        try:
            conninfo_to_dict(value)
        except psycopg.ProgrammingError as error:
            self.fail(str(error).strip(), param, ctx)
        return str(value)

    def split_envvar_value(self, rv: str) -> list[str]:
        """Return the one that the environment gives."""
        return [rv]


LONGEST_DELAY: Final = 3660 * 24 * 3600.0
"""Seconds for which a job or a key may wait from now on."""


class Seconds(click.FloatRange):
    """A number of seconds, which is one."""

    name = "seconds"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number."""
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a number of seconds", param, ctx)
        return seconds


def parsed(_context: click.Context, parameter: click.Parameter, text: str | None) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a JSON text."""
    if text is None:
        return None
    try:
        return json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param=parameter) from error


def object_parsed(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> dict[str, Any] | None:
    """Return the value of a JSON text, which is an object."""
    value = parsed(context, parameter, text)
    if value is None or isinstance(value, dict):
        return value
    raise click.BadParameter("not a JSON object", param=parameter)


def in_utc(
    _context: click.Context, _parameter: click.Parameter, moment: datetime | None
) -> datetime | None:
    """Return a moment that was given in UTC."""
    return None if moment is None else moment.replace(tzinfo=UTC)


database = database_option()
databases = click.option(
    "--database",
    "database_urls",
    envvar="DATABASE_URL",
    required=True,
    multiple=True,
    show_envvar=True,
    type=Url(),
    help="The database, as a libpq URL; repeat for more.",
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


def one_database(database_url: str) -> None:
    """Refuse a router of shards, which cannot serve what asks for views and jobq_http.

    A database that does not answer yet is let pass: servers wait for theirs.

    Raises:
        click.ClickException: it is a router.
    """
    try:
        with translate(), psycopg.connect(conninfo(database_url, "jobq")) as connection:
            Client(connection).replica_lag()
    except JobqError as error:
        if error.code == "ONE_DATABASE":
            words = f"{error.code}: this is a cluster's router, and serves no HTTP; {error.hint}"
            raise click.ClickException(words) from error


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what is refused into one line on stderr, with the remedy, and exit status 1."""
    try:
        yield
    except JobqError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise click.ClickException(visible(f"{error.code}: {error}{hint}")) from error
    except (DeployError, ServerError) as error:
        raise click.ClickException(visible(str(error))) from error


def say(line: object, *, err: bool = False) -> None:
    """Print a line of a report at once, whoever reads it; its values give no terminal orders.

    Args:
        line: what is printed.
        err: whether it is a remark, for standard error.
    """
    click.echo(visible(str(line)), err=err)
    sys.stdout.flush()


def show_json(rows: Iterable[dict[str, Any]]) -> None:
    """Print records as JSON, a line for each."""
    for row in rows:
        say(json.dumps(row, default=str, ensure_ascii=False))


def show_rows(rows: Sequence[dict[str, Any]], names: Sequence[str], *, is_json: bool) -> None:
    """Print records: as JSON, or these members of theirs as a table."""
    if is_json:
        show_json(rows)
    else:
        show_table(names, [[plain(row[name]) for name in names] for row in rows])


def show_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their names, if any are given, in columns as wide as needed."""
    cells = [*([names] if names else []), *[[in_line(str(v)) for v in row] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(padded).rstrip())


def plain(value: object) -> str:
    """A value as people read it."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
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
