"""The audit: who did what, when and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobq_console.visit import Page, Visit
from jobq_http.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response


async def show(visit: Visit) -> Response:
    """Show what operators have done."""
    if not visit.visitor.may_operate:
        raise ApiError("FORBIDDEN", message="The audit log requires the scope operate.")
    subject, before = visit.query("subject"), place(visit.query("before"))
    rows, more = await visit.visitor.page("jobq_http.page_audit", subject=subject, before=before)
    return visit.show("audit.html", rows=rows, more=more, subject=subject or "")


def place(given: str | None) -> int | None:
    """Return the cursor of a page.

    Raises:
        ApiError: it is not a position in the audit.
    """
    if given is None:
        return None
    if given.isascii() and given.isdigit() and len(given) < 19:
        return int(given)
    raise ApiError("INVALID_REQUEST", "before: invalid cursor")


PAGES = (Page("/audit", show, takes=("subject", "before")),)
