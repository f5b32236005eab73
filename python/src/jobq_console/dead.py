"""Dead jobs, grouped by error, to redrive them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobq_console.visit import Page, Visit

if TYPE_CHECKING:
    from starlette.responses import Response


async def show(visit: Visit) -> Response:
    """Show dead jobs by kind, queue and error code."""
    return visit.show("dead.html", dead=await visit.visitor.document("jobq_http.show_dead_jobs"))


PAGES = (Page("/dead", show),)
