"""Jobs whose kinds are functions of the database, which any worker can have run."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from psycopg.types.string import TextLoader

from jobq.errors import of_database
from jobq.outcomes import Unable
from jobq.redaction import error_text
from jobq.worker.logs import Sparing
from jobq.worker.protocol import RELEASE_MANY, SET_PROGRESS
from jobq.worker.unknown import FORGET

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from jobq.worker.attempts import Attempts
    from jobq.worker.places import Places
    from jobq.worker.unknown import Unknown

__all__ = ["Calls"]

logger = logging.getLogger("jobq.worker")

SETTINGS: Final = "select jobq.settings(%s)"
WORK: Final = "select job_id, kind, state from jobq.work(%s, %s)"
CLAIM: Final = (
    "select job_id, attempt, kind, payload, run, is_batch, retry_on from jobq.claim_calls(%s, 1)"
)
RUN: Final = "select state, error_code, error from jobq.run_calls(%s, %s, %s, %s, %s, %s)"
# What a function has set must reach neither later functions nor handlers.
RESET: Final = "reset all"
FAIL: Final = "select jobq.fail(%s, %s, %s, %s, %s)"
# The size of results that it leaves to be stored: none.
STORES_ALL: Final = -1
# Jobs of one transaction.
MOST: Final = 100
# The code of an attempt whose session ended without saying why.
CONNECTION_LOST: Final = "08006"


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A job that is leased to this session's log-in."""

    job_id: UUID
    attempt: int
    kind: str
    payload: str
    run: list[str]
    is_batch: bool
    retry_on: list[str]

    @property
    def arguments(self) -> tuple[object, ...]:
        """What `jobq.run_calls` takes."""
        payload = Jsonb(self.payload, dumps=str)
        return self.run, self.is_batch, [self.job_id], [self.attempt], [payload], STORES_ALL

    def is_retryable(self, code: str) -> bool:
        """Whether the kind is tried again after this error."""
        return code in self.retry_on or code[:2] in self.retry_on


class Calls:
    """Has such jobs run by `jobq.work`, once the worker has met a kind that it does not know.

    They run in a transaction of their own, with the rights of the worker's log-in. Until there
    is such a kind it asks nothing.

    Where the session ends in the middle, no attempt of the jobs in it counts, and one of them
    may have ended it. So the next ones run one by one, each after its claim was committed: then
    the attempt counts, whatever the function does to its session.

    Args:
        places: where connections come from.
        queues: what the worker serves.
        unknown: the kinds that have no handler here.
        attempts: what tells of jobs that have ended, and of what the worker lacks.
        poll: seconds between looks.

    Attributes:
        is_idle: whether it has looked since it was last asked to, and found no more.
    """

    def __init__(
        self,
        places: Places,
        queues: Sequence[str],
        unknown: Unknown,
        attempts: Attempts,
        poll: float,
    ) -> None:
        self._places = places
        self._queues = list(queues)
        self._unknown = unknown
        self._attempts = attempts
        self._poll = poll
        self._is_asked = asyncio.Event()
        self._complaints = Sparing(logger)
        self._met: list[tuple[str, str, str]] = []
        self._learned_at = 0.0
        self._suspects = 0
        self._is_stopping = False
        self.is_idle = True

    def met(self, kind: str, code: str, text: str) -> None:
        """A job of a kind without a handler has come: it may be a function's."""
        self._met.append((kind, code, text))
        self.look()

    def look(self) -> None:
        """There may be jobs."""
        self.is_idle = False
        self._is_asked.set()

    def stop(self) -> None:
        """Let what runs end, and begin nothing more."""
        self._is_stopping = True
        self._is_asked.set()

    async def run(self) -> None:
        """Work until stopped, or cancelled; what runs then is undone, and left to others."""
        while not self._is_stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._is_asked.wait()
            self._is_asked.clear()
            try:
                await self._learn()
                while self._has_work and await self._work():
                    pass
            except (psycopg.Error, Unable) as error:
                self._complaints.warning("functions of the database: %s", _text(error))
            self.is_idle = not self._is_asked.is_set()

    @property
    def _has_work(self) -> bool:
        return bool(self._unknown.functions) and not self._is_stopping

    # ---- what is a function

    async def _learn(self) -> None:
        """Tell the kinds that are functions from those that nobody here can do."""
        known = self._unknown.functions
        is_stale = bool(known) and time.monotonic() - self._learned_at > FORGET
        if not self._met and not is_stale:
            return
        kinds = {kind for kind, _, _ in self._met} | (known if is_stale else set())
        async with self._places.connection() as connection:
            for kind in kinds:
                [settings] = await _one(connection, SETTINGS, (kind,))
                (known.add if settings["run"] else known.discard)(kind)
        self._learned_at = time.monotonic()
        met, self._met = self._met, []
        for kind, code, text in met:
            if kind not in known:
                self._attempts.complain(kind, code, text)

    # ---- their jobs

    async def _work(self) -> bool:
        """Run what is due; return whether there may be more."""
        if self._suspects:
            return await self._work_alone()
        connection: psycopg.AsyncConnection[Any] | None = None
        try:
            async with self._places.connection() as connection:
                rows = await connection.execute(WORK, (self._queues, MOST))
                ended = await rows.fetchall()
                await connection.execute(RESET)
        except psycopg.Error:
            if connection is not None and connection.closed:
                self._suspects = MOST
                self.look()
            raise
        for job_id, kind, state in ended:
            self._attempts.called(job_id, kind, state)
        return len(ended) == MOST

    async def _work_alone(self) -> bool:
        """Run one job, whose claim is committed before."""
        async with self._places.connection() as connection:
            cursor = connection.cursor(row_factory=class_row(_Claimed))
            cursor.adapters.register_loader("jsonb", TextLoader)
            await cursor.execute(CLAIM, (self._queues,))
            job = await cursor.fetchone()
        if job is None:
            self._suspects = 0
            return False
        self._suspects -= 1
        try:
            state = await self._run_alone(job)
        except BaseException:  # it is cancelled, or there is no connection
            with suppress(psycopg.Error, Unable):
                async with self._places.connection() as connection:
                    await connection.execute(RELEASE_MANY, ([job.job_id], [job.attempt], None))
            raise
        self._attempts.called(job.job_id, job.kind, state)
        return True

    async def _run_alone(self, job: _Claimed) -> str:
        """Run a job's function and return the job's new state."""
        is_begun = False
        try:
            async with self._places.connection() as connection:
                # Its row is locked until the end, so that its lease cannot expire meanwhile.
                await connection.execute(SET_PROGRESS, (job.job_id, job.attempt, Jsonb(None)))
                is_begun = True
                state, code, text = await _one(connection, RUN, job.arguments)
                await connection.execute(RESET)
                if code is None:
                    return str(state)
                failure = (text, code, job.is_retryable(code))
                [state] = await _one(connection, FAIL, (job.job_id, job.attempt, *failure))
                return str(state)
        except psycopg.Error as error:
            if not (is_begun and connection.closed):
                raise
            failure = (_text(error), error.sqlstate or CONNECTION_LOST, True)
        self._suspects = 0  # it was this one
        async with self._places.connection() as connection:
            [state] = await _one(connection, FAIL, (job.job_id, job.attempt, *failure))
        return str(state)


async def _one(
    connection: psycopg.AsyncConnection[Any], statement: str, arguments: Sequence[object]
) -> Any:  # noqa: ANN401 - a row
    """Return the only row of a statement's answer."""
    [row] = await (await connection.execute(statement, arguments)).fetchall()
    return row


def _text(error: BaseException) -> str:
    return error_text(of_database(error) if isinstance(error, psycopg.Error) else error)
