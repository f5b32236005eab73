"""One job's progress as server-sent events, until it ends."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import psycopg
from starlette.responses import StreamingResponse

from jobq.http.errors import ApiError
from jobq.http.jobs import View
from jobq.http.operation import Answer, Operation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.responses import Response

    from jobq.http.operation import Call

LOOK: Final = 0.5
KEEPALIVE: Final = 15.0
MOST_STREAMS: Final = 500


class Ending(msgspec.Struct):
    """Just what tells whether a job has ended."""

    finished_at: datetime | None = None
    retired_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return (self.finished_at or self.retired_at) is not None


class Streams:
    """How many streams are open in this process."""

    count = 0


async def stream_job(call: Call) -> Response:
    """Send a job each time it changes, until it has ended."""
    if Streams.count >= MOST_STREAMS:
        raise ApiError(
            "RATE_LIMITED",
            f"{MOST_STREAMS} streams are open",
            headers={"retry-after": "5"},
        )
    shown = {"job_id": call.job_id(), "vocabulary": call.query(View).vocabulary}
    [(item,)] = await call.fetch("jobq_http.show_job", **shown)
    return StreamingResponse(
        events(call, item, shown),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def events(call: Call, item: bytes, shown: Mapping[str, Any]) -> AsyncIterator[bytes]:
    """Yield a `job` event at once and at each change, and then an `end` event.

    When the database does not answer, or the server stops, the stream ends without
    `end`: the client asks again, as EventSource does by itself.
    """
    Streams.count += 1
    try:
        yield b"retry: 1000\n\nevent: job\ndata: " + item + b"\n\n"
        quiet_since = time.monotonic()
        while not msgspec.json.decode(item, type=Ending).is_over:
            if call.request.app.state.is_stopping:
                return
            await asyncio.sleep(LOOK * random.uniform(0.8, 1.2))  # noqa: S311
            [(now,)] = await call.fetch("jobq_http.show_job", **shown)
            if now != item:
                item = now
                yield b"event: job\ndata: " + item + b"\n\n"
            elif time.monotonic() - quiet_since < KEEPALIVE:
                continue
            else:
                yield b": still here\n\n"
            quiet_since = time.monotonic()
        yield b"event: end\ndata: {}\n\n"
    except psycopg.Error:
        return
    finally:
        Streams.count -= 1


OPERATIONS = (
    Operation(
        "GET",
        "/jobs/{job_id}/events",
        stream_job,
        "Follow a job: server-sent events `job` at each change, then `end`",
        ("read", "produce", "operate"),
        {200: Answer("Events; the data of `job` is the job.", str, "text/event-stream")},
        {404: ["JOB_NOT_FOUND"]},
        query=View,
        is_long=True,
    ),
)
