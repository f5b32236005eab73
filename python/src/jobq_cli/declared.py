"""Commands by declaration: one method of the client is called, and its result is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import click

from jobq.client import Client
from jobq_cli.parameters import AS_JSON, DATABASE, database
from jobq_cli.terminal import asking, say, show_rows
from jobq_operations.visible import in_line


def calling(
    name: str,
    method: str | Callable[..., Any],
    words: str,
    *parameters: click.Parameter,
    rows: Sequence[str] = (),
    cells: Callable[[Any], Sequence[object]] | None = None,
    lines: Callable[[Any], Iterable[object]] | None = None,
    fixed: Mapping[str, object] | None = None,
    of: click.Option = DATABASE,
    opens: Callable[[str], AbstractContextManager[Any]] = asking,
) -> click.Command:
    """Return a command that calls a method of the client with its parameters, by their names.

    Args:
        name: of the command.
        method: name of the method; or a function of the client and the parameters.
        words: the help.
        parameters: arguments and options with the names of the method's parameters.
        rows: columns of the table that is printed of the result, or JSON with ``--json``.
        cells: returns the cells of a row; by default its members with the names of the columns.
        lines: returns the lines to print of a result that is not a table.
        fixed: arguments that are always the same.
        of: the option for the database.
        opens: opens what a function gets instead of the client, by the database's URL.
    """

    def run(database_url: str, *, is_json: bool = False, **given: Any) -> None:  # noqa: ANN401
        with opens(database_url) as client:
            call = getattr(client, method) if isinstance(method, str) else method
            client_first = () if isinstance(method, str) else (client,)
            result = call(*client_first, **given, **(fixed or {}))
            if rows or is_json:
                show_rows(result, rows, cells, is_json=is_json)
            for line in lines(result) if lines and not is_json else ():
                say(in_line(str(line)))

    own = [*parameters, *([AS_JSON] if rows else []), of]
    return click.Command(name, callback=run, params=own, help=words)


def limited(method: str, name: str = "max_jobs", of: str = "jobs") -> Callable[..., Any]:
    """Return a function that calls a method, with a remark if the limit is reached."""

    def call(client: Client, **given: Any) -> Any:  # noqa: ANN401
        found = getattr(client, method)(**given)
        if len(found) == given[name]:
            say(f"limit of {given[name]} {of} reached; there may be more (--limit)", err=True)
        return found

    return call


def group(name: str, words: str, *commands: click.Command) -> click.Group:
    """Return a group of commands."""
    return click.Group(name, commands=commands, help=words)


def listing_group(words: str, listed: click.Command, *commands: click.Command) -> click.Group:
    """Return a group that lists when no command is given; its database applies to the commands.

    Args:
        words: the help.
        listed: the command that lists; its name is that of the group.
        commands: the others.
    """

    def run(database_url: str | None, **given: Any) -> None:  # noqa: ANN401
        context = click.get_current_context()
        context.obj = database_url
        if context.invoked_subcommand:
            return
        if database_url is None:
            raise click.UsageError("Missing option '--database' (env var: 'DATABASE_URL').")
        context.invoke(listed, database_url=database_url, **given)

    own = [*listed.params[:-1], database(required=False)]
    return click.Group(
        listed.name,
        commands=commands,
        callback=run,
        params=own,
        help=words,
        invoke_without_command=True,
    )
