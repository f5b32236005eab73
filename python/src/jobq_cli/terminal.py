"""Shared helpers of the commands: options, connections, output."""

from __future__ import annotations

import json
import logging
import math
import sys
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import psycopg
from psycopg.conninfo import conninfo_to_dict

from jobq.client import Client
from jobq.database import configure, conninfo
from jobq.errors import JobqError, translate
from jobq.redaction import in_line, visible
from jobq_embedded import ServerError
from jobq_operations.deploy import DeployError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

Command = TypeVar("Command", bound="Callable[..., Any]")


def checked(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    """Refuse an invalid connection string."""
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
        help="Database URL.",
        **options,
    )


class Url(click.types.StringParamType):
    """A connection string. DATABASE_URL contains one, possibly with spaces."""

    name = "url"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return a valid string."""
        try:
            conninfo_to_dict(value)
        except psycopg.ProgrammingError as error:
            self.fail(str(error).strip(), param, ctx)
        return str(value)

    def split_envvar_value(self, rv: str) -> list[str]:
        """Return the value as one string."""
        return [rv]


LONGEST_DELAY: Final = 3660 * 24 * 3600.0
"""Maximum delay of a job or hold of a key, in seconds."""


class Seconds(click.FloatRange):
    """A finite number of seconds."""

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
    """Return the value of a JSON text that must be an object."""
    value = parsed(context, parameter, text)
    if value is None or isinstance(value, dict):
        return value
    raise click.BadParameter("not a JSON object", param=parameter)


def in_utc(
    _context: click.Context, _parameter: click.Parameter, moment: datetime | None
) -> datetime | None:
    """Mark a time as UTC."""
    return None if moment is None else moment.replace(tzinfo=UTC)


def limit_option(default: int, most: int = 1000, of: str = "rows") -> Callable[[Command], Command]:
    """Return the option `--limit`."""
    kind = click.IntRange(1, most)
    return click.option("--limit", default=default, type=kind, help=f"Maximum number of {of}.")


def moment_option(flag: str, words: str, **options: Any) -> Callable[[Command], Command]:  # noqa: ANN401
    """Return an option that is a time in UTC."""
    return click.option(flag, type=click.DateTime(), callback=in_utc, help=words, **options)


database = database_option()
databases = click.option(
    "--database",
    "database_urls",
    envvar="DATABASE_URL",
    required=True,
    multiple=True,
    show_envvar=True,
    type=Url(),
    help="Database URL. Repeatable.",
)
as_json = click.option("--json", "is_json", is_flag=True, help="Print JSON, one line per row.")


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


def client_of(option: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command `--database`, and a client as its first argument."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def asking_command(*, database_url: str, **given: Any) -> Any:  # noqa: ANN401 - any command
            with asking(database_url) as client:
                return command(client, **given)

        return option(asking_command)  # type: ignore[arg-type]

    return decorate


with_client = client_of(database)
# Of a command below a group that lists too: its own, or that of the group.
own_database = database_option(default=lambda: click.get_current_context().obj)
with_own_client = client_of(own_database)


@contextmanager
def listing(database_url: str | None) -> Iterator[Client]:
    """Open a client for a group without a command.

    Raises:
        click.UsageError: there is no database URL.
    """
    if database_url is None:
        raise click.UsageError("Missing option '--database' (env var: 'DATABASE_URL').")
    with asking(database_url) as client:
        yield client


def one_database(database_url: str) -> None:
    """Refuse a router of shards, which has no views and no jobq_http.

    An unreachable database is accepted: servers wait for it.

    Raises:
        click.ClickException: it is a router.
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
        hint = f"; {error.hint}" if error.hint else ""
        raise click.ClickException(visible(f"{error.code}: {error}{hint}")) from error
    except (DeployError, ServerError) as error:
        raise click.ClickException(visible(str(error))) from error


def say(line: object, *, err: bool = False) -> None:
    """Print a line immediately, without terminal control characters.

    Args:
        line: the text.
        err: whether to print to standard error.
    """
    click.echo(visible(str(line)), err=err)
    sys.stdout.flush()


def show_json(found: Iterable[object]) -> None:
    """Print records as JSON lines."""
    for row in found:
        say(json.dumps(_members(row), default=str, ensure_ascii=False))


def show_rows(
    found: Sequence[Any],
    names: Sequence[str],
    cells: Callable[[Any], Sequence[object]] | None = None,
    *,
    is_json: bool,
) -> None:
    """Print records as JSON, or as a table: of each these cells, or the members of these names."""
    if is_json:
        show_json(found)
    elif cells:
        show_table(names, [cells(row) for row in found])
    else:
        rows = [_members(row) for row in found]
        show_table(names, [[plain(row[name]) for name in names] for row in rows])


def _members(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass or its members
    return row if isinstance(row, dict) else asdict(row)


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
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)


@contextmanager
def needing(extras: str) -> Iterator[None]:
    """Report the extra that a command needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is missing; install it with: pip install 'jobq[{extras}]'"
        ) from error
