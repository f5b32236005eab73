"""Progress, log lines and steps of running handlers, written in batches."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Generator, Sequence
from decimal import Decimal
from typing import Any, Final

from jobq.calls.arguments import encode
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobqError, LeaseLost
from jobq.models import Json
from jobq.registry.context import JobContext
from jobq.registry.steps import SAVE_STEP
from jobq.registry.streams import APPEND_MANY
from jobq.worker import tuning
from jobq.worker.connections import Backoff, Complaints, Connections
from jobq.worker.queries import SET_PROGRESS, Key, array

SPEND: Final = "select jobq.spend(%s, %s, %s::numeric)"
LOG: Final = "select jobq.log(%s, %s, %s, %s)"
SAVE_STEPS: Final = "select value, outcome from jobq_internal.save_steps(%s, %s, %s, %s)"
# The database's limits: bytes of JSON, and characters of a line.
MAX_PROGRESS: Final = 65536
MAX_LINE: Final = 8192
# Characters of JSON after which no more steps are added to a call.
MAX_STEPS_TEXT: Final = 4_194_304


class Notes:
    """The records of one attempt, from any thread. Awaiting it waits until they are written."""

    __slots__ = ("_count", "_left_out", "_lines", "_newest", "_recorder", "is_in_flight", "key")

    def __init__(self, recorder: Recorder, key: Key) -> None:
        self._recorder = recorder
        self.key = key
        self._newest: dict[str, object] = {}  # by the statement that writes it
        self._lines: list[tuple[str, str]] = []
        self._count = 0
        self._left_out = 0
        self.is_in_flight = False

    def progress(self, _context: JobContext, value: Json) -> Awaitable[None]:
        """Record the progress; only the newest value is written."""
        text = encode(value)
        if len(text.encode()) > MAX_PROGRESS or "\\u0000" in text:
            raise InvalidArgument("progress must be JSON of at most 65536 bytes without NUL")
        return self._note(SET_PROGRESS, text)

    def spend(self, _context: JobContext, cost: float | Decimal) -> Awaitable[None]:
        """Record the cost of the attempt; only the newest value is written."""
        return self._note(SPEND, cost)

    def _note(self, statement: str, value: object) -> Awaitable[None]:
        with self._recorder.lock:
            self._newest[statement] = value
            self._recorder.add(self)
        return self

    def log(self, _context: JobContext, level: str, message: str) -> Awaitable[None]:
        """Record a log line; excess lines are counted and dropped."""
        text = str(message)[:MAX_LINE].replace("\0", "\ufffd")
        text = text.encode("utf-8", "replace").decode()
        with self._recorder.lock:
            if len(self._lines) >= 2 * tuning.MAX_BATCH or self._count >= tuning.MOST_LINES:
                self._left_out += 1
            else:
                self._lines.append((level, text))
                self._count += 1
                self._recorder.add(self)
        return self

    def __await__(self) -> Generator[Any, None, None]:
        return self._recorder.wait(self).__await__()

    async def end(self) -> None:
        """Wait until everything is written, or cannot be."""
        with self._recorder.lock:
            if self._left_out:
                self._lines.append(("WARN", f"{self._left_out} lines more were left out"))
                self._left_out = 0
                self._recorder.add(self)
        await self

    def take(self) -> tuple[dict[str, object], list[tuple[str, str]]]:
        """Return the values, by statement, and the lines to write now."""
        taken = self._newest, self._lines
        self._newest, self._lines = {}, []
        self.is_in_flight = True
        return taken


class Recorder:
    """Writes the records of attempts soon, in the order in which attempts have asked for it.

    Attributes:
        lock: held while notes change.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._pending: dict[Notes, None] = {}
        self._writer: asyncio.Task[None] | None = None
        self._round_end: asyncio.Future[None] = self._loop.create_future()
        self._complaints = Complaints()
        self.lock = threading.Lock()

    def add(self, notes: Notes) -> None:
        """Request that notes are written. Callable from any thread that holds the lock."""
        is_woken = bool(self._pending) and self._writer is not None
        self._pending[notes] = None
        if not is_woken:
            self._loop.call_soon_threadsafe(self._start)

    async def wait(self, notes: Notes) -> None:
        """Wait until an attempt's records up to now are written."""
        while notes in self._pending or notes.is_in_flight:
            await self._round()

    async def flush(self) -> None:
        """Wait until all records are written, or cannot be."""
        while self._pending or self._writer is not None:
            await self._round()

    def _start(self) -> None:
        if self._writer is None:
            self._writer = self._loop.create_task(self._write())

    async def _round(self) -> None:
        """Wait for the present write, or else for the next one."""
        self._start()
        await asyncio.shield(self._round_end)

    async def _write(self) -> None:
        """Write until there is nothing left."""
        try:
            while self._pending:
                await self._write_some()
        finally:
            self._writer = None
            self._end_round()

    async def _write_some(self) -> None:
        values: list[tuple[str, tuple[Any, ...]]] = []
        lines: list[tuple[Any, ...]] = []
        taken: list[Notes] = []
        with self.lock:
            while self._pending and len(values) + len(lines) < tuning.MAX_BATCH:
                notes = next(iter(self._pending))
                del self._pending[notes]
                taken.append(notes)
                newest, own_lines = notes.take()
                values += [(statement, (*notes.key, value)) for statement, value in newest.items()]
                lines += [(*notes.key, *line) for line in own_lines]
        try:
            for statement, row in values:
                await self._send(statement, [row])
            await self._send(LOG, lines)
        except DatabaseUnavailable as error:
            self._complaints.warning("progress, costs and log lines of jobs are lost: %s", error)
            await asyncio.sleep(tuning.BACKOFF_FIRST)
        finally:
            for notes in taken:
                notes.is_in_flight = False
            self._end_round()

    async def _send(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write several together; one by one if the database refuses one of them."""
        if not rows:
            return
        try:
            await self._connections.call(statement, rows, is_vital=True, is_many=True)
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            if len(rows) == 1:
                self._complaints.warning("a record of job %s was refused: %s", rows[0][0], error)
                return
            for row in rows:
                await self._send(statement, [row])

    def _end_round(self) -> None:
        done, self._round_end = self._round_end, self._loop.create_future()
        done.set_result(None)


class Journal:
    """Runs the statements of durable steps. Steps that end during a call are saved by the next.

    So are chunks of streams, of all attempts together, and not more often than readers need.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._steps: deque[tuple[tuple[Any, ...], asyncio.Future[list[Any]]]] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._chunks: deque[tuple[tuple[Any, ...], asyncio.Future[list[Any]]]] = deque()
        self._streamer: asyncio.Task[None] | None = None

    async def call(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        """Run a statement of `jobq.registry.steps` or `jobq.registry.streams`; return its rows.

        Raises:
            LeaseLost: the attempt has lost its lease, for example because a call without an
                answer has released it.
        """
        if statement == APPEND_MANY:
            stored: asyncio.Future[list[Any]] = self._loop.create_future()
            self._chunks.append((parameters, stored))
            if self._streamer is None:
                self._streamer = self._loop.create_task(self._write_chunks())
            return await stored
        if statement != SAVE_STEP:
            return await self._answer(statement, parameters)
        saved: asyncio.Future[list[Any]] = self._loop.create_future()
        self._steps.append((parameters, saved))
        if self._writer is None:
            self._writer = self._loop.create_task(self._write())
        return await saved

    def call_from_thread(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        """Do the same for a handler in a thread."""
        coroutine = self.call(statement, parameters)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _answer(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        """Repeat a call until the database answers; stop attempts that cannot wait so long."""
        backoff = Backoff()
        while True:
            try:
                return await self._connections.call(statement, parameters)
            except DatabaseUnavailable:
                await asyncio.sleep(backoff.next())

    async def _write(self) -> None:
        """Save steps until none is left."""
        try:
            while self._steps:
                steps: list[tuple[tuple[Any, ...], asyncio.Future[list[Any]]]] = []
                length = 0
                while self._steps and len(steps) < tuning.MAX_BATCH and length < MAX_STEPS_TEXT:
                    parameters, saved = self._steps.popleft()
                    if not saved.done():  # else its handler was stopped meanwhile
                        steps.append((parameters, saved))
                        length += len(parameters[3])
                await self._save(steps)
        finally:
            self._writer = None

    async def _write_chunks(self) -> None:
        """Store chunks until none is left."""
        try:
            while self._chunks:
                began_at = self._loop.time()
                calls: list[tuple[tuple[Any, ...], asyncio.Future[list[Any]]]] = []
                size = length = 0
                while self._chunks and size < tuning.MAX_BATCH and length < MAX_STEPS_TEXT:
                    calls.append(self._chunks.popleft())
                    parameters = calls[-1][0]
                    size, length = size + len(parameters[0]), length + len(parameters[4])
                await self._store(calls)
                await asyncio.sleep(max(0, began_at + tuning.STREAM_DELAY - self._loop.time()))
        finally:
            self._streamer = None

    async def _store(self, calls: Sequence[tuple[tuple[Any, ...], asyncio.Future[Any]]]) -> None:
        """Store the chunks of several attempts; one by one if the database refuses one."""
        *columns, texts = zip(*(parameters for parameters, _ in calls), strict=True)
        merged = [[value for column in group for value in column] for group in columns]
        arguments = (
            array(merged[0]), array(merged[1]), *merged[2:],
            f"[{','.join(text[1:-1] for text in texts)}]",
        )  # fmt: skip
        try:
            lost = {tuple(row) for row in await self._answer(APPEND_MANY, arguments)}
        except Exception as error:
            if isinstance(error, JobqError) and len(calls) > 1:
                for call in calls:
                    await self._store([call])
                return
            for _, stored in calls:
                if not stored.done():
                    stored.set_exception(error)
            return
        for parameters, stored in calls:
            key = str(parameters[0][0]), parameters[1][0]
            if not stored.done():
                stored.set_result([key] if key in lost else [])

    async def _save(self, steps: Sequence[tuple[tuple[Any, ...], asyncio.Future[Any]]]) -> None:
        """Save several steps; one by one if the database refuses one of them."""
        if not steps:
            return
        job_ids, attempts, names, values = zip(*(step for step, _ in steps), strict=True)
        arguments = (array(job_ids), array(attempts), list(names), f"[{','.join(values)}]")
        try:
            rows = await self._answer(SAVE_STEPS, arguments)
        except Exception as error:
            if isinstance(error, JobqError) and len(steps) > 1:
                for step in steps:
                    await self._save([step])
                return
            rows = [(error, "refused")] * len(steps)
        for (parameters, saved), (value, outcome) in zip(steps, rows, strict=True):
            if saved.done():
                continue
            if outcome == "refused":
                saved.set_exception(value)
            elif outcome == "lost" or value is None:
                detail = f"job_id {parameters[0]}"
                saved.set_exception(LeaseLost("this attempt has lost its lease", detail=detail))
            else:
                saved.set_result([(value,)])
