"""Streams: what a handler writes for those who follow its job."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeAlias
from uuid import UUID

from jobq.calls.arguments import encode
from jobq.database import awaited
from jobq.errors import JobqError, LeaseLost
from jobq.models import Json

APPEND_MANY: Final = "select job_id, attempt from jobq_internal.append_many(%s, %s, %s, %s, %s)"
# Chunks, and characters of JSON, in one call.
MOST_CHUNKS: Final = 500
MOST_TEXT: Final = 1_048_576
# Seconds between the calls of a handler in a thread or a process, which wait for each call.
PAUSE: Final = 0.05

Call: TypeAlias = Callable[[str, tuple[Any, ...]], Any]


class Stream:
    """A stream of a running job; see `jobq.JobContext.stream`."""

    __slots__ = ("_chunks", "name")

    def __init__(self, chunks: Chunks, name: str) -> None:
        self._chunks = chunks
        self.name = name

    def write(self, chunk: Json) -> Awaitable[None]:
        """Add a chunk.

        It is stored soon, at the latest before the next step, wait or end of the handler. Await
        the result to wait for this.

        Args:
            chunk: any JSON of at most 1 MiB, such as a piece of text.

        Raises:
            InvalidArgument: the chunk is not JSON.
            LeaseLost: this attempt has lost its lease.
            PayloadTooLarge: an earlier chunk was too large.
        """
        return self._chunks.write(self.name, encode(chunk))


class Chunks:
    """The chunks that an attempt has written and that are not stored yet.

    Only one call of an attempt runs at a time, so that a reader sees its chunks in their order.

    Args:
        call: runs `APPEND_MANY`.
        job_id: the job.
        attempt: its attempt.
        is_awaited: whether the handler is a coroutine; then chunks are stored in the background.
    """

    def __init__(self, call: Call, job_id: UUID, attempt: int, *, is_awaited: bool) -> None:
        self._call = call
        self._key = (job_id, attempt)
        self._is_awaited = is_awaited
        self._counts: Counter[str] = Counter()
        self._pending: list[tuple[str, int, str]] = []
        self._task: asyncio.Task[None] | None = None
        self._error: JobqError | None = None
        self._stored_at = float("-inf")
        self.waits_for_step = False
        """Whether chunks are only stored with the next step: in a handler's own transaction."""

    @property
    def is_pending(self) -> bool:
        """Whether there is something to store or to raise."""
        return bool(self._pending) or self._task is not None or self._error is not None

    def write(self, stream: str, text: str) -> Awaitable[None]:
        """Add a chunk, as JSON text."""
        if self._error is not None:
            raise self._error
        self._counts[stream] += 1
        self._pending.append((stream, self._counts[stream], text))
        if self._is_awaited and not self.waits_for_step:
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._store_all())
        elif not self.waits_for_step and time.monotonic() - self._stored_at > PAUSE:
            self.flush()
        return _Stored(self)

    def flush(self) -> Any:  # noqa: ANN401 - None, or awaited
        """Wait until everything is stored; awaited in a coroutine.

        Raises:
            JobqError: the database refused a chunk, or the attempt has lost its lease.
        """
        if self._is_awaited:
            return self._flush()
        while batch := self._take():
            _check(self._call(APPEND_MANY, batch))
        self._stored_at = time.monotonic()
        return None

    async def end(self, call: Call) -> None:
        """Store the rest after the handler has ended, by this call."""
        if self._task is not None:
            await self._task
        while batch := self._take():
            _check(await awaited(call(APPEND_MANY, batch)))
        if self._error is not None:
            raise self._error

    async def _flush(self) -> None:
        while self._task is not None or self._pending:
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._store_all())
            await asyncio.shield(self._task)
        if self._error is not None:
            raise self._error

    async def _store_all(self) -> None:
        try:
            while batch := self._take():
                _check(await awaited(self._call(APPEND_MANY, batch)))
        except JobqError as error:
            self._error = error
            self._pending.clear()
        finally:
            self._task = None

    def _take(self) -> tuple[Any, ...] | None:
        """Return the parameters of a call for the next chunks, if there are any."""
        size = length = 0
        for _, _, text in self._pending[:MOST_CHUNKS]:
            if size and length + len(text) > MOST_TEXT:
                break
            size, length = size + 1, length + len(text)
        batch, self._pending = self._pending[:size], self._pending[size:]
        if not batch:
            return None
        streams, numbers, texts = zip(*batch, strict=True)
        job_id, attempt = self._key
        return (
            [job_id] * size, [attempt] * size, list(streams), list(numbers), f"[{','.join(texts)}]"
        )  # fmt: skip


class _Stored:
    """Awaiting it waits until the chunks so far are stored."""

    __slots__ = ("_chunks",)

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def __await__(self) -> Generator[Any, None, None]:
        flushed = self._chunks.flush()
        if flushed is not None:
            yield from flushed.__await__()


def _check(lost: list[Any]) -> None:
    """Raise an error if the attempt has lost its lease."""
    if lost:
        raise LeaseLost("this attempt has lost its lease")
