"""Jobs: lists by filter, and what can be done to all that a filter shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

import psycopg

from jobq.console.filters import NAMES, STATES, Filter, cursor, instant
from jobq.console.visit import Page, Visit
from jobq.console.words import parsed, plural
from jobq.http.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from starlette.responses import Response

PAGE: Final = 50
AT_ONCE: Final = 500

SIZES: Final = (AT_ONCE, 50, 5, 1)
CHANGED: Final = {"JQ001", "JQ002"}

# What can be done, the states of jobs that it is for, and the name of the button.
ACTIONS: Final = {
    "cancel": (("queued", "retrying", "running"), "Cancel"),
    "redrive": (("dead",), "Redrive"),
    "run": (("queued", "retrying"), "Run now"),
}


@dataclass(frozen=True, slots=True)
class Counted:
    """The jobs that a preview has counted, as its form carries them: newest first, by id.

    Attributes:
        total: how many.
        before: those that have not had their turn were made before this job.
        last: the oldest that was looked at; None where all were.
        at: when they were counted, after which none of them had ended.
    """

    total: int
    before: UUID
    last: UUID | None
    at: datetime

    @classmethod
    def of(cls, found: dict[str, Any]) -> Self:
        """Return what a look has counted."""
        newest = UUID(found["items"][0]["job_id"]).int if found["items"] else 0
        last, at = found["looked_to"], found["looked_at"]
        return cls(
            found["matched"], UUID(int=min(newest + 1, 2**128 - 1)), last and UUID(last), parsed(at)
        )

    @classmethod
    def read(cls, form: Mapping[str, str]) -> Self:
        """Return what a form carries.

        Raises:
            ApiError: it is not as a preview has made it.
        """
        before, at = cursor(form.get("before")), instant("at", form.get("at", ""))
        if before is None or at is None:
            raise ApiError("INVALID_REQUEST", "before and at: which jobs were counted")
        return cls(number_of(form.get("total")), before, cursor(form.get("last")), at)

    def has(self, job: Mapping[str, Any]) -> bool:
        """Whether a job that is before the cursor was counted."""
        is_newer_end = job["finished_at"] is not None and parsed(job["finished_at"]) > self.at
        return not is_newer_end and (self.last is None or UUID(job["job_id"]) >= self.last)


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
        at_once=AT_ONCE, done=None, so_far=0, counted=Counted.of(found),
    )  # fmt: skip


async def act(visit: Visit) -> Response:
    """Do it to as many jobs as one transaction should take, and say how many are left."""
    action = action_of(visit.form.get("action"))
    chosen, counted = narrowed(Filter.of(visit.form), action), Counted.read(visit.form)
    so_far = number_of(visit.form.get("so_far"))
    if so_far >= counted.total:
        raise ApiError("INVALID_REQUEST", "total: for how many jobs this is")
    visit.visitor.stay_current()
    outcomes, before = await step(visit, action, chosen, counted, counted.total - so_far)
    so_far += sum(outcomes.values())
    if before is not None and so_far < counted.total:
        counted = replace(counted, before=before)
        left = await visit.visitor.document(
            "jobq_http.show_jobs", **chosen.arguments(), before=before, max_jobs=10
        )
        if left["matched"]:
            return visit.show(
                "bulk.html", action=action, label=ACTIONS[action][1], chosen=chosen, found=left,
                at_once=AT_ONCE, done=outcomes, so_far=so_far, counted=counted,
            )  # fmt: skip
    visit.tell(ended(ACTIONS[action][1], so_far, counted.total))
    return visit.back("/jobs")


def ended(label: str, done: int, total: int) -> str:
    """Say for how many of those that were counted it was done."""
    if done >= total:
        return f"{label}: {plural(done, 'job')}."
    return (
        f"{label}: {done:,} of {plural(total, 'job')}. The others have changed since they were "
        "counted, or another job has their key."
    )


async def step(
    visit: Visit, action: str, chosen: Filter, counted: Counted, most: int
) -> tuple[Counter[str], UUID | None]:
    """Do it to the newest of those that were counted and have not had their turn.

    A job that ends between the look and the act refuses the whole act; then fewer are tried.

    Returns:
        How many came to which end, and before which job the next step begins, if there is one.
    """
    reason = visit.form.get("reason", "").strip() or None
    for size in SIZES:
        found = await visit.visitor.document(
            "jobq_http.show_jobs", **chosen.arguments(), before=counted.before,
            max_jobs=min(size, most),
        )  # fmt: skip
        job_ids = [UUID(job["job_id"]) for job in found["items"] if counted.has(job)]
        cursor = found["cursor"] and UUID(found["cursor"])
        before = cursor if cursor and (counted.last is None or cursor > counted.last) else None
        if not job_ids:
            return Counter(), before
        try:
            return await done_to(visit, action, job_ids, reason), before
        except psycopg.Error as error:
            if error.sqlstate not in CHANGED or size == SIZES[-1]:
                raise
    raise AssertionError


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
