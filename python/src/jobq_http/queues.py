"""Queues: statistics, pause and resume."""

from __future__ import annotations

from jobq.models import QueueStats
from jobq_http.declared import section
from jobq_http.page import Paging
from jobq_http.values import RequestPart, answer, answer_of, page_of, request

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
KeyState = answer(
    "KeyState",
    "The present limits of a key.",
    "is_held held_until? hold_reason? waiting runners*",
    Allowance,
    waiting="10001 means more.",
    runners=Runner,
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
)
# fmt: on
