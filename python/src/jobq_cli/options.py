"""Options of commands, generated from the options of the client and their docstrings.

A duration is text, such as '30 s'. JSON is text, or - for standard input. An option for a list
is repeatable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

from jobq.models import words_of
from jobq_cli.terminal import in_utc, object_parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["options_of"]

Command = TypeVar("Command", bound="Callable[..., Any]")


def options_of(*kinds: type, but: Collection[str] = ()) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of TypedDicts to a command.

    Args:
        kinds: TypedDicts with a docstring that describes each option.
        but: options that the command defines itself.
    """
    words = words_of(*kinds)
    types = {name: each for kind in kinds for name, each in get_type_hints(kind).items()}

    def decorate(command: Command) -> Command:
        for name in sorted(types.keys() - set(but), reverse=True):
            flag = f"--{name.replace('_', '-')}"
            command = click.option(flag, name, help=words[name], **form_of(types[name]))(command)
        return command

    return decorate


def form_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - any type
    """Return the arguments of click.option for a type."""
    kinds = [each for each in get_args(kind) or (kind,) if each is not NoneType]
    origins = [get_origin(each) or each for each in kinds]
    if Literal in origins:
        return {"type": click.Choice(get_args(kinds[0]))}
    if any(issubclass(each, Mapping) for each in origins):
        return {"callback": object_parsed}
    if any(issubclass(each, Iterable) and each is not str for each in origins):
        return {"multiple": True}
    if origins == [datetime]:
        return {"type": click.DateTime(), "callback": in_utc}
    return {"type": origins[0]} if len(origins) == 1 else {}
