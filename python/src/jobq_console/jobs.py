"""Jobs: lists by filter, and search by id."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from starlette.responses import Response

from jobq_console.filters import NAMES, STATES, cursor
from jobq_console.visit import Page, Visit
from jobq_console.words import query

PAGE: Final = 50


async def show(visit: Visit) -> Response:
    """Show a page of jobs."""
    chosen = visit.filter
    found = await visit.visitor.document(
        "jobq_http.show_jobs",
        **chosen.arguments(),
        **cursor(visit.query("before")),
        max_jobs=PAGE,
    )
    return visit.show(
        "jobs.html", chosen=chosen, found=found, states=STATES, is_first=not visit.query("before")
    )


async def look_up(visit: Visit) -> Response:
    """Redirect to a job by its id, or to the jobs with this part of an id, key or error."""
    given = (visit.query("search") or "").strip()
    try:
        return visit.back(f"/jobs/{UUID(given)}")
    except ValueError:
        return visit.back(f"/jobs?{query({'search': given})}")


PAGES = (
    Page("/jobs", show, takes=(*NAMES, "before")),
    Page("/jobs/find", look_up, takes=("search",)),
)
