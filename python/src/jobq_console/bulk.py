"""Actions on all jobs that match a filter: only on those that were counted."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from uuid import UUID

import psycopg
from starlette.responses import Response

from jobq_console.bulks import ACTIONS, Bulk
from jobq_console.filters import NAMES, Filter
from jobq_console.visit import Page, Visit
from jobq_console.words import plural
from jobq_http.errors import ApiError

AT_ONCE: Final = 500
SIZES: Final = (AT_ONCE, 50, 5, 1)
SAMPLE: Final = 10
CHANGED: Final = {"JQ001", "JQ002"}

DONE: Final = {"redrive": "redriven", "run": "may run now"}


def narrowed(chosen: Filter, action: str) -> Filter:
    """Return a filter restricted to the states that an action applies to."""
    if action not in ACTIONS:
        raise ApiError("NOT_FOUND", message="This action does not exist.")
    states = [s for s in ACTIONS[action][0] if not chosen.states or s in chosen.states]
    if not states:
        wanted = ", ".join(ACTIONS[action][0])
        raise ApiError("INVALID_REQUEST", f"this is for jobs that are {wanted}")
    return Filter(**{**chosen.words, "state": ",".join(states)})


async def preview(visit: Visit) -> Response:
    """Show how many jobs an action would affect."""
    if not visit.visitor.may_operate:
        raise ApiError("FORBIDDEN", message="This requires the scope operate.")
    action = visit.query("action") or ""
    chosen = narrowed(visit.filter, action)
    visit.visitor.stay_current()
    found = await look(visit, chosen)
    bulk = Bulk(action, chosen, found["job_ids"], len(found["job_ids"]))
    word = visit.console.bulks.keep(bulk)
    return shown(visit, bulk, word, found["items"], is_all=found["is_all"])


async def act(visit: Visit) -> Response:
    """Process one transaction's share of the jobs, and show how many are left."""
    word = visit.form.get("counted", "")
    bulk = visit.console.bulks.find(word)
    async with bulk.one_at_a_time:
        outcomes = await step(visit, bulk)
        found = await look(visit, bulk.chosen, bulk)
    left = bulk.among(found["job_ids"])
    if not left:
        visit.tell(ended(bulk))
        return visit.back("/jobs")
    items = [job for job in found["items"] if job["job_id"] in left[:SAMPLE]]
    return shown(visit, bulk, word, items, left=len(left), outcomes=outcomes)


def shown(
    visit: Visit, bulk: Bulk, word: str, items: list[Any], *,
    is_all: bool = True, left: int | None = None, outcomes: Counter[str] | None = None,
) -> Response:  # fmt: skip
    """Show the jobs of an action and its progress."""
    return visit.show(
        "bulk.html", bulk=bulk, word=word, items=items, is_all=is_all, at_once=AT_ONCE,
        left=bulk.total if left is None else left, outcomes=outcomes,
    )  # fmt: skip


def ended(bulk: Bulk) -> str:
    """Report how many of the counted jobs were processed."""
    if bulk.done >= bulk.total:
        return f"{bulk.label}: {plural(bulk.done, 'job')}."
    return (
        f"{bulk.label}: {bulk.done:,} of {plural(bulk.total, 'job')}. The others have changed "
        "since they were counted, or another job has their key."
    )


async def look(visit: Visit, chosen: Filter, bulk: Bulk | None = None) -> dict[str, Any]:
    """Return jobs that match a filter, with all ids; for a bulk action the remaining ones."""
    given = chosen.arguments()
    if bulk is not None:
        # There may be more by now: jobs that returned to the state.
        given |= {"before": bulk.next_one, "max_looked": 20_000}
    found: dict[str, Any] = await visit.visitor.document(
        "jobq_http.show_jobs", **given, max_jobs=SAMPLE, with_ids=True
    )
    return found


async def step(visit: Visit, bulk: Bulk) -> Counter[str]:
    """Process the newest of the counted jobs that remain and still match; return the outcomes.

    A job that ends meanwhile makes the whole call fail; it is then repeated with fewer jobs.
    """
    for size in SIZES:
        visit.visitor.stay_current()
        found = await look(visit, bulk.chosen, bulk)
        fitting = bulk.among(found["job_ids"])[:size]
        if not fitting:
            return Counter()
        try:
            outcomes = await done_to(visit, bulk.action, list(map(UUID, fitting)))
        except psycopg.Error as error:
            if error.sqlstate not in CHANGED or size == SIZES[-1]:
                raise
            continue
        del bulk.waiting[: bulk.waiting.index(fitting[-1]) + 1]
        bulk.done += outcomes.total()
        return outcomes
    raise AssertionError


async def done_to(visit: Visit, action: str, job_ids: list[UUID]) -> Counter[str]:
    """Apply an action to jobs, and return the number of jobs by outcome."""
    rows: list[tuple[Any, ...]]
    match action:
        case "cancel":
            rows = await visit.visitor.act("cancel_many", job_ids=job_ids, reason=visit.reason)
            return Counter(outcome for _, outcome in rows)
        case "run":
            rows = await visit.visitor.act(
                "change_many", changes='{"run_at": "now"}', job_ids=job_ids, reason=visit.reason
            )
        case _:
            rows = await visit.visitor.act("redrive_many", job_ids=job_ids)
    return Counter({DONE[action]: len(rows)})


PAGES = (
    Page("/jobs/bulk", preview, takes=("action", *NAMES)),
    Page("/jobs/bulk", act, "POST"),
)
