"""Queues: depth, rate and age; pause and resume; keys and the jobs that hold them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from starlette.responses import Response

from jobq_console import charts
from jobq_console.visit import Page, Visit, acting, in_form

PAGE: Final = 200
MOST_SERVERS: Final = 20
HOURS: Final = ("1", "4", "24")


async def show(visit: Visit) -> Response:
    """Show a page of queues by name, sorted by urgency."""
    first = visit.query("first")
    found, history = await asyncio.gather(
        visit.visitor.document(
            "jobq_http.show_queues", max_queues=PAGE + 1, **({"first": first} if first else {})
        ),
        visit.visitor.document("jobq_http.show_history"),
    )
    return visit.show(
        "queues.html", queues=sorted(found[:PAGE], key=sickness), trends=charts.trends(history),
        is_first=not first,
        following=found[PAGE]["queue"] if len(found) > PAGE else None,
    )  # fmt: skip


def sickness(queue: dict[str, Any]) -> tuple[float, int, int, str]:
    """Return the sort key of a queue: the longest wait, then dead jobs, then depth."""
    waited = queue["oldest_runnable_ms"] or 0
    return -waited, -queue["dead"], -queue["queued"], queue["queue"]


async def show_one(visit: Visit) -> Response:
    """Show the limits of a queue, its held keys, and the jobs that hold keys."""
    queue, key = visit.query("name") or "", visit.query("key")
    asked = {"queue": queue, **({"concurrency_key": key} if key else {})}
    document, history, standing, workers = await asyncio.gather(
        visit.visitor.document("jobq_http.show_queue", **asked),
        visit.visitor.document("jobq_http.show_history", queue=queue, by="kind"),
        visit.visitor.document("jobq_http.show_queues", max_queues=1, first=queue),
        visit.visitor.document("jobq_http.show_workers"),
    )
    is_there = bool(standing) and standing[0]["queue"] == queue
    ended = charts.stacked(history, 3)
    servers = [w["worker"] for w in workers if w["is_live"] and queue in w["queues"]]
    return visit.show(
        "queue.html", q=document, standing=standing[0] if is_there else None, ended=ended,
        asked=key or "", servers=servers, most_servers=MOST_SERVERS,
    )  # fmt: skip


async def hold(visit: Visit) -> Response:
    """Hold a key for some hours or until it is released."""
    queue, key = visit.form.get("queue", ""), visit.form.get("key", "")
    hours = visit.form.get("hours", "")
    until = datetime.now(UTC) + timedelta(hours=int(hours)) if hours in HOURS else "infinity"
    await visit.visitor.act(
        "hold_key", queue=queue, concurrency_key=key, until=until, reason=visit.reason
    )
    visit.tell(f"Key {key} is held: no job starts, running jobs continue.")
    return visit.back("/queues")


async def release(visit: Visit) -> Response:
    """Release a held key."""
    queue, key = visit.form.get("queue", ""), visit.form.get("key", "")
    [(was_held,)] = await visit.visitor.act("release_key", queue=queue, concurrency_key=key)
    visit.tell(f"Key {key} is released." if was_held else f"Key {key} was not held.")
    return visit.back("/queues")


PAGES = (
    Page("/queues", show, takes=("first",)),
    acting("/queues/pause", "pause_queue", in_form("queue"),
           "Queue {queue} is paused. Running jobs continue."),
    acting("/queues/resume", "resume_queue", in_form("queue"), "Queue {queue} is resumed."),
    Page("/queue/hold", hold, "POST"),
    Page("/queue/release", release, "POST"),
    Page("/queue", show_one, takes=("name", "key")),
)  # fmt: skip
