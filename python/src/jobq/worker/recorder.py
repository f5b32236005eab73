"""Progress, log lines and steps of running handlers, written in batches."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Awaitable, Generator, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from jobq.calls.arguments import encode
from jobq.calls.batcher import Batcher
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobqError, LeaseLost
from jobq.models import Json
from jobq.registry.context import JobContext
from jobq.registry.steps import CALL_CHILDREN, LIST_STEPS, SAVE_STEP
from jobq.registry.streams import APPEND_MANY, DELAY
from jobq.worker import tuning
from jobq.worker.connections import Backoff, Complaints, Connections
from jobq.worker.queries import SET_PROGRESS, Key, array

SPEND: Final = "select jobq.spend(%s, %s, %s::numeric)"
LOG: Final = "select jobq.log(%s, %s, %s, %s)"
SAVE_STEPS: Final = "select value, outcome from jobq_internal.save_steps(%s, %s, %s, %s)"
READ_STEPS: Final = "select job_id, name, value from jobq_internal.read_steps(%s, %s)"
CALL_MANY: Final = "select outcome, ends from jobq_internal.call_many(%s, %s, %s)"
# The database's limits: bytes of JSON, and characters of a line.
MAX_PROGRESS: Final = 65536
MAX_LINE: Final = 8192


class Notes:
    """The records of one attempt, from any thread. Awaiting it waits until they are written."""

    __slots__ = (
        "_count", "_is_used", "_keeps", "_left_out", "_lines", "_newest", "_recorder", "key",
    )  # fmt: skip

    def __init__(self, recorder: Recorder, key: Key) -> None:
        self._recorder = recorder
        self.key = key
        self._newest: dict[str, object] = {}  # by the statement that writes it
        self._keeps = False  # the values, for the handler's transaction
        self._lines: list[tuple[str, str]] = []
        self._count = 0
        self._left_out = 0
        self._is_used = False

    def progress(self, _context: JobContext, value: Json) -> Awaitable[None]:
        """Record the progress; only the newest value is written."""
        text = encode(value)
        if len(text.encode()) > MAX_PROGRESS:
            raise InvalidArgument("progress must be JSON of at most 65536 bytes")
        return self._note(SET_PROGRESS, text)

    def spend(self, _context: JobContext, cost: float | Decimal) -> Awaitable[None]:
        """Record the cost of the attempt; only the newest value is written."""
        return self._note(SPEND, cost)

    def _note(self, statement: str, value: object) -> Awaitable[None]:
        with self._recorder.lock:
            if not self._keeps:
                self._ask()
            self._newest[statement] = value
        return self

    def log(self, _context: JobContext, level: str, message: str) -> Awaitable[None]:
        """Record a log line; excess lines are counted and dropped."""
        text = str(message)[:MAX_LINE].replace("\0", "\ufffd")
        text = text.encode("utf-8", "replace").decode()
        with self._recorder.lock:
            if len(self._lines) >= 2 * tuning.MAX_BATCH or self._count >= tuning.MOST_LINES:
                self._left_out += 1
            else:
                self._ask()
                self._lines.append((level, text))
                self._count += 1
        return self

    def _ask(self) -> None:
        """Ask to write what follows, unless more is waiting to be written already."""
        if not (self._lines or (self._newest and not self._keeps)):
            self._is_used = True
            self._recorder.ask(self)

    def __await__(self) -> Generator[Any, None, None]:
        if self._is_used:
            yield from self._recorder.write(self).__await__()

    def keep_values(self) -> bool:
        """Keep progress and cost for the handler's transaction; return false if they were."""
        with self._recorder.lock:
            was_kept, self._keeps = self._keeps, True
        return not was_kept

    def values(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the newest progress and cost: statements with their parameters."""
        newest = list(self._newest.items())
        return [(statement, (*self.key, value)) for statement, value in newest]

    async def end(self, *, has_committed: bool = False) -> None:
        """Wait until everything is written, or cannot be.

        Values that were kept are written now, unless the handler's transaction has committed them.
        """
        with self._recorder.lock:
            if self._keeps:
                self._keeps, self._is_used = False, True
                if has_committed:
                    self._newest = {}
            if self._left_out:
                self._lines.append(("WARN", f"{self._left_out} lines more were left out"))
                self._left_out = 0
        await self

    def take(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Return what to write now: statements with their parameters."""
        values = []
        if not self._keeps:
            values, self._newest = self.values(), {}
        lines, self._lines = self._lines, []
        return values + [(LOG, (*self.key, *line)) for line in lines]


class Recorder:
    """Writes the records of attempts soon, in the order in which attempts have asked for it.

    Attributes:
        lock: held while notes change.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._batcher = Batcher(self._write, tuning.MAX_BATCH)
        self._complaints = Complaints()
        self.lock = threading.Lock()

    def ask(self, notes: Notes) -> None:
        """Request that notes are written. Callable from any thread."""
        self._loop.call_soon_threadsafe(self.write, notes)

    def write(self, notes: Notes) -> asyncio.Future[None]:
        """Return what is done when an attempt's records up to now are written, or cannot be.

        Raises:
            RuntimeError: a plain function awaits it in an event loop of its own.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("a plain function does not await progress(), spend() and log()")
        return self._batcher.call((notes,))

    async def flush(self) -> None:
        """Wait until all records are written, or cannot be: those before an empty one."""
        await self.write(Notes(self, ("", 0)))

    async def _write(self, asked: Sequence[tuple[Notes]]) -> Sequence[None]:
        rows: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        with self.lock:
            for (notes,) in asked:
                for statement, row in notes.take():
                    rows[statement].append(row)
        try:
            for statement, of_all in rows.items():
                # A value locks its job, or limits: alone, since others may lock in another order.
                most = tuning.MAX_BATCH if statement == LOG else 1
                for first in range(0, len(of_all), most):
                    await self._send(statement, of_all[first : first + most])
        except DatabaseUnavailable as error:
            self._complaints.warning("progress, costs and log lines of jobs are lost: %s", error)
            await asyncio.sleep(tuning.BACKOFF_FIRST)
        return [None] * len(asked)

    async def _send(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write several together; one by one if the database refuses one of them."""
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


Rows: TypeAlias = list[Any]


class Journal:
    """Runs the statements of durable steps: the most frequent ones for many attempts together."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._batchers = {
            SAVE_STEP: Batcher(self._save_steps, tuning.MAX_BATCH),
            LIST_STEPS: Batcher(self._read_steps, tuning.MAX_BATCH),
            CALL_CHILDREN: Batcher(self._call_children, tuning.MAX_BATCH),
            APPEND_MANY: Batcher(self._append, tuning.MAX_BATCH, DELAY),
        }

    async def call(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        """Run a statement of `jobq.registry.steps` or `jobq.registry.streams`; return its rows.

        Raises:
            LeaseLost: the attempt has lost its lease, for example because a call without an
                answer has released it.
        """
        batcher = self._batchers.get(statement)
        if batcher is None:
            return await self._ask(statement, parameters)
        return await batcher.call(parameters)

    def call_from_thread(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        """Do the same for a handler in a thread."""
        coroutine = self.call(statement, parameters)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _ask(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        """Repeat a call until the database answers; stop attempts that cannot wait so long."""
        backoff = Backoff()
        while True:
            try:
                return await self._connections.call(statement, parameters)
            except DatabaseUnavailable:
                await asyncio.sleep(backoff.next())

    async def _save_steps(self, steps: Sequence[tuple[Any, ...]]) -> list[Rows | Exception]:
        job_ids, attempts, names, values = zip(*steps, strict=True)
        arguments = (array(job_ids), array(attempts), list(names), f"[{','.join(values)}]")
        rows = await self._ask(SAVE_STEPS, arguments)
        return [
            _lost(step) if outcome == "lost" or value is None else [(value,)]
            for step, (value, outcome) in zip(steps, rows, strict=True)
        ]

    async def _read_steps(self, jobs: Sequence[tuple[Any, ...]]) -> list[Rows | Exception]:
        keys = [(str(job_id), attempt) for [job_id], [attempt] in jobs]
        job_ids, attempts = zip(*keys, strict=True)
        rows = await self._ask(READ_STEPS, (array(job_ids), array(attempts)))
        steps: defaultdict[str, list[Any]] = defaultdict(list)
        for job_id, *step in rows:
            steps[job_id].append(step)
        return [steps[key[0]] if key[0] in steps else _lost(key) for key in keys]

    async def _call_children(self, calls: Sequence[tuple[Any, ...]]) -> list[Rows | Exception]:
        job_ids, attempts, children = zip(*calls, strict=True)
        arguments = (array(job_ids), array(attempts), f"[{','.join(children)}]")
        rows = await self._ask(CALL_MANY, arguments)
        return [
            _lost(call) if row[0] == "lost" else [row]
            for call, row in zip(calls, rows, strict=True)
        ]

    async def _append(self, chunks: Sequence[tuple[Any, ...]]) -> list[Rows | Exception]:
        *columns, texts = zip(*chunks, strict=True)
        job_ids, attempts, *rest = [[v for part in column for v in part] for column in columns]
        text = f"[{','.join(text[1:-1] for text in texts)}]"
        rows = await self._ask(APPEND_MANY, (array(job_ids), array(attempts), *rest, text))
        lost = {(job_id, attempt) for job_id, attempt, outcome in rows if outcome == "lost"}
        keys = [(str(parameters[0][0]), parameters[1][0]) for parameters in chunks]
        return [[(*key, "lost")] if key in lost else [] for key in keys]


def _lost(call: tuple[Any, ...]) -> LeaseLost:
    return LeaseLost("this attempt has lost its lease", detail=f"job_id {call[0]}")
