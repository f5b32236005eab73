"""Why a worker ends, and with which exit code."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING, Final, Self

from jobq.worker.upkeep import resident_bytes

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["EXIT_FAILED", "EXIT_OK", "EXIT_RECYCLE", "Signals", "Stop"]

logger = logging.getLogger("jobq.worker")

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_RECYCLE: Final = 75


class Stop:
    """Whether the worker is to stop, and why.

    Args:
        max_jobs: it is used up after so many jobs; None is never.
        max_bytes: it is used up when the process has so much memory; None is never.

    Attributes:
        asked: set when it is to finish what it runs.
        at_once: set when it is not to wait for that.
        exit_code: what it will end with.
        jobs: how many jobs have been run.
    """

    def __init__(self, max_jobs: int | None, max_bytes: int | None) -> None:
        self._max_jobs = max_jobs
        self._max_bytes = max_bytes
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()
        self.exit_code = EXIT_OK
        self.jobs = 0

    def count(self, jobs: int) -> None:
        """Count jobs that are settled, and stop if the worker is used up.

        Args:
            jobs: how many of them had been started.
        """
        self.jobs += jobs
        if self._max_jobs is not None and self.jobs >= self._max_jobs:
            self.recycle(f"after {self.jobs} jobs")

    def look_at_memory(self) -> None:
        """Stop if the process has grown too large."""
        if self._max_bytes is not None and resident_bytes() >= self._max_bytes:
            self.recycle(f"its memory is used up, after {self.jobs} jobs")

    def recycle(self, why: str) -> None:
        """Stop, to be started afresh."""
        if not self.asked.is_set():
            logger.info("worker is to be started afresh: %s", why)
            self.exit_code = EXIT_RECYCLE
            self.asked.set()

    def fail(self) -> None:
        """Stop, because a part of the worker has failed."""
        self.exit_code = EXIT_FAILED
        self.asked.set()

    def signalled(self, number: int) -> None:
        """Take a signal: the first lets running jobs finish, the second does not."""
        if self.asked.is_set():
            logger.warning("stopping at once")
            self.exit_code = 128 + number
            self.at_once.set()
        self.asked.set()


class Signals:
    """SIGTERM and SIGINT tell a worker to stop, for as long as it works."""

    NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in self.NUMBERS:
            loop.add_signal_handler(number, self._stop.signalled, number)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in self.NUMBERS:
            loop.remove_signal_handler(number)
