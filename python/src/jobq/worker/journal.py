"""Where the steps of a worker's jobs are recorded: those of many jobs with one call."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from jobq.errors import DatabaseUnavailable, JobqError, LeaseLost
from jobq.models import Input
from jobq.worker.link import Pace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from datetime import timedelta

    from jobq.models import Json
    from jobq.steps import Wait
    from jobq.worker.protocol import Protocol

__all__ = ["Step", "ThreadJournal", "WorkerJournal"]

# Steps in one call, and characters of JSON after which no more are added to it.
MOST_STEPS: Final = 500
MOST_TEXT: Final = 4_194_304


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step that is to be recorded.

    Attributes:
        value: what it has come to, as JSON text.
        recorded: told what is recorded.
    """

    job_id: UUID
    attempt: int
    name: str
    value: str
    recorded: asyncio.Future[Json]


class WorkerJournal:
    """Records steps, one call after the other: what comes during a call goes with the next.

    Args:
        protocol: what is said to the database.
    """

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._steps: deque[Step] = deque()
        self._writer: asyncio.Task[None] | None = None

    async def load(self, job_id: UUID) -> dict[str, Json]:
        """Return what earlier attempts have recorded."""
        rows = await _answer(lambda: self._protocol.list_steps(job_id))
        return {name: msgspec.json.decode(value) for name, value in rows}

    async def save(self, job_id: UUID, attempt: int, name: str, value: str) -> Json:
        """Record what a step has come to.

        Raises:
            LeaseLost: the attempt no longer holds its job.
        """
        step = Step(job_id, attempt, name, value, self._loop.create_future())
        self._steps.append(step)
        if self._writer is None:
            self._writer = self._loop.create_task(self._write())
        return await step.recorded

    async def wait(self, job_id: UUID, attempt: int, event: str, within: timedelta | None) -> Wait:
        """Wait for an event.

        Raises:
            LeaseLost: the attempt no longer holds its job, for one because it was given
                back by a call whose answer did not come.
        """
        outcome, payload = await _answer(
            lambda: self._protocol.wait_for(job_id, attempt, event, within)
        )
        return outcome, None if payload is None else msgspec.json.decode(payload)

    async def inputs(self, job_id: UUID) -> list[Input]:
        """Return what the jobs have come to that this one waited for."""
        rows = await _answer(lambda: self._protocol.list_inputs(job_id))
        return [
            Input(UUID(str(parent)), name, kind, state, msgspec.json.decode(result or "null"), rule)
            for parent, name, kind, state, result, rule in rows
        ]

    async def _write(self) -> None:
        """Write until there is nothing left."""
        try:
            while self._steps:
                await self._save(self._next())
        finally:
            self._writer = None

    def _next(self) -> list[Step]:
        """Take the steps of the next call."""
        steps: list[Step] = []
        length = 0
        while self._steps and len(steps) < MOST_STEPS and length < MOST_TEXT:
            step = self._steps.popleft()
            if not step.recorded.done():  # its handler was stopped meanwhile
                steps.append(step)
                length += len(step.value)
        return steps

    async def _save(self, steps: Sequence[Step]) -> None:
        """Record some steps; one by one where the database refuses one of them."""
        if not steps:
            return
        try:
            rows = await _answer(lambda: self._protocol.save_steps(steps))
        except Exception as error:
            if isinstance(error, JobqError) and len(steps) > 1:
                for step in steps:
                    await self._save([step])
                return
            for step in steps:
                _tell(step, error)
        else:
            for step, (value, outcome) in zip(steps, rows, strict=True):
                is_lost = outcome == "lost" or value is None
                _tell(step, _lost(step) if is_lost else msgspec.json.decode(value or ""))


class ThreadJournal:
    """As `WorkerJournal`, for handlers in threads.

    Args:
        journal: the worker's.
        loop: where that one runs.
    """

    def __init__(self, journal: WorkerJournal, loop: asyncio.AbstractEventLoop) -> None:
        self._journal = journal
        self._loop = loop

    def load(self, job_id: UUID) -> dict[str, Json]:
        """Return what earlier attempts have recorded."""
        loaded: dict[str, Json] = self._of(self._journal.load(job_id))
        return loaded

    def save(self, job_id: UUID, attempt: int, name: str, value: str) -> Json:
        """Record what a step has come to."""
        return self._of(self._journal.save(job_id, attempt, name, value))

    def wait(self, job_id: UUID, attempt: int, event: str, within: timedelta | None) -> Wait:
        """Wait for an event."""
        waited: Wait = self._of(self._journal.wait(job_id, attempt, event, within))
        return waited

    def inputs(self, job_id: UUID) -> list[Input]:
        """Return what the jobs have come to that this one waited for."""
        found: list[Input] = self._of(self._journal.inputs(job_id))
        return found

    def _of(self, coroutine: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - its answer
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


async def _answer(ask: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 - whatever it is
    """Ask the database until it answers; an attempt that cannot wait so long is stopped."""
    pace = Pace()
    while True:
        try:
            return await ask()
        except DatabaseUnavailable:
            await asyncio.sleep(pace.next())


def _tell(step: Step, answer: object) -> None:
    """Tell a handler what is recorded, or raise there what went wrong."""
    if step.recorded.done():
        return
    if isinstance(answer, Exception):
        step.recorded.set_exception(answer)
    else:
        step.recorded.set_result(answer)


def _lost(step: Step) -> LeaseLost:
    return LeaseLost("this attempt no longer holds the job", detail=f"job_id {step.job_id}")
