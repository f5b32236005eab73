"""Settling a batch and claiming the next, whatever one job of it may do to the batch."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobq.errors import DatabaseUnavailable, JobqError, NotDeployed, NotPermitted
from jobq.redaction import error_text
from jobq.settlement import CancelConfirmed, Failed, Released, Succeeded
from jobq.worker.protocol import until_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from jobq.settlement import Hold
    from jobq.worker.held import Held
    from jobq.worker.protocol import Protocol

__all__ = ["Claimed", "Exchange"]

logger = logging.getLogger("jobq.worker")

REFUSED: Final = "RESULT_REFUSED"
NO_PARTITION: Final = "23514"


@dataclass(frozen=True, slots=True)
class Claimed:
    """What came of an exchange.

    Attributes:
        jobs: what was claimed.
        outcomes: of each settled attempt the state that its job is in now, ``lost``, or ``held``
            where another transaction holds the job.
    """

    jobs: list[Held]
    outcomes: dict[Held, str]


class Exchange:
    """Settles and claims.

    Args:
        protocol: what is said to the database.
    """

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol

    async def settle_and_claim(
        self, settled: Sequence[Held], queues: Sequence[str], max_jobs: int, max_limited: int
    ) -> Claimed:
        """Settle a batch and claim up to ``max_jobs`` jobs of these queues.

        Of these at most ``max_limited`` have a concurrency key or limits.

        Settling twice does no harm: what is settled already is told as ``lost``.

        Raises:
            DatabaseUnavailable: there was no answer; settle the same batch again.
        """
        rest = [h for h in settled if not isinstance(h.settlement, Succeeded)]
        outcomes = await self._end_all(rest)
        plain = settled
        if rest:
            plain = [h for h in settled if isinstance(h.settlement, Succeeded | Failed)]
        try:
            jobs, ended = await self._exchange_twice(plain, queues, max_jobs, max_limited)
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            if not plain:
                raise
            logger.warning("a batch was refused, settling its jobs one by one: %s", error)
            for held in plain:
                outcomes |= await self._settle_alone(held)
            jobs, ended = await self._protocol.exchange([], queues, max_jobs, max_limited)
        return Claimed(jobs, outcomes | ended)

    async def _exchange_twice(
        self, settled: Sequence[Held], queues: Sequence[str], max_jobs: int, max_limited: int
    ) -> tuple[list[Held], dict[Held, str]]:
        """Exchange, and again if a day's partition was made just then."""
        try:
            return await self._protocol.exchange(settled, queues, max_jobs, max_limited)
        except JobqError as error:
            if error.sqlstate != NO_PARTITION:
                raise
        return await self._protocol.exchange(settled, queues, max_jobs, max_limited)

    async def _settle_alone(self, held: Held) -> dict[Held, str]:
        """Settle one job of a batch that was refused; if it was the culprit, it fails."""
        refusal: JobqError | None = None
        for _ in range(2):
            try:
                return (await self._protocol.exchange([held], (), 0, 0))[1]
            except DatabaseUnavailable:
                raise
            except JobqError as error:
                refusal = error
                if isinstance(error, NotDeployed | NotPermitted):
                    break  # The worker is refused, not the job's result.
                held.settlement = Failed(REFUSED, error_text(str(error)), is_retryable=False)
        logger.error("job %s cannot be settled, its lease will expire: %s", held.job_id, refusal)
        return {held: "lost"}

    async def _end_all(self, settled: Sequence[Held]) -> dict[Held, str]:
        """Settle what neither succeeded nor failed; before the claim, which must come last."""
        outcomes: dict[Held, str] = {}
        released: defaultdict[datetime | timedelta | None, list[Held]] = defaultdict(list)
        for held in settled:
            hold = getattr(held.settlement, "hold", None)
            if hold is not None:
                await self._hold(held, hold)
            if isinstance(held.settlement, Released):
                released[until_of(held.settlement)].append(held)
            elif isinstance(held.settlement, CancelConfirmed):
                released[None].append(held)  # which ends what was asked to be cancelled
        for until, jobs in released.items():
            outcomes |= await self._release(jobs, until)
        return outcomes

    async def _hold(self, held: Held, hold: Hold) -> None:
        """Have the jobs of a job's key wait, unless the job is lost."""
        try:
            await self._protocol.hold(held, hold)
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            logger.info("the key of job %s is not held: %s", held.job_id, error)

    async def _release(
        self, jobs: Sequence[Held], until: datetime | timedelta | None
    ) -> dict[Held, str]:
        """Give jobs back until a moment; at once, should the database refuse the moment."""
        try:
            return await self._protocol.release(jobs, until)
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            if until is None:
                raise
            logger.warning("%d jobs are given back at once: %s", len(jobs), error)
            return await self._protocol.release(jobs, None)
