"""Limits of single concurrency keys, and holds."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from jobq import models
from jobq_http.declared import section
from jobq_http.page import Paging
from jobq_http.values import (
    ConcurrencyKey,
    Milliseconds,
    Moment,
    Name,
    Rate,
    Reason,
    Request,
    answer_of,
    page_of,
)

Places = Annotated[float, Meta(ge=1, le=32767, multiple_of=1)]


class LimitsOf(Paging, forbid_unknown_fields=True, kw_only=True):
    """Which limits to list."""

    queue: Name | None = None


class OneKey(Request):
    """A concurrency key of a queue."""

    queue: Name
    concurrency_key: ConcurrencyKey


class NewLimit(OneKey, kw_only=True):
    """What holds for one key, in place of what its queue says; one of two is needed."""

    max_running: Places | None = None
    rate_limit: Rate | None = None
    rate_period_ms: Milliseconds | None = None
    rate_burst: Rate | None = None


class NewBudget(Request, kw_only=True):
    """How much jobs may cost in each period of the calendar."""

    scope_type: Literal["queue", "kind"]
    scope: Name
    amount: Annotated[float, Meta(ge=0, le=1e15, description="null: no budget.")] | None
    period: Literal["day", "week", "month"] = "month"
    time_zone: Name = "UTC"
    concurrency_key: (
        Annotated[ConcurrencyKey, Meta(description="One key, in place of each.")] | None
    ) = None
    each_key: Annotated[bool, Meta(description="Whether it is the budget of each key.")] = False


class BudgetsOf(Paging, forbid_unknown_fields=True, kw_only=True):
    """Which budgets to list."""

    scope_type: Literal["queue", "kind"] | None = None
    scope: Name | None = None
    max_keys: Annotated[int, Meta(ge=0, le=1000, description="Of a budget of each key.")] = 100


Budget = answer_of(models.Budget, "Budget")
Budgets = page_of("Budgets", "A page of budgets, by scope and key.", Budget)


class ChangedBudget(Struct):
    """The scope whose budget has changed."""

    scope_type: str
    scope: str


class KeyHold(OneKey, kw_only=True):
    """Until when a key is held, and why."""

    until: Moment
    reason: Reason | None = None


Limit = answer_of(models.Limit, "Limit")
Limits = page_of("Limits", "A page of limits of single keys, by queue and key.", Limit)


class Changed(Struct):
    """The key whose limit or hold has changed."""

    queue: str
    concurrency_key: str


class Released(Changed):
    """Whether the key was held."""

    was_held: bool


CUSTOMER = {"queue": "reports", "concurrency_key": "customer-42"}
of = section("queues")
# fmt: off
OPERATIONS = (
    of("GET /limits", "list_limits", "List the limits of single concurrency keys",
       "read operate", Limits, query=LimitsOf,
       order=lambda row: [row["queue"], row["concurrency_key"]]),
    of("POST /limits", "put_limit", "Say what holds for one key, in place of what its queue says",
       "operate", Changed, body=NewLimit, examples={"two at once": {**CUSTOMER, "max_running": 2}}),
    of("POST /limits/delete", "delete_limit", "Have one key follow its queue again",
       "operate", Changed, body=OneKey, errors="LIMIT_NOT_FOUND",
       examples={"a customer": CUSTOMER}),
    of("POST /limits/hold", "hold_key", "Start no job of one key until a time",
       "operate", Changed, body=KeyHold,
       examples={"until noon": {**CUSTOMER, "until": "2026-03-15T12:00:00Z", "reason": "moving"}}),
    of("POST /limits/release", "release_key", "Let the jobs of a held key start again",
       "operate", Released, body=OneKey, value="was_held", examples={"a customer": CUSTOMER}),
    of("GET /budgets", "list_budgets", "List the budgets, and what is spent of each",
       "read operate", Budgets, query=BudgetsOf,
       order=lambda row: [row["scope_type"], row["scope"], row["each_key"],
                          row["concurrency_key"] or ""]),
    of("POST /budgets", "put_budget", "Say how much jobs may cost in each day, week or month",
       "operate", ChangedBudget, body=NewBudget, errors="KIND_NOT_FOUND INVALID_TIME_ZONE",
       examples={"a million tokens a day": {
           "scope_type": "queue", "scope": "llm", "amount": 1000000, "period": "day",
           "time_zone": "Europe/Berlin",
       }}),
)
# fmt: on
