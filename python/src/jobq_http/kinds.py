"""Kinds: what operators declare of them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from jobq.calls.options import Dedup, OnDead, RetryStrategy
from jobq_http.declared import section
from jobq_http.operation import Answer
from jobq_http.page import Paging
from jobq_http.values import (
    Attempts,
    JsonMembers,
    Milliseconds,
    Moment,
    Name,
    Priority,
    Rate,
    Request,
    Text,
    page_of,
)

Pause = Annotated[float, Meta(ge=0, le=31_536_000_000, multiple_of=1)]
Lease = Annotated[float, Meta(ge=1000, le=86_400_000, multiple_of=1)]
Keep = Annotated[float, Meta(ge=3_600_000, le=31_536_000_000_000, multiple_of=1)]
Places = Annotated[float, Meta(ge=1, le=32767, multiple_of=1)]


class KindOptions(Request, kw_only=True):
    """What is declared of a kind; the rest is left to its queue, or to the default."""

    kind: Name
    queue: Name | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    timeout_ms: Milliseconds | None = None
    lease_ms: Lease | None = None
    retry_preset: Text | None = None
    retry_strategy: RetryStrategy | None = None
    retry_initial_delay_ms: Pause | None = None
    retry_max_delay_ms: Pause | None = None
    retry_jitter: Annotated[float, Meta(ge=0, le=1)] | None = None
    dedup: Dedup | None = None
    dedup_period_ms: Milliseconds | None = None
    dedup_max_wait_ms: Milliseconds | None = None
    reuse_key_after_failure: bool | None = None
    payload_schema: JsonMembers | None = None
    run: (
        Annotated[Text, Meta(description="A function of the database, with its schema.")] | None
    ) = None
    retry_on: Annotated[list[Text], Meta(max_length=100)] | None = None
    concurrency_key: Annotated[list[Text], Meta(min_length=1, max_length=16)] | None = None
    cost: Annotated[list[Text], Meta(min_length=1, max_length=16)] | None = None
    max_running: Places | None = None
    rate_limit: Rate | None = None
    rate_period_ms: Milliseconds | None = None
    rate_burst: Rate | None = None
    key_max_running: Places | None = None
    key_rate_limit: Rate | None = None
    key_rate_period_ms: Milliseconds | None = None
    key_rate_burst: Rate | None = None
    ordered: (
        Annotated[bool, Meta(description="Its jobs of each key run one at a time, in their order.")]
        | None
    ) = None
    on_dead: OnDead | None = None
    keep_succeeded_ms: (
        Annotated[
            float,
            Meta(ge=0, le=31_536_000_000_000, multiple_of=1, description="0: they leave no trace."),
        ]
        | None
    ) = None
    keep_dead_ms: Keep | None = None
    keep_cancelled_ms: Keep | None = None


class NewKind(KindOptions, kw_only=True):
    """What is declared of a kind; what is left out is left to its queue, or to the default."""

    version: (
        Annotated[
            float,
            Meta(
                ge=1,
                le=9_007_199_254_740_991,
                multiple_of=1,
                description="Nothing is changed where this version or a newer one declared it.",
            ),
        ]
        | None
    ) = None


class Kind(KindOptions, kw_only=True):
    """What is declared of a kind; null where its queue or the default speaks."""

    is_endpoint: bool
    version: Annotated[int | None, Meta(description="Of the program that declared it.")]
    updated_at: Moment


Kinds = page_of("Kinds", "A page of the kinds that are declared, by name.", Kind)


class OfWhat(Struct, forbid_unknown_fields=True):
    """Whose settings: those of a kind, in a queue; without them the defaults."""

    kind: Name | None = None
    queue: Name | None = None


Settings = Annotated[
    dict[str, Any],
    Meta(description="By name, as `settings` of the database says; times are intervals."),
]


class Declared(Struct):
    """The kind that was declared."""

    kind: str


of = section("queues")
# fmt: off
OPERATIONS = (
    of("GET /kinds", "list_kinds", "List the kinds that are declared", "read operate", Kinds,
       query=Paging, order=lambda row: row["kind"]),
    of("POST /kinds", "put_kind", "Declare a kind, or replace what is declared of it",
       "operate", Declared, body=NewKind,
       errors="FUNCTION_DENIED IS_ENDPOINT FUNCTION_NOT_FOUND INVALID_SCHEMA",
       examples={"a queue, retries and retention": {
           "kind": "send_email", "queue": "mail", "max_attempts": 3, "timeout_ms": 30000,
           "keep_succeeded_ms": 0,
       }}),
    of("DELETE /kinds/{kind}", "delete_kind",
       "Forget what is declared of a kind without live jobs and recurring jobs", "operate",
       errors="KIND_NOT_FOUND CONFLICT IS_ENDPOINT"),
    of("GET /settings", "settings", "Show what holds for a new job: kind, else queue, else default",
       "read operate", {200: Answer("What holds.", Settings)}, query=OfWhat),
)
# fmt: on
