"""What a running job writes to its streams, as it is written."""

from __future__ import annotations

import time
from typing import Final

from starlette.responses import Response

from jobq_console.job import check_shown, id_of
from jobq_console.visit import Page, Visit
from jobq_http.errors import ApiError
from jobq_http.streams import following

# Seconds after which a browser asks again, so that an ended session or server is noticed.
LONGEST: Final = 20.0


async def follow(visit: Visit) -> Response:
    """Send the chunks of a stream after a cursor."""
    check_shown(visit)
    deadline = time.monotonic() + LONGEST
    session = visit.session

    async def stay() -> None:
        if session is None or session.is_ended:
            raise ApiError("UNAUTHORIZED")

    after = visit.request.headers.get("last-event-id") or visit.query("after")
    return await following(
        visit.visitor.fresh, stay, visit.console.appends, lambda: time.monotonic() > deadline,
        job_id=id_of(visit), stream=visit.query("name") or "", after=after,
    )  # fmt: skip


PAGES = (Page("/jobs/{job_id}/stream", follow, takes=("name", "after")),)
