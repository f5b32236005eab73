"""The overview: what threatens the promise, how much there is to do, and how it went."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from jobq.console import charts
from jobq.console.visit import Page, Visit
from jobq.console.words import WAITING, is_cut
from jobq.http.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response

COUNTS: Final = ("queued", "scheduled", "retrying", "running", "dead", "blocked")
SPANS: Final = ("hour", "day", "month")
MOST: Final = 10_000
MOST_QUEUES: Final = 200  # of which the sums are
ENDINGS: Final = ("succeeded", "failed", "dead", "cancelled")


async def show(visit: Visit) -> Response:
    """Show the overview."""
    span = one_of(visit.query("span"), SPANS)
    by = one_of(visit.query("by"), ("queue", "kind"))
    ask = visit.visitor
    queues, health, history = await asyncio.gather(
        ask.document("jobq_http.show_queues", max_queues=MOST_QUEUES + 1),
        ask.rows("health"),
        ask.document("jobq_http.show_history", span=span, by=by),
    )
    findings = [(subject, *told) for subject, is_ok, *told in health if not is_ok]
    counts = history["counts"]
    made = charts.stacked(history, [(n, name, enqueued) for n, name, enqueued, *_ in counts])
    ended = charts.outcomes(
        history,
        [
            (n, ending, value)
            for n, _, _, *values in counts
            for ending, value in zip(ENDINGS, values, strict=True)
        ],
    )
    return visit.show(
        "overview.html", queues=len(queues), most=MOST_QUEUES,
        totals=totals(queues[:MOST_QUEUES]), findings=findings,
        checks=len(health), span=span, by=by, spans=SPANS, made=made, ended=ended,
        latency=charts.latency(history), has_latency=bool(history["latency"]),
    )  # fmt: skip


def one_of(given: str | None, known: tuple[str, ...]) -> str:
    """Return what is given, or the first that is known.

    Raises:
        ApiError: it is not known.
    """
    if given is not None and given not in known:
        raise ApiError("INVALID_REQUEST", f"'{given[:80]}' is none of {', '.join(known)}")
    return given or known[0]


def totals(queues: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what queues count together, which sums go on, the oldest wait, how many are paused."""
    sums: dict[str, Any] = {"goes_on": set()}
    for name in COUNTS:
        ends = [q["ends_at"] if name in WAITING else MOST for q in queues]
        counted = sum(min(q[name], end) for q, end in zip(queues, ends, strict=True))
        sums[name] = min(MOST, counted)
        if sum(q[name] for q in queues) > sums[name] or (
            name in WAITING and any(q[name] and is_cut(q) for q in queues)
        ):
            sums["goes_on"].add(name)
    sums["oldest"] = max((q["oldest_runnable_ms"] or 0 for q in queues), default=0)
    sums["paused"] = sum(q["is_paused"] for q in queues)
    return sums


PAGES = (Page("/", show, takes=("span", "by")),)
