"""Queues, kinds, and the limits, holds and budgets of single concurrency keys."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_type_hints

from msgspec import Meta

from jobq import models
from jobq.calls import options
from jobq.models import QueueStats, words_of
from jobq_http.operation import Answer, section
from jobq_http.page import Paging
from jobq_http.values import (
    GIVEN,
    SPAN,
    Name,
    RequestPart,
    Text,
    answer,
    answer_of,
    page_of,
    request,
)

Pause = request("Pause", "Why something is paused.", "reason?")
Queue = answer_of(QueueStats, "Queue")
QueuePage = page_of("QueuePage", "A page of queues, by name.", Queue)
KeyOf = request("KeyOf", "Which key to look at.", "concurrency_key?", RequestPart)
Runner = answer(
    "Runner",
    "A running job that holds a key.",
    "concurrency_key job_id kind worker? started_at?",
)
Hold = answer(
    "Hold",
    "A key, or a kind in a queue, that starts no job; until it is released where it has no end.",
    "concurrency_key? kind? until? reason?",
)
Allowance = answer(
    "Allowance",
    "The limits of a key; null if not set.",
    "concurrency_key max_running? rate_limit? rate_period_ms? rate_burst?",
)
KindAllowance = answer(
    "KindAllowance",
    "The limits of each key of a kind, in all queues; null if not set.",
    "kind max_running? rate_limit? rate_period_ms? rate_burst?",
)
KeyState = answer(
    "KeyState",
    "The present limits of a key.",
    "is_held held_until? hold_reason? waiting runners* kinds*",
    Allowance,
    waiting="10001 means more.",
    runners=(Runner, "Also in other queues, of kinds that have limits for each key."),
    kinds=(KindAllowance, "Kinds with limits for each key, which apply instead."),
)
ClosedKey = answer(
    "ClosedKey",
    "A key with waiting jobs, and when the next can start.",
    "concurrency_key open_at",
)
QueueBudget = answer(
    "QueueBudget",
    "A budget per calendar period, and the amount spent.",
    "scope_type scope concurrency_key? each_key amount period time_zone spent? reserved?"
    " next_period_at",
)
QueueInDetail = answer(
    "QueueInDetail",
    "Limits of a queue, its held keys, and the jobs that hold keys.",
    "queue is_declared paused_at? pause_reason? max_depth? max_running? rate_limit?"
    " rate_period_ms? rate_burst? key_max_running? key_rate_limit? key_rate_period_ms?"
    " key_rate_burst? ordered on_dead? holds* limits* budgets* runners* closed* key?",
    holds=(Hold, "100 at most, as of all lists here."),
    limits=Allowance,
    budgets=(QueueBudget, "Of the queue, its keys, and the kinds that belong to it."),
    runners=Runner,
    closed=ClosedKey,
    key=(KeyState, "Of the key that was asked for."),
)
Pausing = answer("Pausing", "Whether a queue is paused.", "queue is_paused")


ScopeType = Literal["queue", "kind"]
LimitsOf = request("LimitsOf", "Which limits to list.", "queue?", Paging)
OneKey = request("OneKey", "A concurrency key of a queue.", "queue concurrency_key")
NewLimit = request(
    "NewLimit",
    "Limits of one key, instead of its queue's; without one, those of the queue apply.",
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


Path = Annotated[list[Text], Meta(min_length=1, max_length=16)]
Version = Annotated[float, Meta(ge=1, le=9_007_199_254_740_991, multiple_of=1)]
# What `GIVEN` has no type for, or where a kind has another.
TYPES: Final[dict[str, Any]] = {
    "concurrency_key": (Path, "Path of the concurrency key in the payload."),
    "cost": (Path, "Path of the cost, a number, in the payload; without it a job costs 1."),
    "dead_letter_kind": Name,
    "dedup_key": (
        Annotated[list[Text], Meta(max_length=16)],
        "Path of the dedup key in the payload; an empty path is the whole payload.",
    ),
    "retry_on": Annotated[list[Text], Meta(max_length=100)],
}


def kind_options() -> dict[str, Any]:
    """Return types and words of the options of kinds, which the client lists."""
    words = words_of(options.LimitOptions, options.CommonOptions, options.KindOptions)
    names = [n + SPAN * (n in options.SPANS) for n in get_type_hints(options.KindOptions)]
    types = {**GIVEN, **TYPES}
    found = {n: types[n] for n in names if n != "version"}
    return {
        n: t if isinstance(t, tuple) else (t, words[n.removesuffix(SPAN)]) for n, t in found.items()
    }


KindOptions = request(
    "KindOptions",
    "What is declared of a kind; the rest is left to its queue, or to the default.",
    f"kind {' '.join(f'{name}?' for name in kind_options())}",
    **kind_options(),
)
NewKind = request(
    "NewKind",
    "The declaration of a kind; omitted members mean the queue's setting or the default.",
    "version?",
    KindOptions,
    version=(Version, "Changes nothing if this version or a newer one has declared it."),
)
Kind = answer(
    "Kind",
    "The declaration of a kind; null means the queue's setting or the default.",
    "is_endpoint version? updated_at paused_at? pause_reason?",
    KindOptions,
    version="Of the program that declared it.",
)
Kinds = page_of("Kinds", "A page of declared kinds, by name.", Kind)
OfWhat = request(
    "OfWhat",
    "Whose settings: those of a kind, in a queue; without them the defaults.",
    "kind? queue?",
    RequestPart,
)
Settings = Annotated[
    dict[str, Any],
    Meta(description="By name, as from the function `settings`; times are intervals."),
]
KindPausing = answer("KindPausing", "Whether a kind is paused.", "kind is_paused")
Declared = answer("Declared", "The kind that was declared.", "kind")


of = section("queues")
# fmt: off
OPERATIONS = (
    of("GET /queues", "queue_stats", "List queues and their statistics, by name",
       "read operate", QueuePage, query=Paging, order=lambda row: row["queue"], may_lag=True),
    of("POST /queues/{queue}/pause", "pause_queue",
       "Stop claims from a queue; running jobs continue, and jobs can be created",
       "operate", Pausing, body=Pause, always={"is_paused": True},
       examples={"why": {"reason": "the mail provider is down"}}),
    of("POST /queues/{queue}/resume", "resume_queue", "Resume claims from a queue",
       "operate", Pausing, always={"is_paused": False}, errors="QUEUE_NOT_FOUND"),
    of("GET /queues/{queue}", "jobq_http.show_queue",
       "Limits of a queue, its held keys, and the jobs that hold keys",
       "read operate", QueueInDetail, query=KeyOf, may_lag=True),
    of("GET /limits", "list_limits", "List the limits of single concurrency keys",
       "read operate", Limits, query=LimitsOf,
       order=lambda row: [row["queue"], row["concurrency_key"]]),
    of("POST /limits", "put_limit", "Set limits for one key, instead of its queue's",
       "operate", Changed, body=NewLimit, examples={"two at once": {**CUSTOMER, "max_running": 2}}),
    of("POST /limits/delete", "put_limit", "Delete the limits of one key",
       "operate", Changed, body=OneKey,
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
    of("GET /kinds", "list_kinds", "List declared kinds", "read operate", Kinds,
       query=Paging, order=lambda row: row["kind"]),
    of("POST /kinds", "put_kind", "Declare a kind, replacing its declaration",
       "operate", Declared, body=NewKind,
       errors="FUNCTION_DENIED IS_ENDPOINT FUNCTION_NOT_FOUND INVALID_SCHEMA",
       examples={"a queue, retries and retention": {
           "kind": "send_email", "queue": "mail", "max_attempts": 3, "timeout_ms": 30000,
           "keep_succeeded_ms": 0,
       }}),
    of("DELETE /kinds/{kind}", "delete_kind",
       "Delete the declaration of a kind without live jobs and recurring jobs", "operate",
       errors="KIND_NOT_FOUND CONFLICT IS_ENDPOINT"),
    of("POST /kinds/{kind}/pause", "pause_kind",
       "Stop claims of jobs of a kind in all queues; running jobs continue",
       "operate", KindPausing, body=Pause, always={"is_paused": True},
       examples={"why": {"reason": "the mail provider is down"}}),
    of("POST /kinds/{kind}/resume", "resume_kind", "Resume claims of jobs of a kind",
       "operate", KindPausing, always={"is_paused": False}),
    of("GET /settings", "settings", "Show the effective settings of a kind and queue",
       "read operate", {200: Answer("The effective settings.", Settings)}, query=OfWhat),
)
# fmt: on
