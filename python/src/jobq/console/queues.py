"""Queues: how deep, how fast, how old; pause and resume."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from jobq.console.visit import Page, Visit

if TYPE_CHECKING:
    from starlette.responses import Response


async def show(visit: Visit) -> Response:
    """Show all queues."""
    queues, history = await asyncio.gather(
        visit.visitor.document("jobq_http.show_queues"),
        visit.visitor.document("jobq_http.show_history"),
    )
    return visit.show("queues.html", queues=queues, history=history)


async def pause(visit: Visit) -> Response:
    """Stop claims from a queue."""
    queue = visit.form.get("queue", "")
    await visit.visitor.act("pause_queue", queue=queue, reason=visit.form.get("reason") or None)
    visit.tell(f"Queue {queue} is paused: what runs goes on, nothing new is claimed.")
    return visit.back("/queues")


async def resume(visit: Visit) -> Response:
    """Allow claims from a queue again."""
    queue = visit.form.get("queue", "")
    await visit.visitor.act("resume_queue", queue=queue)
    visit.tell(f"Queue {queue} runs again.")
    return visit.back("/queues")


PAGES = (
    Page("/queues", show),
    Page("/queues/pause", pause, "POST"),
    Page("/queues/resume", resume, "POST"),
)
