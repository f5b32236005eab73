"""The overview: findings of health(), totals and history."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from psycopg.errors import QueryCanceled
from starlette.responses import Response

from jobq_console import charts
from jobq_console.visit import Page, Visit
from jobq_console.visitor import Visitor
from jobq_http.errors import ApiError

SPANS: Final = ("hour", "day", "month")


async def show(visit: Visit) -> Response:
    """Show the overview."""
    span = one_of(visit.query("span"), SPANS)
    by = one_of(visit.query("by"), ("queue", "kind"))
    ask = visit.visitor
    totals, health, history = await asyncio.gather(
        ask.document("jobq_http.show_totals"),
        checks(ask),
        ask.document("jobq_http.show_history", span=span, by=by, max_buckets=charts.MOST_BARS),
    )
    findings = [(subject, *told) for subject, is_ok, *told, _ in health if not is_ok]
    made, ended = charts.stacked(history, 2), charts.outcomes(history)
    return visit.show(
        "overview.html", totals=totals, findings=findings, checks=len(health), span=span, by=by,
        spans=SPANS, made=made, ended=ended, latency=charts.latency(history),
        has_latency=bool(history["latency"]),
    )  # fmt: skip


async def checks(ask: Visitor) -> list[tuple[Any, ...]]:
    """Return the checks of health(), or one that failed if they took too long."""
    try:
        return await ask.rows("health")
    except QueryCanceled:
        remedy = "find in pg_stat_activity why the server is busy, and try again"
        return [("health", False, "could not be checked in time", remedy, "failure")]


def one_of(given: str | None, known: tuple[str, ...]) -> str:
    """Return a valid choice; the first one by default."""
    if given is not None and given not in known:
        raise ApiError("INVALID_REQUEST", f"'{given[:80]}' is none of {', '.join(known)}")
    return given or known[0]


PAGES = (Page("/", show, takes=("span", "by")),)
