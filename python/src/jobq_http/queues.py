"""Queues: statistics, pause and resume."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from jobq.calls.options import OnDead
from jobq.models import QueueStats
from jobq_http.declared import section
from jobq_http.page import Paging
from jobq_http.values import ConcurrencyKey, Moment, Reason, Request, answer_of, page_of


class Pause(Request):
    """Why something is paused."""

    reason: Reason | None = None


Queue = answer_of(QueueStats, "Queue")
QueuePage = page_of("QueuePage", "A page of queues, by name.", Queue)


class KeyOf(Struct, forbid_unknown_fields=True):
    """Which key to look at."""

    concurrency_key: ConcurrencyKey | None = None


class Runner(Struct):
    """A job that takes a place of a key."""

    concurrency_key: str
    job_id: UUID
    kind: str
    worker: str | None
    started_at: Moment | None


class Hold(Struct):
    """A key, or a kind in a queue, that starts no job; until it is released where it has no end."""

    concurrency_key: str | None
    kind: str | None
    until: Moment | None
    reason: str | None


class Allowance(Struct):
    """What a key may; null where nothing is said."""

    concurrency_key: str
    max_running: int | None
    rate_limit: int | None
    rate_period_ms: int | None
    rate_burst: int | None


class KeyState(Allowance):
    """What holds for a key now."""

    is_held: bool
    held_until: Moment | None
    hold_reason: str | None
    waiting: Annotated[int, Meta(description="10001 means more.")]
    runners: list[Runner]


class ClosedKey(Struct):
    """A key that has work and waits for a time."""

    concurrency_key: str
    open_at: Moment


class QueueBudget(Struct):
    """How much jobs may cost in each period of the calendar, and what is spent of it."""

    scope_type: str
    scope: str
    concurrency_key: str | None
    each_key: bool
    amount: float
    period: str
    time_zone: str
    spent: float | None
    reserved: float | None
    next_period_at: Moment


class QueueInDetail(Struct):
    """What a queue allows, which of its keys are held, and which jobs hold keys."""

    queue: str
    is_declared: bool
    paused_at: Moment | None
    pause_reason: str | None
    max_depth: int | None
    max_running: int | None
    rate_limit: int | None
    rate_period_ms: int | None
    rate_burst: int | None
    key_max_running: int | None
    key_rate_limit: int | None
    key_rate_period_ms: int | None
    key_rate_burst: int | None
    ordered: bool
    on_dead: OnDead | None
    holds: Annotated[list[Hold], Meta(description="100 at most, as of all lists here.")]
    limits: list[Allowance]
    budgets: Annotated[
        list[QueueBudget],
        Meta(description="Of the queue, its keys, and the kinds that belong to it."),
    ]
    runners: list[Runner]
    closed: list[ClosedKey]
    key: Annotated[KeyState | None, Meta(description="Of the key that was asked for.")]


class Pausing(Struct):
    """Whether a queue is paused."""

    queue: str
    is_paused: bool


of = section("queues")
# fmt: off
OPERATIONS = (
    of("GET /queues", "jobq_http.page_queues", "List queues and their statistics, by name",
       "read operate", QueuePage, query=Paging, place=("after", str, "max_queues"), may_lag=True),
    of("POST /queues/{queue}/pause", "pause_queue",
       "Stop claims from a queue; what runs goes on, and so does creating jobs",
       "operate", Pausing, body=Pause, says={"is_paused": True},
       examples={"why": {"reason": "the mail provider is down"}}),
    of("POST /queues/{queue}/resume", "resume_queue", "Allow claims from a queue again",
       "operate", Pausing, says={"is_paused": False}, errors="QUEUE_NOT_FOUND"),
    of("GET /queues/{queue}", "jobq_http.show_queue",
       "What a queue allows, which of its keys are held, and which jobs hold keys",
       "read operate", QueueInDetail, query=KeyOf, may_lag=True),
)
# fmt: on
