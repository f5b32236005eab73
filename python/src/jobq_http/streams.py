"""Streams of running jobs as server-sent events, which resume where a reader has stopped."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
import psycopg
from msgspec import Meta, Raw, Struct
from starlette.responses import Response, StreamingResponse

from jobq.client.notifications import Endings
from jobq_http.declared import section
from jobq_http.errors import ApiError
from jobq_http.events import KEEPALIVE, MOST_STREAMS, Streams
from jobq_http.operation import Answer, Call
from jobq_http.values import RequestPart

# How long a reader waits for a notification before it looks, in seconds: at first, and at most.
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 0.25

Place = Annotated[str, Meta(pattern="^[0-9]{1,9}-[0-9]{1,9}$")]
Read = Callable[..., Awaitable[list[dict[str, Any]]]]


class Reading(RequestPart):
    """Where to begin."""

    after: Annotated[
        Place | None,
        Meta(description="The cursor of the last chunk that was read; `Last-Event-ID` wins."),
    ] = None


class Chunk(Struct):
    """A chunk of a stream.

    Attributes:
        cursor: its cursor, which is the id of its event.
        generation: the attempt that wrote it.
        chunk: what it wrote.
        appended_at: when.
    """

    cursor: str
    generation: int
    chunk: Raw
    appended_at: str


async def stream_chunks(call: Call) -> Response:
    """Send the chunks of a stream, also future ones, until the job has ended.

    Each `chunk` has its cursor as id. A client that reconnects with it as `Last-Event-ID`, as
    EventSource does, continues behind it. A new `generation` begins when a later attempt writes.
    """
    state = call.request.app.state
    wanted = call.request.headers.get("last-event-id") or call.query(Reading).after
    return await following(
        call.fetch_named, call.stay_admitted, state.appends, lambda: bool(state.is_stopping),
        job_id=call.job_id(), stream=call.text("stream"), after=wanted,
    )  # fmt: skip


async def following(
    read: Read,
    stay: Callable[[], Awaitable[None]],
    appends: Endings,
    is_over: Callable[[], bool],
    *,
    job_id: UUID,
    stream: str,
    after: str | None,
) -> Response:
    """Return the answer that follows a stream.

    Args:
        read: calls a function of the database.
        stay: raises an ApiError if the reader is no longer admitted.
        appends: notifies of chunks.
        is_over: whether the answer must end.
        job_id: the job.
        stream: name of the stream.
        after: the cursor of the last chunk that was read.

    Raises:
        ApiError: too many streams are open.
        psycopg.Error: the job does not exist, or the cursor is invalid.
    """
    if Streams.count >= MOST_STREAMS:
        raise ApiError(
            "RATE_LIMITED", f"{MOST_STREAMS} streams are open", headers={"retry-after": "5"}
        )
    given = {"job_id": job_id, "stream": stream}
    [page] = await read("read_stream", **given, **({"after": after} if after else {}))

    async def next_page(cursor: str) -> dict[str, Any]:
        await stay()
        [page] = await read("read_stream", **given, after=cursor)
        return page

    return StreamingResponse(
        chunk_events(page, next_page, appends.of(str(job_id)), is_over),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def chunk_events(
    page: dict[str, Any],
    next_page: Callable[[str], Awaitable[dict[str, Any]]],
    waiting: AbstractContextManager[Callable[[float], Awaitable[None]]],
    is_over: Callable[[], bool],
) -> AsyncIterator[bytes]:
    """Yield a `chunk` event for each chunk, and then an `end` event.

    If the database does not respond, the server stops or the key is revoked, the stream ends
    without `end`, and the client reconnects.
    """
    Streams.count += 1
    try:
        yield b"retry: 1000\n\n"
        with waiting as wait:
            pause, quiet_since = FIRST_PAUSE, time.monotonic()
            while True:
                events = [
                    event_of(c) for c in msgspec.json.decode(page["chunks"], type=list[Chunk])
                ]
                if events:
                    yield b"".join(events)
                    pause, quiet_since = FIRST_PAUSE, time.monotonic()
                if page["is_ended"]:
                    break
                if is_over():
                    return
                if not events:
                    if time.monotonic() - quiet_since >= KEEPALIVE:
                        yield b": still here\n\n"
                        quiet_since = time.monotonic()
                    await wait(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
                page = await next_page(page["cursor"])
        yield b"event: end\ndata: {}\n\n"
    except (psycopg.Error, ApiError):
        return
    finally:
        Streams.count -= 1


def event_of(chunk: Chunk) -> bytes:
    """Return a chunk as an event."""
    data = msgspec.json.encode(
        {"generation": chunk.generation, "chunk": chunk.chunk, "appended_at": chunk.appended_at}
    )
    return b"id: " + chunk.cursor.encode() + b"\nevent: chunk\ndata: " + data + b"\n\n"


of = section("workflows")
# fmt: off
OPERATIONS = (
    of("GET /jobs/{job_id}/streams/{stream}", stream_chunks,
       "Follow a stream of a job: server-sent events `chunk`, then `end`",
       "read produce work operate",
       {200: Answer("Events; the id of `chunk` is its cursor.", str, "text/event-stream")},
       query=Reading, headers={"Last-Event-ID": Place | None}, is_long=True,
       errors="JOB_NOT_FOUND"),
)
# fmt: on
