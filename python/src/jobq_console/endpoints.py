"""Endpoints: targets, success rates of the last day; pause and resume."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response

from jobq_console.visit import Page, Visit, acting, in_form

NEWEST: Final = 2000  # dead jobs, of which the last errors are told


async def show(visit: Visit) -> Response:
    """Show endpoints with their success rates and errors."""
    ask = visit.visitor
    (endpoints, more), history, dead = await asyncio.gather(
        ask.page(
            "page_definitions", type="endpoint", max_definitions=100, after=visit.query("after")
        ),
        ask.document("jobq_http.show_history", span="day", by="kind"),
        ask.document("jobq_http.show_dead_jobs", max_looked=NEWEST),
    )
    errors: dict[str, Any] = {}
    for group in dead["groups"]:
        errors.setdefault(group["kind"], group)
    return visit.show(
        "endpoints.html",
        endpoints=endpoints,
        more=more,
        rates=rates(history),
        errors=errors,
        are_all=dead["is_all"],
    )


def rates(history: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return for each kind the number of successful and of all attempts."""
    sums: dict[str, tuple[int, int]] = {}
    for _, kind, _, succeeded, failed, dead, _ in history["counts"]:
        good, all_ = sums.get(kind, (0, 0))
        sums[kind] = good + succeeded, all_ + succeeded + failed + dead
    return sums


PAGES = (
    Page("/endpoints", show, takes=("after",)),
    acting("/endpoints/pause", "pause_endpoint", in_form("endpoint"),
           "Deliveries to {endpoint} are paused."),
    acting("/endpoints/resume", "resume_endpoint", in_form("endpoint"),
           "Deliveries to {endpoint} are resumed."),
)  # fmt: skip
