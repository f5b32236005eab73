"""The event stream that makes an open page update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response, StreamingResponse

from jobq_console.guard import is_still_in

if TYPE_CHECKING:
    from starlette.requests import Request

    from jobq_console.console import Console

# Per session: a browser opens six HTTP/1.1 connections to a server, and needs some for pages.
MOST_OF_ONE: Final = 4


async def stream(request: Request) -> Response:
    """Send an event whenever a page must update."""
    session = request.scope.get("jobq.session")
    console: Console = request.app.state.console
    pulse = console.pulse
    if session is None:
        return Response(status_code=401)
    if pulse.is_full:
        return Response(status_code=503, headers={"retry-after": "10"})
    if session.streams >= MOST_OF_ONE:
        return Response(status_code=429, headers={"retry-after": "10"})
    address = request.client.host if request.client else ""
    beats = pulse.beats(session, lambda: is_still_in(console, session, address))
    return StreamingResponse(
        beats, media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )
