"""Workflows: graphs, batches, and jobs that wait for events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobq_console.filters import identity
from jobq_console.visit import Page, Visit

if TYPE_CHECKING:
    from starlette.responses import Response

STATES = ("blocked", "queued", "running", "retrying", "succeeded", "dead", "cancelled")


async def show(visit: Visit) -> Response:
    """Show workflows in progress."""
    return visit.show("workflows.html", **await visit.visitor.document("jobq_http.show_workflows"))


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


PAGES = (
    Page("/workflows", show),
    Page("/batches/{batch_id}", show_batch),
)
