"""Jobs whose kinds are functions of the database, which any worker can have run."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import psycopg

from jobq.errors import of_database
from jobq.outcomes import Unable
from jobq.redaction import error_text
from jobq.worker.logs import Sparing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobq.worker.places import Places
    from jobq.worker.unknown import Unknown

__all__ = ["Calls"]

logger = logging.getLogger("jobq.worker")

WORK: Final = "select job_id, kind, state from jobq.work(%s, %s)"
# Jobs of one transaction.
MOST: Final = 100


class Calls:
    """Has such jobs run by `jobq.work`, once the worker has met a kind that it does not know.

    They run in a transaction of their own, with the rights of the worker's log-in. Until there
    is such a kind it asks nothing.

    Args:
        places: where connections come from.
        queues: what the worker serves.
        unknown: the kinds that have no handler here.
        poll: seconds between looks.

    Attributes:
        is_idle: whether it has looked since it was last asked to, and found no more.
    """

    def __init__(
        self, places: Places, queues: Sequence[str], unknown: Unknown, poll: float
    ) -> None:
        self._places = places
        self._queues = list(queues)
        self._unknown = unknown
        self._poll = poll
        self._is_asked = asyncio.Event()
        self._complaints = Sparing(logger)
        self.is_idle = True

    def look(self) -> None:
        """There may be jobs."""
        self.is_idle = False
        self._is_asked.set()

    async def run(self) -> None:
        """Work until cancelled; what runs then is undone, and left to others."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._is_asked.wait()
            self._is_asked.clear()
            try:
                while self._unknown.kinds() and await self._work() == MOST:
                    pass
            except (psycopg.Error, Unable) as error:
                self._complaints.warning("functions of the database: %s", _text(error))
            self.is_idle = not self._is_asked.is_set()

    async def _work(self) -> int:
        """Run what is due; return how many jobs that were."""
        async with self._places.connection() as connection:
            rows = await connection.execute(WORK, (self._queues, MOST))
            ended = await rows.fetchall()
        for job_id, kind, state in ended:
            logger.info("job %s", state, extra={"job_fields": {"job_id": job_id, "kind": kind}})
        return len(ended)


def _text(error: BaseException) -> str:
    return error_text(of_database(error) if isinstance(error, psycopg.Error) else error)
