"""What ends a worker, and with which exit code; what ends a handler that blocks the loop."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobq.worker import tuning
from jobq.worker.queries import current_job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = [
    "EXIT_FAILED",
    "EXIT_OK",
    "EXIT_RECYCLE",
    "LoopBlockedError",
    "Stop",
    "leave_soon",
    "stopping_on_signals",
    "watching_the_loop",
]

logger = logging.getLogger("jobq.worker")

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_RECYCLE: Final = 75


class Stop:
    """Whether the worker is to stop, and why.

    Attributes:
        requested: set when it is to finish what it runs.
        at_once: set when it is not to wait for that.
        exit_code: what it will end with.
        jobs: how many jobs have been run.
        is_empty: whether no functions of the database are being run.
    """

    def __init__(self, max_jobs: int | None, max_bytes: int | None) -> None:
        self._max_jobs = max_jobs
        self._max_bytes = max_bytes
        self.requested = asyncio.Event()
        self.at_once = asyncio.Event()
        self.exit_code = EXIT_OK
        self.jobs = 0
        self.is_empty = True

    def count(self, jobs: int) -> None:
        """Count jobs that are settled, and stop if the worker is used up.

        Args:
            jobs: how many of them had been started.
        """
        self.jobs += jobs
        if self._max_jobs is not None and self.jobs >= self._max_jobs:
            self.recycle(f"after {self.jobs} jobs")

    def check_memory(self) -> None:
        """Stop if the process has grown too large."""
        if self._max_bytes is not None and resident_bytes() >= self._max_bytes:
            self.recycle(f"its memory is used up, after {self.jobs} jobs")

    def recycle(self, why: str) -> None:
        """Stop, to be started afresh."""
        if not self.requested.is_set():
            logger.info("worker is to be started afresh: %s", why)
            self.exit_code = EXIT_RECYCLE
            self.requested.set()

    def request_if_empty(self) -> None:
        """Stop because no job is due, unless functions of the database are being run."""
        if self.is_empty:
            self.requested.set()

    def fail(self) -> None:
        """Stop, because a part of the worker has failed."""
        self.exit_code = EXIT_FAILED
        self.requested.set()

    def signalled(self, number: int) -> None:
        """Take a signal: the first lets running jobs finish, the second does not."""
        if self.requested.is_set():
            logger.warning("stopping at once")
            self.exit_code = 128 + number
            self.at_once.set()
        self.requested.set()


def resident_bytes() -> int:
    """Return how many bytes of memory this process uses now.

    Where the system does not say, the most that it has used.
    """
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def stopping_on_signals(stop: Stop) -> Iterator[None]:
    """Let SIGTERM, SIGINT and SIGHUP request a worker to stop."""
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # it is under nohup
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.signalled, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


class LoopBlockedError(BaseException):
    """Raised in a coroutine handler that has blocked the event loop for too long.

    No Exception, so that no handler that tries again takes it for one.
    """

    def __init__(self) -> None:
        super().__init__(
            f"the coroutine blocked the event loop for {tuning.BLOCKED_LOOP:g} s;"
            " what blocks belongs in a plain function"
        )


@contextmanager
def watching_the_loop() -> Iterator[None]:
    """Interrupt a coroutine handler that blocks the running loop: nothing else could end it.

    It would keep heartbeats from being sent, and every job of the worker would lose its lease. A
    timer of the system interrupts whatever runs when the loop has not turned for too long. Only
    in the main thread, because no other can be interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    interruptions = 0
    timer: asyncio.TimerHandle | None = None

    def wind_up() -> None:
        nonlocal interruptions, timer
        interruptions = 0
        signal.setitimer(signal.ITIMER_REAL, tuning.BLOCKED_LOOP, 1.0)
        timer = loop.call_later(1.0, wind_up)

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        """Raise in the handler that runs, and every second again until it ends."""
        nonlocal interruptions
        interruptions += 1
        if interruptions > tuning.STOP_WITHIN:  # by now the leases of all jobs have expired
            logger.critical("a handler does not let go of the event loop")
            os._exit(EXIT_RECYCLE)
        if asyncio.current_task(loop) is not None and current_job.get() is not None:
            raise LoopBlockedError

    before = signal.signal(signal.SIGALRM, interrupt)
    wind_up()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if timer is not None:
            timer.cancel()


def leave_soon(exit_code: int) -> None:
    """End the process in a moment if handlers that hang keep it from ending by itself."""
    last_resort = threading.Timer(tuning.LAST_CALLS, os._exit, [exit_code])
    last_resort.daemon = True
    last_resort.start()
