"""The audit: who did what, when and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobq.console.jobs import number_of
from jobq.console.visit import Page, Visit
from jobq.http.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response


async def show(visit: Visit) -> Response:
    """Show what operators have done."""
    if not visit.visitor.may_operate:
        raise ApiError("FORBIDDEN", message="The audit is for operators.")
    subject, before = visit.query("subject"), number_of(visit.query("before"))
    rows, more = await visit.visitor.page(
        "jobq_http.page_audit", subject=subject, before=before or None
    )
    return visit.show("audit.html", rows=rows, more=more, subject=subject or "")


PAGES = (Page("/audit", show, takes=("subject", "before")),)
