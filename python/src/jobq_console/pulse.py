"""A number that changes when anything changes: open pages poll it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

from jobq_console.visit import Page, Visit

if TYPE_CHECKING:
    from starlette.responses import Response


async def show(visit: Visit) -> Response:
    """Return the number, by one cheap call that pages share."""
    [(now,)] = await visit.visitor.rows("jobq_http.show_pulse")
    visit.console.memory.forget_at(now)
    return PlainTextResponse(str(now))


PAGES = (Page("/pulse", show),)
