"""An end to coroutines that hold up the event loop: nothing else could end them.

A coroutine that blocks, or works the CPU, keeps heartbeats from being sent: in the end every
job of the worker would lose its lease. A timer of the system's interrupts whatever runs when
the loop has not turned for too long; if that is a handler, an exception is raised in it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from typing import TYPE_CHECKING, Final

from jobq.worker.logs import current_job
from jobq.worker.stop import EXIT_RECYCLE

if TYPE_CHECKING:
    from types import FrameType, TracebackType

__all__ = ["LoopBlockedError", "Watchdog"]

logger = logging.getLogger("jobq.worker")

# Seconds for which a coroutine may hold up the loop: a third of the default lease, so that
# the heartbeats of the other jobs are still in time.
LIMIT: Final = 10.0
# Times that a handler is interrupted, a second apart, before the process ends in its place: its
# leases have expired by then.
PATIENCE: Final = 20
# Seconds between the turns of the loop that set the timer anew.
TURN: Final = 1.0


class LoopBlockedError(BaseException):
    """Raised in a coroutine handler that has held up the event loop for too long.

    No Exception, so that no handler that tries again takes it for one.
    """

    def __init__(self) -> None:
        super().__init__(
            f"the coroutine held up the event loop for {LIMIT:g} s;"
            " what blocks belongs in a plain function"
        )


class Watchdog:
    """Watches the running loop; only in the main thread, which alone can be interrupted."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._barks = 0
        self._is_on = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._is_on:
            self._before = signal.signal(signal.SIGALRM, self._bark)
            self._wind_up()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self._is_on:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            assert self._timer is not None  # noqa: S101 - it was wound up
            self._timer.cancel()

    def _wind_up(self) -> None:
        self._barks = 0
        signal.setitimer(signal.ITIMER_REAL, LIMIT, TURN)
        self._timer = self._loop.call_later(TURN, self._wind_up)

    def _bark(self, _number: int, _frame: FrameType | None) -> None:
        """Raise in the handler that runs, and every second again until it ends."""
        self._barks += 1
        if self._barks > PATIENCE:
            logger.critical("a handler does not let go of the event loop")
            os._exit(EXIT_RECYCLE)
        if asyncio.current_task(self._loop) is not None and current_job.get() is not None:
            raise LoopBlockedError
