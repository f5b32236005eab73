"""The progress of a job as server-sent events, and pages of finished jobs."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
import psycopg
from msgspec import Meta, Raw
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from jobq.calls import events
from jobq_http.call import Call, encoded
from jobq_http.errors import ApiError
from jobq_http.jobs import View
from jobq_http.operation import Answer, section
from jobq_http.values import TEXT, JsonObject, Moment, Name, RequestPart, answer_of

LOOK: Final = 0.5
KEEPALIVE: Final = 15.0
MOST_STREAMS: Final = 500
JOB: Final = b"event: job\ndata: %s\n\n"
END: Final = b"event: end\ndata: {}\n\n"


class Ending(msgspec.Struct):
    """The members that determine whether a job has ended."""

    finished_at: datetime | None = None
    retired_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return (self.finished_at or self.retired_at) is not None


Event = answer_of(events.Event, "Event", metadata=JsonObject)
Events = answer_of(events.EventPage, "Events", events=None, items=list[Event])  # type: ignore[valid-type]


class Listening(RequestPart):
    """Which events, and how long to wait for one."""

    after: Annotated[
        Annotated[str, Meta(max_length=64, pattern=TEXT)] | None,
        Meta(description="The cursor of a page or an event."),
    ] = None
    since: Annotated[Moment | None, Meta(description="Start time without after; default: now.")] = (
        None
    )
    queue: Name | None = None
    kind: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    wait_ms: Annotated[
        int, Meta(ge=0, le=30_000, description="How long to wait for the first event.")
    ] = 0


class Streams:
    """The number of open streams in this process."""

    count = 0


def check_streams() -> None:
    """Refuse one more stream if too many are open."""
    if Streams.count >= MOST_STREAMS:
        raise ApiError(
            "RATE_LIMITED", f"{MOST_STREAMS} streams are open", headers={"retry-after": "5"}
        )


def streaming(events: AsyncGenerator[bytes, None]) -> Response:
    """Answer with events.

    If the database does not respond, the server stops or the key is revoked, the stream ends
    without `END`, and the client reconnects, as EventSource does.

    Args:
        events: yields the events, an empty text each time it finds none, and `END` at last.
    """
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Followed(kept_alive(events), 200, headers, "text/event-stream")


class Followed(StreamingResponse):
    """An answer that lasts; that to HEAD ends at once, so that the connection is free."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        if scope["method"] == "HEAD":
            await StreamingResponse([], self.status_code, self.headers)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


async def kept_alive(events: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Yield events, and a comment from time to time while there are none."""
    Streams.count += 1
    quiet_since = time.monotonic()
    try:
        yield b"retry: 1000\n\n"
        async with aclosing(events):
            async for event in events:
                now = time.monotonic()
                if event or now - quiet_since >= KEEPALIVE:
                    quiet_since = now
                    yield event or b": still here\n\n"
    except (psycopg.Error, ApiError):
        return
    finally:
        Streams.count -= 1


async def stream_job(call: Call) -> Response:
    """Send a job each time it changes, until it has ended."""
    check_streams()
    shown = {"job_id": call.job_id(), **call.query(View).given()}
    [(item,)] = await call.fetch("jobq_http.show_job", **shown)
    return streaming(job_events(call, item, shown))


async def job_events(
    call: Call, item: bytes, shown: Mapping[str, Any]
) -> AsyncGenerator[bytes, None]:
    """Yield a `job` event at once and at each change."""
    yield JOB % item
    while not msgspec.json.decode(item, type=Ending).is_over:
        if call.request.app.state.is_stopping:
            return
        await asyncio.sleep(LOOK * random.uniform(0.8, 1.2))  # noqa: S311
        await call.stay_admitted()
        [(now,)] = await call.fetch("jobq_http.show_job", **shown)
        yield b"" if now == item else JOB % now
        item = now
    yield END


async def page_events(call: Call) -> Response:
    """Return finished jobs after a cursor; wait for the first one if requested."""
    wanted = call.query(Listening)
    deadline = time.monotonic() + wanted.wait_ms / 1000
    place: dict[str, object] = {"after": wanted.after, "since": wanted.since}
    while True:
        [row] = await call.fetch(
            "listen_events",
            queues=wanted.queue and [wanted.queue],
            kinds=wanted.kind and [wanted.kind],
            max_events=wanted.limit,
            **place,
        )
        is_over = call.request.app.state.is_stopping or time.monotonic() >= deadline
        if row.events != b"[]" or is_over:
            given = row._asdict()
            return encoded({"items": Raw(given.pop("events")), **given})
        await call.stay_admitted()
        place = {"after": row.cursor}
        if not row.is_behind:
            await asyncio.sleep(min(LOOK * random.uniform(0.4, 0.6), wanted.wait_ms / 1000))  # noqa: S311


of = section("jobs")
# fmt: off
OPERATIONS = (
    of("GET /jobs:events", page_events, "Finished jobs after a cursor, each once",
       "read operate", Events, query=Listening, is_long=True),
    of("GET /jobs/{job_id}/events", stream_job,
       "Follow a job: server-sent events `job` at each change, then `end`",
       "read produce operate",
       {200: Answer("Events; the data of `job` is the job.", str, "text/event-stream")},
       query=View, is_long=True),
)
# fmt: on
