"""Schedules: next runs and results; run now, pause, resume."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

from starlette.responses import Response

from jobq_console.filters import cursor
from jobq_console.job import file, read
from jobq_console.visit import Page, Visit, acting
from jobq_http import call
from jobq_http.errors import ApiError

PAGE: Final = 20
FIRINGS: Final = 10
LAST: Final = 20


async def show(visit: Visit) -> Response:
    """Show schedules with their status."""
    ask = visit.visitor
    schedules, more = await ask.page(
        "jobq_http.page_schedules", max_schedules=PAGE, **cursor(visit.query("before"))
    )
    standings = await asyncio.gather(
        *(ask.document("schedule_status", schedule=s["job_id"]) for s in schedules)
    )
    return visit.show(
        "schedules.html", rows=list(zip(schedules, standings, strict=True)), more=more
    )


async def show_one(visit: Visit) -> Response:
    """Show a schedule: its next runs and the last results."""
    schedule_id = id_of(visit)
    ask = visit.visitor
    documents, standing, next_ones, (last_ones, _) = await asyncio.gather(
        ask.rows("jobq_http.show_schedule", schedule=str(schedule_id), vocabulary="kind"),
        ask.document("schedule_status", schedule=str(schedule_id)),
        ask.rows("preview_schedule", schedule=str(schedule_id), ticks=FIRINGS),
        ask.page("jobq_http.page_executions", job_id=schedule_id, max_executions=LAST),
    )
    schedule, texts = read(documents[0][0])
    return visit.show(
        "schedule.html", schedule=schedule, texts=texts, standing=standing,
        next_ones=next_ones, last_ones=last_ones,
    )  # fmt: skip


async def download(visit: Visit) -> Response:
    """Download the payload of a schedule's jobs."""
    own = id_of(visit)
    return await file(visit, "payload", own, "jobq_http.show_schedule", schedule=str(own))


def id_of(visit: Visit) -> UUID:
    """Return the id in the path."""
    missing = ApiError("SCHEDULE_NOT_FOUND", status=404, message="This schedule does not exist.")
    return call.id_of(visit.request.path_params["schedule_id"], missing)


async def run_now(visit: Visit) -> Response:
    """Create one additional job of a schedule, and show it."""
    [(job_id,)] = await visit.visitor.act("run_schedule", **of_schedule(visit))
    visit.tell("One additional run was created.")
    return visit.back(f"/jobs/{job_id}")


def of_schedule(visit: Visit) -> dict[str, str]:
    """Return the schedule of an action as its argument."""
    return {"schedule": str(id_of(visit))}


PAGES = (
    Page("/schedules", show, takes=("before",)),
    Page("/schedules/{schedule_id}", show_one),
    Page("/schedules/{schedule_id}/payload.json", download),
    Page("/schedules/{schedule_id}/run", run_now, "POST"),
    acting("/schedules/{schedule_id}/pause", "pause_schedule", of_schedule,
           "The schedule is paused. Existing jobs continue."),
    acting("/schedules/{schedule_id}/resume", "resume_schedule", of_schedule,
           "The schedule is resumed."),
)  # fmt: skip
