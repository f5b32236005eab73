"""Jobs: lists by filter, and what can be done to all that a filter shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from jobq.console.filters import NAMES, STATES, Filter, cursor
from jobq.console.visit import Page, Visit
from jobq.console.words import plural
from jobq.http.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response

PAGE: Final = 50
AT_ONCE: Final = 500

# What can be done, the states of jobs that it is for, and the name of the button.
ACTIONS: Final = {
    "cancel": (("queued", "retrying", "running"), "Cancel"),
    "redrive": (("dead",), "Redrive"),
    "run": (("queued", "retrying"), "Run now"),
}


async def show(visit: Visit) -> Response:
    """Show a page of jobs."""
    chosen = Filter.of(visit.request.query_params, visit.request.query_params.getlist("state"))
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
    given = visit.query("id") or ""
    try:
        job_id = UUID(given)
    except ValueError as error:
        message = f"'{given[:80]}' is no id of a job."
        raise ApiError("JOB_NOT_FOUND", message=message) from error
    visit.form["back"] = f"/console/jobs/{job_id}"
    return visit.back("/jobs")


def action_of(name: str | None) -> str:
    """Return an action's name.

    Raises:
        ApiError: there is no such action.
    """
    if name not in ACTIONS:
        raise ApiError("NOT_FOUND", message="There is no such action.")
    return name


def narrowed(chosen: Filter, action: str) -> Filter:
    """Return a filter with only those states that an action is for."""
    states = [s for s in ACTIONS[action][0] if not chosen.states or s in chosen.states]
    if not states:
        wanted = ", ".join(ACTIONS[action][0])
        raise ApiError("INVALID_REQUEST", f"this is for jobs that are {wanted}")
    return Filter(**{**chosen.words, "state": ",".join(states)})


async def preview(visit: Visit) -> Response:
    """Show how many jobs an action would be for, before it is done."""
    action = action_of(visit.query("action"))
    if not visit.visitor.may_operate:
        raise ApiError("FORBIDDEN", message="You may look, but not act: this needs operate.")
    chosen = narrowed(
        Filter.of(visit.request.query_params, visit.request.query_params.getlist("state")), action
    )
    visit.visitor.stay_current()
    found = await visit.visitor.document("jobq_http.show_jobs", **chosen.arguments(), max_jobs=10)
    return visit.show(
        "bulk.html", action=action, label=ACTIONS[action][1], chosen=chosen, found=found,
        at_once=AT_ONCE, done=None, so_far=0, total=found["matched"],
    )  # fmt: skip


async def act(visit: Visit) -> Response:
    """Do it to as many jobs as one transaction should take, and say how many are left."""
    action = action_of(visit.form.get("action"))
    chosen = narrowed(Filter.of(visit.form), action)
    total, so_far = (number_of(visit.form.get(name)) for name in ("total", "so_far"))
    if so_far >= total:
        raise ApiError("INVALID_REQUEST", "total: for how many jobs this is")
    visit.visitor.stay_current()
    found = await visit.visitor.document(
        "jobq_http.show_jobs", **chosen.arguments(), max_jobs=min(AT_ONCE, total - so_far)
    )
    job_ids = [UUID(job["job_id"]) for job in found["items"]]
    reason = visit.form.get("reason", "").strip() or None
    outcomes = await done_to(visit, action, job_ids, reason) if job_ids else Counter()
    so_far += sum(outcomes.values())
    left = await visit.visitor.document("jobq_http.show_jobs", **chosen.arguments(), max_jobs=10)
    if not left["matched"] or not sum(outcomes.values()) or so_far >= total:
        visit.tell(f"{ACTIONS[action][1]}: {plural(so_far, 'job')}.")
        return visit.back("/jobs")
    return visit.show(
        "bulk.html", action=action, label=ACTIONS[action][1], chosen=chosen, found=left,
        at_once=AT_ONCE, done=outcomes, so_far=so_far, total=total,
    )  # fmt: skip


async def done_to(
    visit: Visit, action: str, job_ids: list[UUID], reason: str | None
) -> Counter[str]:
    """Do something to jobs, and return how many came to which end."""
    rows: list[tuple[Any, ...]]
    match action:
        case "cancel":
            rows = await visit.visitor.act("cancel_many", job_ids=job_ids, reason=reason)
            return Counter(outcome for _, outcome in rows)
        case "run":
            rows = await visit.visitor.act(
                "change_many", changes='{"run_at": "now"}', job_ids=job_ids, reason=reason
            )
        case _:
            rows = await visit.visitor.act("redrive_many", job_ids=job_ids)
    return Counter({action: len(rows)})


def number_of(text: str | None) -> int:
    """Return a small number that a form carries."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


PAGES = (
    Page("/jobs", show, takes=(*NAMES, "before")),
    Page("/jobs/find", look_up, takes=("id",)),
    Page("/jobs/bulk", preview, takes=("action", *NAMES)),
    Page("/jobs/bulk", act, "POST"),
)
