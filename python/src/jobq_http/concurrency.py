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
    "Limits of one key, instead of its queue's; at least one is required.",
    "max_running? rate_limit? rate_period_ms? rate_burst?",
    OneKey,
)
NewBudget = request(
    "NewBudget",
    "A budget per calendar period.",
    "scope_type scope amount period time_zone concurrency_key? each_key",
    scope_type=ScopeType,
    amount=Annotated[float, Meta(ge=0, le=1e15, description="null means no budget.")] | None,
    period=Literal["day", "week", "month"],
    concurrency_key="One key instead of each key.",
    each_key=(bool, "Whether it is the budget of each key."),
    defaults={"period": "month", "time_zone": "UTC", "each_key": False},
)
BudgetsOf = request(
    "BudgetsOf",
    "Which budgets to list.",
    "scope_type? scope? max_keys",
    Paging,
    scope_type=ScopeType,
    max_keys=Annotated[int, Meta(ge=0, le=1000, description="For a budget of each key.")],
    defaults={"max_keys": 100},
)
HeldKey = request(
    "HeldKey",
    "A held key of a queue, or a kind whose jobs without a key are held in it.",
    "queue concurrency_key? kind?",
)
KeyHold = request("KeyHold", "The end of a key's hold, and its reason.", "until reason?", OneKey)
Budget = answer_of(models.Budget, "Budget")
Budgets = page_of("Budgets", "A page of budgets, by scope and key.", Budget)
ChangedBudget = answer("ChangedBudget", "The scope whose budget has changed.", "scope_type scope")
Limit = answer_of(models.Limit, "Limit")
Limits = page_of("Limits", "A page of limits of single keys, by queue and key.", Limit)
Changed = answer("Changed", "The key whose limit or hold has changed.", "queue concurrency_key")
Released = answer(
    "Released", "Whether the key or kind was held.", "was_held queue concurrency_key? kind?"
)
CUSTOMER = {"queue": "reports", "concurrency_key": "customer-42"}
of = section("queues")
# fmt: off
OPERATIONS = (
    of("GET /limits", "list_limits", "List the limits of single concurrency keys",
       "read operate", Limits, query=LimitsOf,
       order=lambda row: [row["queue"], row["concurrency_key"]]),
    of("POST /limits", "put_limit", "Set limits for one key, instead of its queue's",
       "operate", Changed, body=NewLimit, examples={"two at once": {**CUSTOMER, "max_running": 2}}),
    of("POST /limits/delete", "delete_limit", "Delete the limits of one key",
       "operate", Changed, body=OneKey, errors="LIMIT_NOT_FOUND",
       examples={"a customer": CUSTOMER}),
    of("POST /limits/hold", "hold_key", "Hold one key until a time",
       "operate", Changed, body=KeyHold,
       examples={"until noon": {**CUSTOMER, "until": "2026-03-15T12:00:00Z", "reason": "moving"}}),
    of("POST /limits/release", "release_key", "Release a held key or kind",
       "operate", Released, body=HeldKey, value="was_held",
       examples={"a customer": CUSTOMER, "a kind": {"queue": "reports", "kind": "report"}}),
    of("GET /budgets", "list_budgets", "List the budgets and the amounts spent",
       "read operate", Budgets, query=BudgetsOf,
       order=lambda row: [row["scope_type"], row["scope"], row["each_key"],
                          row["concurrency_key"] or ""]),
    of("POST /budgets", "put_budget", "Set a budget per day, week or month",
       "operate", ChangedBudget, body=NewBudget, errors="KIND_NOT_FOUND INVALID_TIME_ZONE",
       examples={"a million tokens a day": {
           "scope_type": "queue", "scope": "llm", "amount": 1000000, "period": "day",
           "time_zone": "Europe/Berlin",
       }}),
)
# fmt: on
