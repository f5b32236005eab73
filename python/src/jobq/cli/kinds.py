"""Kinds on the command line: list them, declare one, and forget one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from jobq.cli.terminal import (
    as_json,
    asking,
    database,
    parsed,
    plain,
    show_json,
    show_rows,
    show_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["declare", "delete_kind", "kinds", "settings"]

Command = TypeVar("Command", bound="Callable[..., Any]")

COLUMNS: Final = ("kind", "queue", "priority", "max_attempts", "timeout", "keep_succeeded", "run")
STRATEGIES: Final = ("fixed", "linear", "exponential", "decorrelated")
DEDUPS: Final = ("skip", "enqueue", "replace", "debounce", "throttle")
# The parameters of put_kind, in their order; a time is an interval, such as '30 s'.
OPTIONS: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("queue", "Where its jobs go.", {}),
    ("priority", "Higher runs first.", {"type": int}),
    ("max-attempts", "How many attempts may fail.", {"type": int}),
    ("timeout", "Of each attempt, such as '30 s'.", {}),
    ("lease", "How long a claim holds without a heartbeat.", {}),
    ("retry-preset", "standard, decorrelated, powers_of_two or delivery.", {}),
    ("retry-strategy", "Instead of a preset.", {"type": click.Choice(STRATEGIES)}),
    ("retry-initial-delay", "The first wait.", {}),
    ("retry-max-delay", "The longest.", {}),
    ("retry-jitter", "0 to 1, as a share of the wait.", {"type": float}),
    ("dedup", "What dedup keys do.", {"type": click.Choice(DEDUPS)}),
    ("dedup-period", "For how long debounce waits, or throttle makes no other job.", {}),
    ("dedup-max-wait", "How long other calls may put a job off in all.", {}),
    ("reuse-key-after-failure", "A failed job gives its key back.", {"type": bool}),
    ("payload-schema", "The JSON Schema of payloads; - for standard input.", {"callback": parsed}),
    ("run", "A function of the database, such as analytics.refresh.", {}),
    ("retry-on", "After which SQLSTATEs, or classes of them.", {"multiple": True}),
    ("concurrency-key", "A member of the path to it in payloads.", {"multiple": True}),
    ("max-running", "How many run at once.", {"type": int}),
    ("rate-limit", "How many start in each period.", {"type": int}),
    ("rate-period", "A second by default.", {}),
    ("rate-burst", "How many may start together.", {"type": int}),
    ("key-max-running", "How many of each key run at once, in all queues.", {"type": int}),
    ("key-rate-limit", "How many of each key start in each period.", {"type": int}),
    ("key-rate-period", "A second by default.", {}),
    ("key-rate-burst", "How many of each key may start together.", {"type": int}),
    ("ordered", "Those of each key run one at a time, in their order.", {"type": bool}),
    ("on-dead", "What a key does after a dead one.", {"type": click.Choice(("continue", "hold"))}),
    ("keep-succeeded", "How long those are kept that succeeded; 0 leaves no trace.", {}),
    ("keep-dead", "The same for dead ones.", {}),
    ("keep-cancelled", "The same for cancelled ones.", {}),
    ("version", "Nothing is changed where this or a newer one declared it.", {"type": int}),
)


def declaring(command: Command) -> Command:
    """Give a command an option for each parameter of put_kind."""
    for name, words, more in reversed(OPTIONS):
        command = click.option(f"--{name}", help=words, **more)(command)
    return command


@click.command()
@as_json
@database
def kinds(is_json: bool, database_url: str) -> None:
    """List the kinds that are declared."""
    with asking(database_url) as client:
        show_rows([asdict(kind) for kind in client.list_kinds()], COLUMNS, is_json=is_json)


@click.command()
@click.argument("kind", required=False)
@click.option("--queue", help="In this queue; the kind's own by default.")
@as_json
@database
def settings(kind: str | None, queue: str | None, is_json: bool, database_url: str) -> None:
    """Show what holds for a job of KIND: what it says, else its queue, else the default."""
    with asking(database_url) as client:
        holds = client.settings(kind, queue)
    if is_json:
        show_json([holds])
    else:
        show_table((), [(name, plain(holds[name])) for name in sorted(holds)])


@click.command()
@click.argument("kind")
@declaring
@database
def declare(kind: str, database_url: str, **said: Any) -> None:  # noqa: ANN401 - as many options
    """Declare KIND in place of what was declared of it; what is left out is the default."""
    with asking(database_url) as client:
        client.put_kind(kind, **{name: value for name, value in said.items() if value != ()})


@click.command()
@click.argument("kind")
@database
def delete_kind(kind: str, database_url: str) -> None:
    """Forget what was declared of KIND, of which no live job or schedule is left."""
    with asking(database_url) as client:
        client.delete_kind(kind)
