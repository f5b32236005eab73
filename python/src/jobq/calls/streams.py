"""Streams: what running jobs write for those who follow them. See docs/workflows.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from jobq.calls.call import Call
from jobq.models import Json


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a stream.

    Attributes:
        cursor: a cursor after this chunk.
        generation: the attempt that wrote it. A new one begins when a later attempt writes.
        value: what was written.
    """

    cursor: str
    generation: int
    value: Json
    appended_at: datetime


@dataclass(frozen=True, slots=True)
class StreamPage:
    """Chunks of a stream, in order.

    Attributes:
        cursor: the cursor after them, even if there are none.
        is_ended: whether the job has ended and these are the last.
    """

    chunks: list[Chunk]
    cursor: str
    is_ended: bool


def read_stream(
    job_id: UUID | str, stream: str, after: str | None = None, max_chunks: int = 1000
) -> Call[StreamPage]:
    """Return the chunks of a stream after a cursor.

    Args:
        job_id: the job, live or finished.
        stream: name of the stream; one that nobody has written to is empty.
        after: the cursor of a chunk or a page; None begins with the first chunk.
        max_chunks: maximum number, 1 to 1000.

    Raises:
        InvalidArgument: the cursor is invalid.
    """
    return Call("read_stream", locals(), _page)


def read_streams(
    job_ids: Sequence[str], streams: Sequence[str], afters: Sequence[str | None]
) -> Call[list[StreamPage]]:
    """Return a page of each of several streams."""
    given = {"job_ids": list(job_ids), "streams": list(streams), "afters": list(afters)}
    return Call("read_streams", given, _pages)


def _page(rows: list[tuple[Any, ...]]) -> StreamPage:
    [page] = _pages(rows)
    return page


def _pages(rows: list[tuple[Any, ...]]) -> list[StreamPage]:
    return [StreamPage([_chunk(c) for c in chunks], *rest) for chunks, *rest in rows]


def _chunk(c: dict[str, Any]) -> Chunk:
    appended_at = datetime.fromisoformat(c["appended_at"])
    return Chunk(c["cursor"], c["generation"], c["chunk"], appended_at)
