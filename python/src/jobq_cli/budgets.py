"""`jobq budgets`: how much jobs may cost in each day, week or month."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import click

from jobq_cli.terminal import as_json, show_rows, with_client

if TYPE_CHECKING:
    from jobq.client import Client

__all__ = ["budgets"]

COLUMNS = (
    "scope_type",
    "scope",
    "concurrency_key",
    "each_key",
    "amount",
    "period",
    "time_zone",
    "spent",
    "reserved",
    "next_period_at",
)

LARGEST_AMOUNT: Final = 10**15


@click.group()
def budgets() -> None:
    """Say how much jobs may cost in each period of the calendar."""


def amount(text: str) -> Decimal:
    """Return the number; click reports a ValueError."""
    try:
        value = Decimal(text)
        is_allowed = 0 <= value <= LARGEST_AMOUNT
    except InvalidOperation:
        is_allowed = False
    if not is_allowed:
        raise ValueError
    return value


def as_number(value: object) -> object:
    """Return a number as JSON has it, other values as they are."""
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == value.to_integral_value() else float(value)


type_argument = click.argument("scope_type", type=click.Choice(["queue", "kind"]))
scope_argument = click.argument("scope")
key_option = click.option("--key", "concurrency_key", help="The budget of this key of the queue.")
each_option = click.option("--each-key", is_flag=True, help="The budget of each key.")


@budgets.command("list")
@click.argument("scope_type", type=click.Choice(["queue", "kind"]), required=False)
@click.argument("scope", required=False)
@as_json
@with_client
def list_(client: Client, scope_type: str | None, scope: str | None, is_json: bool) -> None:
    """List budgets, and how much of each is spent and reserved in its present period."""
    found = [
        {name: as_number(value) for name, value in asdict(budget).items()}
        for budget in client.list_budgets(scope_type, scope)
    ]
    show_rows(found, COLUMNS, is_json=is_json)


@budgets.command()
@type_argument
@scope_argument
@click.argument("amount", type=amount)
@click.option(
    "--period",
    type=click.Choice(["day", "week", "month"]),
    default="month",
    show_default=True,
    help="Period of the calendar.",
)
@click.option("--time-zone", default="UTC", show_default=True, help="Where the period begins.")
@key_option
@each_option
@with_client
def put(client: Client, amount: Decimal, period: str, **budget: Any) -> None:  # noqa: ANN401
    """Set how much the jobs of a queue or kind may cost in each period."""
    client.put_budget(amount=amount, period=period, **budget)


@budgets.command()
@type_argument
@scope_argument
@key_option
@each_option
@with_client
def delete(client: Client, **budget: Any) -> None:  # noqa: ANN401
    """Delete a budget. Its jobs start whatever they cost."""
    client.put_budget(amount=None, **budget)
