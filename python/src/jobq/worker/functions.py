"""Kinds that are database functions, which any worker can run, as handlers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import psycopg
from psycopg.types.json import Jsonb

from jobq.errors import JobNotFound, JobqError, LeaseLost, of_database
from jobq.redaction import error_text
from jobq.registry.context import JobContext
from jobq.registry.handler import Handler, describe
from jobq.registry.settlement import Failed, Gone, SettledError
from jobq.worker import tuning
from jobq.worker.controller import SkippedKinds
from jobq.worker.pools import Pools
from jobq.worker.queries import RELEASED
from jobq.worker.recorder import Journal

GET_CALL: Final = "select may_run, is_batch, run, retry_on from jobq_internal.get_call(%s)"
# The maximum size of results that the caller stores: -1, so the call stores all.
STORES_ALL: Final = -1
RUN: Final = (
    "select job_id, state, error_code, error from jobq_internal.run_calls(%s, %s, %s, %s, %s, %s)"
)
# Locks a running job, and leaves its progress as it is.
LOCK: Final = "select jobq.set_progress(%s, %s, progress) from jobq.get_job(%s)"
# What a function leaves in its session must not affect later functions.
RESET: Final = "reset all; discard temp; select pg_advisory_unlock_all()"


@dataclass(eq=False)
class Functions:
    """Finds these handlers.

    A function runs with the rights of the worker's login, in a transaction of its own, which also
    completes its job. A batch handler is a function that takes the payloads of many jobs.
    """

    journal: Journal
    pools: Pools
    skipped: SkippedKinds
    _known: dict[str, tuple[float, Handler | None]] = field(default_factory=dict)

    async def find(self, kind: str) -> Handler | None:
        """Return the handler of a kind; None if the kind is not a function."""
        now = time.monotonic()
        until, handler = self._known.get(kind, (0.0, None))
        if now < until:
            return handler
        try:
            rows = await self.journal.call(GET_CALL, (kind,))
        except JobqError:  # the core is installed without functions
            rows = []
        handler = None
        for _, is_batch, *_ in rows:
            batch = tuning.MAX_BATCH if is_batch else 1
            described = describe(kind, partial(self._run, kind), batch=batch)
            handler = replace(described, is_transactional=True)
        self._known = {k: found for k, found in self._known.items() if found[0] > now}
        self._known[kind] = now + tuning.UNKNOWN_KIND_SECONDS, handler
        return handler

    async def _run(self, kind: str, contexts: Sequence[JobContext]) -> list[object]:
        """Run jobs, and return what becomes of each."""
        keys = [(context.job_id, context.attempt) for context in contexts]
        job_ids, attempts = map(list, zip(*keys, strict=True))
        payloads = [Jsonb(context.payload_text, dumps=str) for context in contexts]
        try:
            async with self.pools.connection("function") as connection:
                # Checked here, because the function, its owner or its privileges may have changed.
                calls = await (await connection.execute(GET_CALL, (kind,))).fetchall()
                if not calls or not calls[0][0]:
                    return [SettledError(self.skipped.met(kind, None))] * len(contexts)
                [(_, is_batch, run, retry_on)] = calls
                # The rows are locked until the end, so that no lease can expire meanwhile.
                locks = [(*key, key[0]) for key in keys]
                await connection.cursor().executemany(LOCK, locks)
                call = (run, is_batch, job_ids, attempts, payloads, STORES_ALL)
                ended = await (await connection.execute(RUN, call)).fetchall()
                await connection.execute(RESET)
        except psycopg.Error as error:
            if len(contexts) > 1:  # one of them may have ended the session, or be lost
                return [(await self._run(kind, [context]))[0] for context in contexts]
            refusal = of_database(error)
            if isinstance(refusal, LeaseLost | JobNotFound):
                return [Gone("lost")]
            return [SettledError(Failed(error.sqlstate or "08006", error_text(refusal)))]
        outcomes: dict[Any, object] = {}
        for job_id, state, code, text in ended:
            outcomes[job_id] = Gone(RELEASED.get(state, state))
            if code is not None:
                is_retryable = code in retry_on or code[:2] in retry_on
                outcomes[job_id] = SettledError(Failed(code, error_text(text), is_retryable))
        return [outcomes[job_id] for job_id in job_ids]
