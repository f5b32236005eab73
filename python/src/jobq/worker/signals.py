"""The end of a worker and its exit code, and the end of a handler that blocks the loop."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from jobq.worker import tuning
from jobq.worker.queries import current_job

logger = logging.getLogger("jobq.worker")

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_RECYCLE: Final = 75


class Stop:
    """Whether the worker is to stop, and why."""

    def __init__(self, max_jobs: int | None, max_bytes: int | None) -> None:
        self._max_jobs = max_jobs
        self._max_bytes = max_bytes
        self.requested = asyncio.Event()  # set to stop after the running jobs
        self.at_once = asyncio.Event()  # set to stop without waiting for them
        self.exit_code = EXIT_OK
        self.jobs = 0  # that have run

    def count(self, jobs: int) -> None:
        """Count settled jobs that had been started, and stop when ``max_jobs`` is reached."""
        self.jobs += jobs
        if self._max_jobs is not None and self.jobs >= self._max_jobs:
            self.recycle(f"after {self.jobs} jobs")

    def check_memory(self) -> None:
        """Stop if the process has grown too large."""
        if self._max_bytes is not None and resident_bytes() >= self._max_bytes:
            self.recycle(f"its memory is used up, after {self.jobs} jobs")

    def recycle(self, why: str) -> None:
        """Stop, to be restarted."""
        if not self.requested.is_set():
            logger.info("worker must be restarted: %s", why)
            self.exit_code = EXIT_RECYCLE
            self.requested.set()

    def fail(self) -> None:
        """Stop because a part of the worker has failed."""
        self.exit_code = EXIT_FAILED
        self.requested.set()

    def signalled(self, number: int) -> None:
        """Handle a signal: after the first, running jobs finish; after the second they do not."""
        if self.requested.is_set():
            logger.warning("stopping at once")
            self.exit_code = 128 + number
            self.at_once.set()
        self.requested.set()


def resident_bytes() -> int:
    """Return how many bytes of memory this process uses now.

    If the system does not report this, the maximum so far.
    """
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def stopping_on_signals(stop: Stop) -> Iterator[None]:
    """Stop a worker on SIGTERM, SIGINT and SIGHUP."""
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
    """Raised in a coroutine handler that blocks the event loop for too long.

    Not an Exception, so that a handler's `except Exception` does not catch it.
    """

    def __init__(self) -> None:
        super().__init__(
            f"the coroutine blocked the event loop for {tuning.CALL_SECONDS:g} s;"
            " what blocks belongs in a plain function"
        )


@contextmanager
def watching_the_loop() -> Iterator[None]:
    """Interrupt a coroutine handler that blocks the running loop; nothing else could end it.

    It would block the heartbeats, and every job of the worker would lose its lease. A system
    timer interrupts the running code when the loop has been blocked for too long. Works only in
    the main thread, because no other can be interrupted.
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
        signal.setitimer(signal.ITIMER_REAL, tuning.CALL_SECONDS, 1.0)
        timer = loop.call_later(1.0, wind_up)

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        """Raise in the running handler, every second until it ends."""
        nonlocal interruptions
        interruptions += 1
        if interruptions > tuning.STOP_WITHIN:  # by now the leases of all jobs have expired
            logger.critical("a handler blocks the event loop and cannot be interrupted")
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
    """End the process soon if hanging handlers keep it from ending."""
    last_resort = threading.Timer(tuning.LAST_CALLS, os._exit, [exit_code])
    last_resort.daemon = True
    last_resort.start()
