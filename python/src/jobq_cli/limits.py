"""`jobq limits` and `jobq budgets`: limits of single concurrency keys, and the cost of jobs."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import click

from jobq.calls.call import Call, scalar
from jobq.client import Client
from jobq_cli.declared import calling, group
from jobq_cli.parameters import LONGEST_DELAY, Seconds, argument, as_span, option, reason

LARGEST_AMOUNT: Final = 10**15
KEY: Final = (argument("queue"), argument("concurrency_key", metavar="KEY"))
LIMIT: Final = (
    "queue", "concurrency_key", "max_running", "rate_limit", "rate_period", "rate_burst",
    "running",
)  # fmt: skip
BUDGET: Final = (
    "scope_type", "scope", "concurrency_key", "each_key", "amount", "period", "time_zone", "spent",
    "reserved", "next_period_at",
)  # fmt: skip


def amount(text: str) -> Decimal:
    """Return the number."""
    with suppress(InvalidOperation):
        value = Decimal(text)
        if 0 <= value <= LARGEST_AMOUNT:
            return value
    raise click.BadParameter(f"{text!r} is no amount from 0 to {LARGEST_AMOUNT}")


def held(client: Client, *, queue: str) -> list[dict[str, Any]]:
    """Return the held keys of a queue, and held kinds without keys."""
    shown = {"queue": queue, "max_rows": 1000}
    return client.run(Call("jobq_http.show_queue", shown, scalar))["holds"]  # type: ignore[no-any-return]


SCOPE_TYPE: Final = click.Choice(["queue", "kind"])
SCOPE: Final = (argument("scope_type", type=SCOPE_TYPE), argument("scope"))
KEYS: Final = (
    option("--key", "concurrency_key", help="The budget of this key of the queue."),
    option("--each-key", is_flag=True, help="The budget of each key."),
)

# fmt: off
limits = group(
    "limits", "Limit or hold single concurrency keys.",
    calling("list", "list_limits", "List the limits of single keys in QUEUE or all queues.",
            argument("queue", required=False), rows=LIMIT),
    calling("put", "put_limit",
            "Set the limits of KEY in QUEUE, instead of the queue's limits for each key.", *KEY,
            option("--max-running", type=int, help="Maximum running jobs."),
            option("--rate-limit", type=int, help="Maximum starts per period."),
            option("--rate-period", help="Period, such as '1 min'; one second by default."),
            option("--rate-burst", type=int, help="Maximum starts at once; 1 by default.")),
    calling("delete", "put_limit",
            "Delete the limits of KEY. The limits of QUEUE for each key apply again.", *KEY),
    calling("hold", "hold_key",
            "Start no jobs of KEY in QUEUE for a time. Running jobs continue.", *KEY,
            option("--seconds", "until", type=Seconds(0, LONGEST_DELAY), required=True,
                   callback=as_span, help="Duration of the hold."),
            reason()),
    calling("held", held, "List the held keys of QUEUE, and held kinds without keys.",
            argument("queue"), rows=("concurrency_key", "kind", "until", "reason")),
    calling("release", "release_key", "End the hold of KEY in QUEUE, or of a kind.",
            argument("queue"), argument("concurrency_key", metavar="[KEY]", required=False),
            option("--kind", help="End the hold of this kind's jobs without a key."),
            lines=lambda was_held: ["released" if was_held else "the key was not held"]),
)
budgets = group(
    "budgets", "Set how much jobs may cost in each day, week or month.",
    calling("list", "list_budgets",
            "List budgets, and how much of each is spent and reserved in its present period.",
            argument("scope_type", type=SCOPE_TYPE, required=False),
            argument("scope", required=False), rows=BUDGET),
    calling("put", "put_budget",
            "Set how much the jobs of a queue or kind may cost in each period.",
            *SCOPE, argument("amount", type=amount),
            option("--period", type=click.Choice(["day", "week", "month"]), default="month",
                   help="Period of the calendar."),
            option("--time-zone", default="UTC", help="Where the period begins."), *KEYS),
    calling("delete", "put_budget", "Delete a budget. Its jobs start whatever they cost.",
            *SCOPE, *KEYS, fixed={"amount": None}),
)
# fmt: on
