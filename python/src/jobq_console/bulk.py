"""What is done to all jobs that a filter shows: to those that were counted, and no others."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import psycopg

from jobq_console.bulks import ACTIONS, Bulk
from jobq_console.filters import NAMES, Filter
from jobq_console.visit import Page, Visit
from jobq_console.words import plural
from jobq_http.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response

AT_ONCE: Final = 500
SIZES: Final = (AT_ONCE, 50, 5, 1)
SAMPLE: Final = 10
CHANGED: Final = {"JQ001", "JQ002"}

DONE: Final = {"redrive": "redriven", "run": "may run now"}


def narrowed(chosen: Filter, action: str) -> Filter:
    """Return a filter with only those states that an action is for.

    Raises:
        ApiError: there is no such action, or no such state of it.
    """
    if action not in ACTIONS:
        raise ApiError("NOT_FOUND", message="This action does not exist.")
    states = [s for s in ACTIONS[action][0] if not chosen.states or s in chosen.states]
    if not states:
        wanted = ", ".join(ACTIONS[action][0])
        raise ApiError("INVALID_REQUEST", f"this is for jobs that are {wanted}")
    return Filter(**{**chosen.words, "state": ",".join(states)})


async def preview(visit: Visit) -> Response:
    """Show how many jobs an action would be for, before it is done."""
    if not visit.visitor.may_operate:
        raise ApiError("FORBIDDEN", message="This requires the scope operate.")
    action = visit.query("action") or ""
    chosen = narrowed(visit.filter, action)
    visit.visitor.stay_current()
    found = await look(visit, chosen)
    bulk = Bulk(action, chosen, b"".join(found["job_ids"]))
    word = visit.console.bulks.keep(bulk)
    return shown(visit, bulk, word, found["items"], is_all=found["is_all"])


async def act(visit: Visit) -> Response:
    """Do it to as many jobs as one transaction should take, and say how many are left."""
    word = visit.form.get("counted", "")
    bulk = visit.console.bulks.find(word)
    async with bulk.one_at_a_time:
        outcomes = await step(visit, bulk)
        found = await look(visit, bulk.chosen, bulk)
    waiting = bulk.waiting()
    left = [job_id for job_id in found["job_ids"] if job_id in waiting]
    if not left:
        visit.tell(ended(bulk))
        return visit.back("/jobs")
    items = [job for job in found["items"] if UUID(job["job_id"]).bytes in waiting]
    return shown(visit, bulk, word, items, left=len(left), outcomes=outcomes)


def shown(
    visit: Visit, bulk: Bulk, word: str, items: list[Any], *,
    is_all: bool = True, left: int | None = None, outcomes: Counter[str] | None = None,
) -> Response:  # fmt: skip
    """Show which jobs an action is for, and what was done of it."""
    return visit.show(
        "bulk.html", bulk=bulk, word=word, items=items, is_all=is_all, at_once=AT_ONCE,
        left=bulk.total if left is None else left, outcomes=outcomes,
    )  # fmt: skip


def ended(bulk: Bulk) -> str:
    """Say for how many of those that were counted it was done."""
    if bulk.done >= bulk.total:
        return f"{bulk.label}: {plural(bulk.done, 'job')}."
    return (
        f"{bulk.label}: {bulk.done:,} of {plural(bulk.total, 'job')}. The others have changed "
        "since they were counted, or another job has their key."
    )


async def look(visit: Visit, chosen: Filter, bulk: Bulk | None = None) -> dict[str, Any]:
    """Return the jobs that fit a filter, their ids in bytes; of a bulk action from the next on."""
    given = chosen.arguments()
    if bulk is not None:
        # Among those that were looked at there may be more by now: jobs that came back.
        given |= {"before": bulk.next_one, "max_looked": 20_000}
    found: dict[str, Any] = await visit.visitor.document(
        "jobq_http.show_jobs", **given, max_jobs=SAMPLE, with_ids=True
    )
    digits = bytes.fromhex("".join(found["job_ids"]).replace("-", ""))
    return found | {"job_ids": [digits[n : n + 16] for n in range(0, len(digits), 16)]}


async def step(visit: Visit, bulk: Bulk) -> Counter[str]:
    """Do it to the newest of those that were counted, have not had their turn, and still fit.

    A job that ends between the look and the act refuses the whole act; then fewer are tried.

    Returns:
        How many came to which end.
    """
    reason = visit.form.get("reason", "").strip() or None
    for size in SIZES:
        visit.visitor.stay_current()
        found, waiting = await look(visit, bulk.chosen, bulk), bulk.waiting()
        fitting = [job_id for job_id in found["job_ids"] if job_id in waiting][:size]
        if not fitting:
            return Counter()
        try:
            outcomes = await done_to(visit, bulk.action, [UUID(bytes=i) for i in fitting], reason)
        except psycopg.Error as error:
            if error.sqlstate not in CHANGED or size == SIZES[-1]:
                raise
            continue
        bulk.turn = waiting[fitting[-1]] + 1
        bulk.done += outcomes.total()
        return outcomes
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
    return Counter({DONE[action]: len(rows)})


PAGES = (
    Page("/jobs/bulk", preview, takes=("action", *NAMES)),
    Page("/jobs/bulk", act, "POST"),
)
