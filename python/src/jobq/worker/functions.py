"""Jobs whose kinds are database functions, which any worker can run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.types.json import Jsonb
from psycopg.types.string import TextLoader

from jobq.errors import of_database
from jobq.redaction import error_text
from jobq.registry.outcomes import Unable
from jobq.worker import tuning
from jobq.worker.connections import Complaints
from jobq.worker.controller import SkippedKinds
from jobq.worker.listener import Wakeups, is_set_within
from jobq.worker.metrics import Report
from jobq.worker.pools import Pools
from jobq.worker.queries import RELEASE_MANY, SET_PROGRESS

SETTINGS: Final = "select jobq.settings(%s)"
WORK: Final = "select job_id, kind, state from jobq.work(%s, %s)"
CLAIM: Final = (
    "select job_id, attempt, kind, payload, run, is_batch, retry_on"
    " from jobq_internal.claim_calls(%s, 1)"
)
# The maximum size of results that the caller stores: -1, so the call stores all.
STORES_ALL: Final = -1
RUN: Final = "select state, error_code, error from jobq_internal.run_calls(%s, %s, %s, %s, %s, %s)"
# Settings of a function must not affect later functions or handlers.
RESET: Final = "reset all"
FAIL: Final = "select jobq.fail(%s, %s, %s, %s, %s)"
# Jobs of one transaction.
MOST: Final = 100


@dataclass(eq=False)
class Functions:
    """Runs such jobs with `jobq.work`, once the worker has seen a kind without a handler.

    They run in a transaction of their own, with the rights of the worker's login. Until there
    is such a kind, it sends no statement.

    If the session breaks, no attempt of its jobs counts, and one of them may be the cause. So
    the next jobs run one by one, each after its claim has been committed: then the attempt
    counts, whatever the function does to its session.
    """

    pools: Pools
    queues: list[str]
    skipped: SkippedKinds
    report: Report
    wakeups: Wakeups
    poll: float

    def __post_init__(self) -> None:
        self._is_asked = self.wakeups.functions
        self._complaints = Complaints()
        self._learned_at = 0.0
        self._suspects = 0
        self._is_stopping = False

    def end(self) -> None:
        """Start no more jobs."""
        self._is_stopping = True
        self._is_asked.set()

    async def run(self) -> None:
        """Work until stopped or cancelled; running jobs are then rolled back, for other workers."""
        while not self._is_stopping:
            await is_set_within(self._is_asked, self.poll)
            self.wakeups.runs_functions = True
            self._is_asked.clear()
            try:
                await self._learn()
                has_more = True
                while has_more and self.skipped.functions and not self._is_stopping:
                    has_more = await self._work()
            except (psycopg.Error, Unable) as error:
                self._complaints.warning("database functions: %s", _text(error))
            self.wakeups.runs_functions = self._is_asked.is_set()

    async def _learn(self) -> None:
        """Find out which of the new kinds are database functions."""
        known, new = self.skipped.functions, self.skipped.new
        is_stale = bool(known) and time.monotonic() - self._learned_at > tuning.UNKNOWN_KIND_SECONDS
        if not new and not is_stale:
            return
        async with self.pools.connection() as connection:
            for kind in {kind for kind, _, _ in new} | (known if is_stale else set()):
                settings = await _value(connection, SETTINGS, (kind,))
                (known.add if settings["run"] else known.discard)(kind)
        self._learned_at = time.monotonic()
        met, self.skipped.new = self.skipped.new, []
        for kind, code, text in met:
            if kind not in known:
                self.report.unable(kind, code, text)

    async def _work(self) -> bool:
        """Run due jobs; return whether there may be more."""
        if self._suspects:
            return await self._work_alone()
        connection: psycopg.AsyncConnection[Any] | None = None
        try:
            async with self.pools.connection() as connection:
                ended = await (await connection.execute(WORK, (self.queues, MOST))).fetchall()
                await connection.execute(RESET)
        except psycopg.Error:
            if connection is not None and connection.closed:
                self._suspects = MOST
                self._is_asked.set()
            raise
        for job_id, kind, state in ended:
            self.report.function_ended(job_id, kind, state)
        return len(ended) == MOST

    async def _work_alone(self) -> bool:
        """Run one job after committing its claim."""
        async with self.pools.connection() as connection:
            cursor = connection.cursor()
            cursor.adapters.register_loader("jsonb", TextLoader)
            await cursor.execute(CLAIM, (self.queues,))
            job = await cursor.fetchone()
        if job is None:
            self._suspects = 0
            return False
        self._suspects -= 1
        job_id, attempt, kind, *call = job
        try:
            state = await self._run((job_id, attempt), *call)
        except BaseException:  # it is cancelled, or there is no connection
            with suppress(psycopg.Error, Unable):
                async with self.pools.connection() as connection:
                    await connection.execute(RELEASE_MANY, ([job_id], [attempt], None))
            raise
        self.report.function_ended(job_id, kind, state)
        return True

    async def _run(
        self,
        key: tuple[Any, int],
        payload: str,
        function: list[str],
        is_batch: bool,
        retry_on: list[str],
    ) -> str:
        """Run a job's function and return the job's new state."""
        is_begun = False
        call = function, is_batch, [key[0]], [key[1]], [Jsonb(payload, dumps=str)], STORES_ALL
        try:
            async with self.pools.connection() as connection:
                # Its row is locked until the end, so that its lease cannot expire meanwhile.
                await connection.execute(SET_PROGRESS, (*key, Jsonb(None)))
                is_begun = True
                [row] = await (await connection.execute(RUN, call)).fetchall()
                await connection.execute(RESET)
                state, code, text = row
                if code is not None:
                    is_retryable = code in retry_on or code[:2] in retry_on
                    state = await _value(connection, FAIL, (*key, text, code, is_retryable))
                return str(state)
        except psycopg.Error as error:
            if not (is_begun and connection.closed):
                raise
            failure = _text(error), error.sqlstate or "08006", True
        self._suspects = 0  # it was this one
        async with self.pools.connection() as connection:
            return str(await _value(connection, FAIL, (*key, *failure)))


async def _value(
    connection: psycopg.AsyncConnection[Any], statement: str, arguments: Sequence[object]
) -> Any:  # noqa: ANN401 - of a row
    [[value]] = await (await connection.execute(statement, arguments)).fetchall()
    return value


def _text(error: BaseException) -> str:
    return error_text(of_database(error) if isinstance(error, psycopg.Error) else error)
