"""Limits of single concurrency keys, and holds."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from jobq import models
from jobq_http.declared import section
from jobq_http.page import Paging
from jobq_http.values import answer, answer_of, page_of, request

ScopeType = Literal["queue", "kind"]
LimitsOf = request("LimitsOf", "Which limits to list.", "queue?", Paging)
OneKey = request("OneKey", "A concurrency key of a queue.", "queue concurrency_key")
NewLimit = request(
    "NewLimit",
    "What holds for one key, in place of what its queue says; one of two is needed.",
    "max_running? rate_limit? rate_period_ms? rate_burst?",
    OneKey,
)
NewBudget = request(
    "NewBudget",
    "How much jobs may cost in each period of the calendar.",
    "scope_type scope amount period time_zone concurrency_key? each_key",
    scope_type=ScopeType,
    amount=Annotated[float, Meta(ge=0, le=1e15, description="null: no budget.")] | None,
    period=Literal["day", "week", "month"],
    concurrency_key="One key, in place of each.",
    each_key=(bool, "Whether it is the budget of each key."),
    defaults={"period": "month", "time_zone": "UTC", "each_key": False},
)
BudgetsOf = request(
    "BudgetsOf",
    "Which budgets to list.",
    "scope_type? scope? max_keys",
    Paging,
    scope_type=ScopeType,
    max_keys=Annotated[int, Meta(ge=0, le=1000, description="Of a budget of each key.")],
    defaults={"max_keys": 100},
)
KeyHold = request("KeyHold", "Until when a key is held, and why.", "until reason?", OneKey)
Budget = answer_of(models.Budget, "Budget")
Budgets = page_of("Budgets", "A page of budgets, by scope and key.", Budget)
ChangedBudget = answer("ChangedBudget", "The scope whose budget has changed.", "scope_type scope")
Limit = answer_of(models.Limit, "Limit")
Limits = page_of("Limits", "A page of limits of single keys, by queue and key.", Limit)
Changed = answer("Changed", "The key whose limit or hold has changed.", "queue concurrency_key")
Released = answer("Released", "Whether the key was held.", "was_held", Changed)
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
