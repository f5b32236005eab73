"""Streams of running jobs as server-sent events, which resume where a reader has stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta, Raw, Struct
from starlette.responses import Response

from jobq.client.notifications import Endings
from jobq_http.call import Call
from jobq_http.events import END, check_streams, streaming
from jobq_http.operation import Answer, section
from jobq_http.values import RequestPart

# How long a reader waits for a notification before it looks, in seconds: at first, and at most.
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0

Place = Annotated[str, Meta(pattern="^[0-9]{1,9}-[0-9]{1,9}$")]
Read = Callable[..., Awaitable[list[Any]]]


class Reading(RequestPart):
    """Where to begin."""

    after: Annotated[
        Place | None,
        Meta(description="The cursor of the last chunk that was read; `Last-Event-ID` wins."),
    ] = None


class Chunk(Struct):
    """A chunk of a stream."""

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
        call.fetch, call.stay_admitted, state.appends, lambda: bool(state.is_stopping),
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
    """
    check_streams()
    given = {"job_id": job_id, "stream": stream}
    [first] = await read("read_stream", **given, after=after or None)

    async def chunk_events() -> AsyncGenerator[bytes, None]:
        page, pause = first, FIRST_PAUSE
        with appends.of(str(job_id)) as wait:
            while True:
                chunks = msgspec.json.decode(page.chunks, type=list[Chunk])
                yield b"".join(map(event_of, chunks))
                if page.is_ended:
                    break
                if is_over():
                    return
                if not chunks:
                    await wait(pause)
                pause = FIRST_PAUSE if chunks else min(2 * pause, LONGEST_PAUSE)
                await stay()
                [page] = await read("read_stream", **given, after=page.cursor)
        yield END

    return streaming(chunk_events())


def event_of(chunk: Chunk) -> bytes:
    """Return a chunk as an event."""
    members = ("generation", "chunk", "appended_at")
    data = msgspec.json.encode({name: getattr(chunk, name) for name in members})
    return b"id: " + chunk.cursor.encode() + b"\nevent: chunk\ndata: " + data + b"\n\n"


of = section("workflows")
# fmt: off
OPERATIONS = (
    of("GET /jobs/{job_id}/streams/{stream}", stream_chunks,
       "Follow a stream of a job: server-sent events `chunk`, then `end`",
       "read produce work operate",
       {200: Answer("Events; the id of `chunk` is its cursor.", str, "text/event-stream")},
       query=Reading, headers={"Last-Event-ID": Place | None}, is_long=True),
)
# fmt: on
