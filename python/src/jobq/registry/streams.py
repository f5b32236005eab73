"""Streams: what a handler writes for those who follow its job."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, TypeAlias
from uuid import UUID

from jobq.calls.arguments import encode
from jobq.database import awaited, finished
from jobq.errors import JobqError, LeaseLost
from jobq.models import Json

APPEND_MANY: Final = (
    "select job_id, attempt, outcome from jobq_internal.append_many(%s, %s, %s, %s, %s)"
)
# Chunks, and characters of JSON, in one call.
MOST_CHUNKS: Final = 500
MOST_TEXT: Final = 1_048_576
# Seconds between the calls that store chunks: shorter than people notice.
DELAY: Final = 0.05

Call: TypeAlias = Callable[[str, tuple[Any, ...]], Any]
"""Runs a statement of a step or of a stream; returns its rows, or an awaitable of them.

JSON is text.
"""


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
    After an error no more is stored, and each call raises it.

    Args:
        call: runs `APPEND_MANY`.
        job_id: the job.
        attempt: its attempt.
        is_awaited: whether the handler is a coroutine. Then a task stores its chunks in the
            background, else a thread.
    """

    def __init__(self, call: Call, job_id: UUID, attempt: int, *, is_awaited: bool) -> None:
        self.call = call
        self._key = (job_id, attempt)
        self._is_awaited = is_awaited
        self._counts: Counter[str] = Counter()
        self._pending: list[tuple[str, int, str]] = []
        self._task: asyncio.Task[None] | None = None
        self._timer: threading.Timer | None = None
        self._changing = threading.Lock()  # while the chunks or the timer change
        self._storing = threading.Lock()  # during the calls of a thread
        self._error: JobqError | None = None
        self.waits_for_step = False
        """Whether chunks are only stored with the next step: in a handler's own transaction."""

    @property
    def is_pending(self) -> bool:
        """Whether there is something to store or to raise."""
        is_stored = not self._pending and self._task is None and not self._storing.locked()
        return not is_stored or self._error is not None

    def write(self, stream: str, text: str) -> Awaitable[None]:
        """Add a chunk, as JSON text."""
        if self._error is not None:
            raise self._error
        with self._changing:
            self._counts[stream] += 1
            self._pending.append((stream, self._counts[stream], text))
            is_timed = not self.waits_for_step and not self._is_awaited
            if is_timed and self._timer is None:
                self._timer = threading.Timer(DELAY, self._store_late)
                self._timer.daemon = True
                self._timer.start()
        if self._is_awaited and not self.waits_for_step:
            self._start()
        elif is_timed and len(self._pending) >= MOST_CHUNKS:
            self.flush()
        return _Stored(self._flush)

    def flush(self) -> Any:  # noqa: ANN401 - None, or awaited
        """Wait until everything is stored; awaited in a coroutine.

        Raises:
            JobqError: the database refused a chunk, or the attempt has lost its lease.
        """
        return self._flush() if self._is_awaited else finished(self._flush())

    async def end(self) -> None:
        """Store the rest after the handler has ended.

        Raises:
            JobqError: as `flush`.
        """
        if self.is_pending:
            await (self._flush() if self._is_awaited else asyncio.to_thread(self.flush))

    async def _flush(self) -> None:
        if self._is_awaited:
            while self._error is None and (self._task is not None or self._pending):
                await asyncio.shield(self._start())
        else:
            with self._storing:
                await self._store()
        if self._error is not None:
            raise self._error

    def _start(self) -> asyncio.Task[None]:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._store())
        return self._task

    async def _store(self) -> None:
        try:
            while self._error is None and (batch := self._take()):
                rows = await awaited(self.call(APPEND_MANY, batch))
                if any(outcome == "lost" for *_, outcome in rows):
                    raise LeaseLost("this attempt has lost its lease")
        except JobqError as error:
            self._error = error
        finally:
            self._task = None

    def _store_late(self) -> None:
        """Store what a plain function has written, in a thread of its own."""
        with self._changing:
            self._timer = None
        with self._storing:
            finished(self._store())

    def _take(self) -> tuple[Any, ...] | None:
        """Return the parameters of a call for the next chunks, if there are any."""
        size = length = 0
        with self._changing:
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

    __slots__ = ("_flush",)

    def __init__(self, flush: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._flush = flush

    def __await__(self) -> Generator[Any, None, None]:
        return self._flush().__await__()
