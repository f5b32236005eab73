"""What handlers say while they run: progress and log lines, written in batches."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from jobq.arguments import encode
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobqError
from jobq.worker.logs import Sparing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

    from jobq.context import JobContext
    from jobq.models import Json
    from jobq.worker.held import Key
    from jobq.worker.protocol import Protocol

__all__ = ["Notes"]

logger = logging.getLogger("jobq.worker")

# Bytes of JSON, the database's limit.
MAX_PROGRESS: Final = 65536
# Characters of a line, at which the database cuts.
MAX_LINE: Final = 8192
# Lines in one call, of all jobs together: it takes the place of a heartbeat for a moment.
BATCH: Final = 500
# Lines of one attempt in a call while others have some too: so that each has its turn.
TURN: Final = 50
# Lines of an attempt that wait to be written: a second's worth of a database that is slow.
MOST_WAITING: Final = 1000
# Lines of an attempt in all: more is not read by people, and belongs into a file.
MOST_LINES: Final = 10_000
# Seconds before the next call when the database did not answer.
PAUSE: Final = 0.1


class Said:
    """What an attempt has said and is not written yet.

    Attributes:
        progress: the newest, as JSON text; None when there is none.
        lines: levels and texts.
        count: how many lines it has had written, or waiting.
        left_out: how many were too many.
        is_over: whether the attempt has ended.
    """

    __slots__ = ("count", "is_over", "left_out", "lines", "progress")

    def __init__(self) -> None:
        self.progress: str | None = None
        self.lines: deque[tuple[str, str]] = deque()
        self.count = 0
        self.left_out = 0
        self.is_over = False

    @property
    def is_written(self) -> bool:
        """Whether there is nothing left to write."""
        return self.progress is None and not self.lines

    def add(self, level: str, text: str) -> None:
        """Add a line, unless there are too many."""
        if len(self.lines) >= MOST_WAITING or self.count >= MOST_LINES:
            self.left_out += 1
            return
        self.lines.append((level, text))
        self.count += 1


class Notes:
    """Takes what handlers say, from any thread, and writes it soon.

    Attempts take turns, and each waits for its own notes alone.

    Args:
        protocol: what is said to the database.
    """

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._said: dict[Key, Said] = {}
        self._is_changed = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._round_end: asyncio.Future[None] = self._loop.create_future()
        self._in_flight: set[Key] = set()
        self._complaints = Sparing(logger)

    def progress(self, context: JobContext, value: Json) -> Awaitable[None]:
        """Note how far a job is; only the newest value of a job is written.

        Raises:
            InvalidArgument: the value is not JSON, or too large.
        """
        text = encode(value)
        if len(text.encode()) > MAX_PROGRESS or "\\u0000" in text:
            raise InvalidArgument("progress must be JSON of at most 65536 bytes without NUL")
        key = str(context.job_id), context.attempt
        with self._lock:
            self._of(key).progress = text
        return self._soon(key)

    def log(self, context: JobContext, level: str, message: str) -> Awaitable[None]:
        """Note a line of a job's log; what is too much is counted, and left out."""
        text = str(message)[:MAX_LINE].replace("\0", "\ufffd")
        text = text.encode("utf-8", "replace").decode()
        key = str(context.job_id), context.attempt
        with self._lock:
            self._of(key).add(level, text)
        return self._soon(key)

    async def written(self, key: Key) -> None:
        """Return when all that an attempt has said is written, or cannot be."""
        while (said := self._said.get(key)) is not None:
            with self._lock:
                if said.is_written and said.left_out:
                    said.lines.append(("WARN", f"{said.left_out} lines more were left out"))
                    said.left_out = 0
            if said.is_written and key not in self._in_flight:
                self._said.pop(key, None)
                return
            await self._round()

    async def wait(self, key: Key) -> None:
        """Return when what an attempt has said until now is written; it may go on."""
        while (said := self._said.get(key)) is not None:
            if said.is_written and key not in self._in_flight:
                return
            await self._round()

    async def flush(self) -> None:
        """Return when all that anybody has said is written, or cannot be."""
        for key in list(self._said):
            await self.written(key)

    def forget(self, key: Key) -> None:
        """Keep nothing of an attempt that is over, once what it said is written."""
        said = self._said.get(key)
        if said is not None:
            said.is_over = True
            self._start()

    def _of(self, key: Key) -> Said:
        said = self._said.get(key)
        if said is None:
            said = self._said[key] = Said()
        return said

    def _soon(self, key: Key) -> Awaitable[None]:
        if not self._is_changed.is_set():
            self._loop.call_soon_threadsafe(self._start)
        return _Written(self, key)

    def _start(self) -> None:
        self._is_changed.set()
        if self._writer is None:
            self._writer = self._loop.create_task(self._write())

    async def _round(self) -> None:
        """Wait until what is being written now, or else what comes next, is written."""
        self._start()
        await asyncio.shield(self._round_end)

    async def _write(self) -> None:
        """Write until there is nothing left."""
        try:
            while self._is_changed.is_set():
                self._is_changed.clear()
                while any(not said.is_written for said in list(self._said.values())):
                    await self._write_round()
                self._tell()
        finally:
            self._writer = None

    async def _write_round(self) -> None:
        """Write some of everybody's."""
        with self._lock:
            progress = [(k, s.progress) for k, s in self._said.items() if s.progress is not None]
            for key, _ in progress:
                self._said[key].progress = None
            lines = self._next_lines()
            self._in_flight = {key for key, _ in progress} | {(line[0], line[1]) for line in lines}
        try:
            for key, text in progress:
                await self._write_progress(key, text)
            await self._write_lines(lines)
        except DatabaseUnavailable as error:
            self._complaints.warning("progress and log lines of jobs are lost: %s", error)
            await asyncio.sleep(PAUSE)
        finally:
            self._in_flight = set()
            self._tell()

    def _tell(self) -> None:
        """Let those who wait look again, and forget attempts that are over."""
        done, self._round_end = self._round_end, self._loop.create_future()
        done.set_result(None)
        with self._lock:
            for key in [k for k, said in self._said.items() if said.is_over and said.is_written]:
                del self._said[key]

    def _next_lines(self) -> list[tuple[str, int, str, str]]:
        """Take the lines of the next call: of each attempt some, then of the first the rest."""
        lines: list[tuple[str, int, str, str]] = []
        for turn in (TURN, BATCH):
            for key, said in list(self._said.items()):
                count = min(turn, len(said.lines), BATCH - len(lines))
                lines += [(*key, *said.lines.popleft()) for _ in range(count)]
        for key in list(islice(self._said, 1)):  # another one is the first next time
            self._said[key] = self._said.pop(key)
        return lines

    async def _write_progress(self, key: Key, text: str) -> None:
        try:
            await self._protocol.set_progress(key, text)
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            self._complaints.warning("progress of job %s was refused: %s", key[0], error)

    async def _write_lines(self, lines: list[tuple[str, int, str, str]]) -> None:
        """Write lines together; one by one where the database refuses one of them."""
        if not lines:
            return
        try:
            await self._protocol.log(lines)
        except DatabaseUnavailable:
            raise
        except JobqError:
            for line in lines:
                await self._write_line(line)

    async def _write_line(self, line: tuple[str, int, str, str]) -> None:
        try:
            await self._protocol.log([line])
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            self._complaints.warning("a line of job %s was refused: %s", line[0], error)


class _Written:
    """Awaited, it waits until what was said is written; a thread need not await it."""

    __slots__ = ("_key", "_notes")

    def __init__(self, notes: Notes, key: Key) -> None:
        self._notes = notes
        self._key = key

    def __await__(self) -> Generator[None, None, None]:
        return self._notes.wait(self._key).__await__()
