"""The parameters of commands: types, shared options, and options that the client has too."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import click
import psycopg
from psycopg.conninfo import conninfo_to_dict

from jobq.models import words_of

LONGEST_DELAY: Final = 3660 * 24 * 3600.0
"""Maximum delay of a job or hold of a key, in seconds."""


def argument(name: str, **options: Any) -> click.Argument:  # noqa: ANN401 - those of click
    """Return an argument."""
    return click.Argument([name], **options)


def option(*flags: str, **options: Any) -> click.Option:  # noqa: ANN401 - those of click
    """Return an option."""
    return click.Option(flags, **options)


class Url(click.types.StringParamType):
    """A connection string. DATABASE_URL contains one, possibly with spaces."""

    name = "url"

    def convert(self, value: Any, *at: Any) -> str:  # noqa: ANN401 - as click has it
        """Return a valid string."""
        try:
            conninfo_to_dict(value)
        except psycopg.ProgrammingError as error:
            self.fail(str(error).strip(), *at)
        return str(value)

    def split_envvar_value(self, rv: str) -> list[str]:
        """Return the value as one string."""
        return [rv]


class Seconds(click.FloatRange):
    """A finite number of seconds."""

    name = "seconds"

    def convert(self, value: Any, *at: Any) -> float:  # noqa: ANN401 - as click has it
        """Return the number."""
        seconds: float = super().convert(value, *at)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a number of seconds", *at)
        return seconds


class Json(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since 8.4
    """JSON, or - for JSON on standard input; perhaps only an object."""

    name = "json"

    def __init__(self, *, is_object: bool = False) -> None:
        self._is_object = is_object

    def convert(self, value: Any, *at: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return the value of the text."""
        try:
            found = json.loads(sys.stdin.read() if value == "-" else value)
        except (ValueError, RecursionError) as error:
            self.fail(f"not JSON: {error}", *at)
        if self._is_object and not isinstance(found, dict):
            self.fail("not a JSON object", *at)
        return found


class Moment(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since 8.4
    """A time in ISO 8601, in UTC unless it has an offset."""

    name = "time"

    def convert(self, value: Any, *at: Any) -> datetime:  # noqa: ANN401 - as click has it
        """Return the time with its zone."""
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2030-03-16T08:00:00Z", *at)
        return found if found.tzinfo else found.replace(tzinfo=UTC)


def database(name: str = "database_url", **options: Any) -> click.Option:  # noqa: ANN401
    """Return the option `--database`, which is required by default."""
    own = {"envvar": "DATABASE_URL", "required": True, "show_envvar": True, "type": Url()}
    return option("--database", name, **{"help": "Database URL.", **own, **options})


def limit(default: int, most: int = 1000, name: str = "limit", of: str = "rows") -> click.Option:
    """Return the option `--limit`."""
    kind = click.IntRange(1, most)
    return option("--limit", name, default=default, type=kind, help=f"Maximum number of {of}.")


def moment(flag: str, words: str, **options: Any) -> click.Option:  # noqa: ANN401
    """Return an option that is a time."""
    return option(flag, type=Moment(), help=words, **options)


def reason(words: str = "shown by explain") -> click.Option:
    """Return the option `--reason`."""
    return option("--reason", help=f"Reason, {words}.")


def named(context: click.Context, parameter: click.Parameter, url: str | None) -> str:
    """Refuse a missing connection string; a default may be None."""
    if url is None:
        raise click.MissingParameter(ctx=context, param=parameter)
    return url


def as_span(_: click.Context, __: click.Parameter, seconds: float | None) -> timedelta | None:
    """Return a duration that is given in seconds; a callback of options."""
    return None if seconds is None else timedelta(seconds=seconds)


DATABASE: Final = database()
# Of a command below a group that lists too: its own, or that of the group.
OWN_DATABASE: Final = database(default=lambda: click.get_current_context().obj, callback=named)
DATABASES: Final = database("database_urls", multiple=True, help="Database URL. Repeatable.")
AS_JSON: Final = option("--json", "is_json", is_flag=True, help="Print JSON, one line per row.")
PAYLOAD: Final = argument("payload", default="{}", type=Json())


def options_of(*kinds: type, but: Collection[str] = ()) -> list[click.Option]:
    """Return the options of TypedDicts whose docstrings describe each option.

    A duration is text, such as '30 s'. An option for a list is repeatable. The command defines
    those of ``but`` itself.
    """
    words = words_of(*kinds)
    types = {name: each for kind in kinds for name, each in get_type_hints(kind).items()}
    forms = {name: form_of(types[name]) for name in sorted(types.keys() - set(but))}
    return [
        option(
            f"--{name.replace('_', '-')}", name, **form,
            help=f"{words[name]} Repeatable." if "multiple" in form else words[name],
        )
        for name, form in forms.items()
    ]  # fmt: skip


def form_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - any type
    """Return the arguments of click.Option for a type."""
    kinds = [each for each in get_args(kind) or (kind,) if each is not NoneType]
    origins = [get_origin(each) or each for each in kinds]
    if Literal in origins:
        return {"type": click.Choice(get_args(kinds[0]))}
    if any(issubclass(each, Mapping) for each in origins):
        return {"type": Json(is_object=True)}
    if any(issubclass(each, Iterable) and each is not str for each in origins):
        return {"multiple": True}
    if origins == [datetime]:
        return {"type": Moment()}
    return {"type": origins[0]} if len(origins) == 1 else {}
