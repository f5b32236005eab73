"""Kinds: what operators declare of them."""

from __future__ import annotations

from typing import Annotated, Any, Final, get_type_hints

from msgspec import Meta

from jobq.calls import options
from jobq.models import words_of
from jobq_http.declared import section
from jobq_http.operation import Answer
from jobq_http.page import Paging
from jobq_http.queues import Pause
from jobq_http.values import GIVEN, SPAN, Name, RequestPart, Text, answer, page_of, request

Keep = Annotated[float, Meta(ge=3_600_000, le=31_536_000_000_000, multiple_of=1)]
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
    "keep_cancelled_ms": Keep,
    "keep_dead_ms": Keep,
    "keep_succeeded_ms": Annotated[float, Meta(ge=0, le=31_536_000_000_000, multiple_of=1)],
    "lease_ms": Annotated[float, Meta(ge=1000, le=86_400_000, multiple_of=1)],
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
Pausing = answer("KindPausing", "Whether a kind is paused.", "kind is_paused")
Declared = answer("Declared", "The kind that was declared.", "kind")
of = section("queues")
# fmt: off
OPERATIONS = (
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
       "operate", Pausing, body=Pause, always={"is_paused": True},
       examples={"why": {"reason": "the mail provider is down"}}),
    of("POST /kinds/{kind}/resume", "resume_kind", "Resume claims of jobs of a kind",
       "operate", Pausing, always={"is_paused": False}),
    of("GET /settings", "settings", "Show the effective settings of a kind and queue",
       "read operate", {200: Answer("The effective settings.", Settings)}, query=OfWhat),
)
# fmt: on
