"""Workers: their state and their jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobq_console.visit import Page, Visit

if TYPE_CHECKING:
    from starlette.responses import Response


async def show(visit: Visit) -> Response:
    """Show all workers."""
    workers = await visit.visitor.document("jobq_http.show_workers")
    return visit.show("workers.html", workers=workers)


PAGES = (Page("/workers", show),)
