"""What handlers say while they run: progress and log lines, written in batches."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from jobq.arguments import encode
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobqError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator
    from uuid import UUID

    from jobq.context import JobContext
    from jobq.models import Json
    from jobq.worker.link import Link

__all__ = ["Notes"]

logger = logging.getLogger("jobq.worker")

MAX_PROGRESS: Final = 65536
MOST_AT_ONCE: Final = 500


class Notes:
    """Takes what handlers say, from any thread, and writes it soon.

    Args:
        link: the connection to write on.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._progress: dict[tuple[UUID, int], str] = {}
        self._lines: deque[tuple[UUID, int, str, str]] = deque()
        self._writer: asyncio.Task[None] | None = None

    def progress(self, context: JobContext, value: Json) -> Awaitable[None]:
        """Note how far a job is; only the newest value of a job is written.

        Raises:
            InvalidArgument: the value is not JSON, or too large.
        """
        text = encode(value)
        if len(text.encode()) > MAX_PROGRESS or "\\u0000" in text:
            raise InvalidArgument("progress must be JSON of at most 65536 bytes without NUL")
        self._progress[context.job_id, context.attempt] = text
        return self._soon()

    def log(self, context: JobContext, level: str, message: str) -> Awaitable[None]:
        """Note a line of a job's log."""
        text = str(message).replace("\0", "\ufffd").encode("utf-8", "replace").decode()
        self._lines.append((context.job_id, context.attempt, level, text))
        return self._soon()

    async def flush(self) -> None:
        """Return when all that was said until now is written, or cannot be."""
        while self._progress or self._lines or self._writer is not None:
            if self._writer is None:
                self._start()
            assert self._writer is not None  # noqa: S101 - just started
            await asyncio.shield(self._writer)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing left to write."""
        return not (self._progress or self._lines or self._writer)

    def _soon(self) -> Awaitable[None]:
        self._loop.call_soon_threadsafe(self._start)
        return _Written(self)

    def _start(self) -> None:
        if self._writer is None and (self._progress or self._lines):
            self._writer = self._loop.create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._progress or self._lines:
                await self._write_some()
        except DatabaseUnavailable as error:
            logger.warning("progress and log lines of jobs are lost: %s", error)
            self._progress.clear()
            self._lines.clear()
        finally:
            self._writer = None

    async def _write_some(self) -> None:
        while self._progress:
            (job_id, attempt), text = self._progress.popitem()
            try:
                await self._link.call(
                    "select jobq.set_progress(%s, %s, %s)", (job_id, attempt, text)
                )
            except DatabaseUnavailable:
                raise
            except JobqError as error:
                logger.info("progress of job %s was refused: %s", job_id, error)
        lines = [self._lines.popleft() for _ in range(min(MOST_AT_ONCE, len(self._lines)))]
        if lines:
            await self._link.call_many("select jobq.log(%s, %s, %s, %s)", lines)


class _Written:
    """Awaited, it waits until what was said is written; a thread need not await it."""

    __slots__ = ("_notes",)

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def __await__(self) -> Generator[None, None, None]:
        return self._notes.flush().__await__()
