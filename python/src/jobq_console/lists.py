"""Pages that show one list: dead jobs, workers, workflows, batches, definitions, the audit."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from starlette.responses import PlainTextResponse, Response

from jobq_console.filters import BIG_INTEGER, identity
from jobq_console.visit import Page, Visit
from jobq_http.errors import ApiError

STATES: Final = ("blocked", "queued", "running", "retrying", "succeeded", "dead", "cancelled")
TYPES: Final = ("endpoint", "payload_spec", "config", "secret")


def document(
    template: str, function: str, name: str | None = None
) -> Callable[[Visit], Coroutine[Any, Any, Response]]:
    """Return a handler that shows the document of a function, or its members without a name."""

    async def show(visit: Visit) -> Response:
        found = await visit.visitor.document(function)
        return visit.show(template, **({name: found} if name else found))

    return show


async def show_batch(visit: Visit) -> Response:
    """Show the progress of a batch."""
    batch_id = identity("batch", visit.request.path_params["batch_id"])
    rows = await visit.visitor.rows("batch_status", batch_id=batch_id)
    opened_at, sealed_at, ended_at, total, *counts = rows[0]
    return visit.show(
        "batch.html", batch_id=batch_id, opened_at=opened_at, sealed_at=sealed_at,
        ended_at=ended_at, total=total, counts=dict(zip(STATES, counts, strict=False)),
        callbacks=dict(zip(("success", "end", "first death"), counts[len(STATES) :], strict=True)),
    )  # fmt: skip


async def show_definitions(visit: Visit) -> Response:
    """Show a page of the definitions of a type."""
    chosen = visit.query("type") or TYPES[0]
    if chosen not in TYPES:
        raise ApiError("INVALID_REQUEST", f"type: one of {', '.join(TYPES)}")
    after = visit.query("after")
    items, cursor = await visit.visitor.page("page_definitions", type=chosen, after=after)
    return visit.show(
        "definitions.html", types=TYPES, chosen=chosen, definitions=items, cursor=cursor,
        is_first=not after,
    )  # fmt: skip


async def show_audit(visit: Visit) -> Response:
    """Show what operators have done."""
    if not visit.visitor.may_operate:
        raise ApiError("FORBIDDEN", message="The audit log requires the scope operate.")
    subject, before = visit.query("subject"), visit.query("before")
    if before and not BIG_INTEGER.fullmatch(before):
        raise ApiError("INVALID_REQUEST", "before: invalid cursor")
    rows, more = await visit.visitor.page(
        "jobq_http.page_audit", subject=subject, before=before and int(before)
    )
    return visit.show("audit.html", rows=rows, more=more, subject=subject or "")


async def show_pulse(visit: Visit) -> Response:
    """Return a number that changes when anything changes, which open pages poll."""
    [(now,)] = await visit.visitor.rows("jobq_http.show_pulse")
    visit.console.memory.forget_at(now)
    return PlainTextResponse(str(now))


PAGES = (
    Page("/dead", document("dead.html", "jobq_http.show_dead_jobs", "dead")),
    Page("/workers", document("workers.html", "jobq_http.show_workers", "workers")),
    Page("/workflows", document("workflows.html", "jobq_http.show_workflows")),
    Page("/batches/{batch_id}", show_batch),
    Page("/definitions", show_definitions, takes=("type", "after")),
    Page("/audit", show_audit, takes=("subject", "before")),
    Page("/pulse", show_pulse),
)
