"""Jobs: lists by filter, and the way to one by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from jobq.console.filters import NAMES, STATES, Filter, cursor
from jobq.console.visit import Page, Visit
from jobq.http.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response

PAGE: Final = 50


async def show(visit: Visit) -> Response:
    """Show a page of jobs."""
    chosen = Filter.asked(visit)
    found = await visit.visitor.document(
        "jobq_http.show_jobs",
        **chosen.arguments(),
        **({"before": at} if (at := cursor(visit.query("before"))) else {}),
        max_jobs=PAGE,
    )
    return visit.show(
        "jobs.html", chosen=chosen, found=found, states=STATES, is_first=not visit.query("before")
    )


async def look_up(visit: Visit) -> Response:
    """Lead to a job by its id."""
    given = (visit.query("id") or "").strip()
    try:
        job_id = UUID(given)
    except ValueError as error:
        message = f"'{given[:80]}' is no id of a job."
        raise ApiError("JOB_NOT_FOUND", message=message) from error
    visit.form["back"] = f"/console/jobs/{job_id}"
    return visit.back("/jobs")


PAGES = (
    Page("/jobs", show, takes=(*NAMES, "before")),
    Page("/jobs/find", look_up, takes=("id",)),
)
