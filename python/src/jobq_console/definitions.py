"""Definitions: endpoints, payload specs, configs, and the names of secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jobq_console.visit import Page, Visit
from jobq_http.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response

TYPES: Final = ("endpoint", "payload_spec", "config", "secret")


async def show(visit: Visit) -> Response:
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


PAGES = (Page("/definitions", show, takes=("type", "after")),)
