"""A time limit for each phase of a test, which shows what everybody was doing when it is over.

A test that hangs is a failed test with a stack, not a lost run. The limit is noticed by a
thread, so that it works whatever the event loop does. It writes the stack of every thread and
asyncio task to standard error, then raises in the main thread, and again every few seconds,
since what ends a test may hang too. Where that does not help, the process ends.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# Seconds for a phase of a test on a busy machine, and for one that is marked `long`.
LIMIT: Final = 300.0
LONG_LIMIT: Final = 1800.0
# Seconds between raising again, and how often before the process ends.
AGAIN: Final = 5.0
PATIENCE: Final = 12
SIGNAL: Final = signal.SIGUSR2


class Deadline:
    """Watches the phase that runs, if one does."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._name = ""
        self._ends_at: float | None = None
        self._limit = 0.0
        self._errors = os.dup(2)  # pytest captures the other one
        signal.signal(SIGNAL, self._raise)
        threading.Thread(target=self._watch, name="deadline", daemon=True).start()

    @contextmanager
    def limit(self, name: str, seconds: float) -> Iterator[None]:
        """Fail in the main thread if the block takes longer."""
        with self._lock:
            self._name, self._limit = name, seconds
            self._ends_at = time.monotonic() + seconds
            self._lock.notify()
        try:
            yield
        finally:
            self._ends_at = None  # first, so that no signal comes in between
            with self._lock:
                pass

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        if self._ends_at is not None:
            pytest.fail(f"it took longer than {self._limit:g} s; the stacks are in stderr")

    def _watch(self) -> None:
        tries = 0
        while True:
            with self._lock:
                ends_at = self._ends_at
                if ends_at is None:
                    tries = 0
                    self._lock.wait()
                    continue
                pause = ends_at + tries * AGAIN - time.monotonic()
                if pause > 0:
                    self._lock.wait(pause)
                    tries = tries if self._ends_at == ends_at else 0
                    continue
                if tries == 0:
                    os.write(2, stacks(self._name).encode())
                elif tries > PATIENCE:
                    os.write(self._errors, stacks(f"{self._name} cannot be ended").encode())
                    os._exit(70)
                tries += 1
                signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)


def stacks(name: str) -> str:
    """Return the stacks of all threads and asyncio tasks of this process."""
    with tempfile.TemporaryFile("w+") as file:
        print(f"\n==== {name}: threads", file=file, flush=True)
        faulthandler.dump_traceback(file, all_threads=True)
        print("==== tasks", file=file)
        for task in [o for o in gc.get_objects() if isinstance(o, asyncio.Task)]:
            with suppress(Exception):  # another thread may change it meanwhile
                if not task.done():
                    task.print_stack(file=file)
        sys.stdout.flush()
        file.seek(0)
        return file.read()


def limit_of(item: pytest.Item) -> float:
    """Return how many seconds a phase of a test may take; JOBQ_TEST_SECONDS overrides it."""
    given = os.environ.get("JOBQ_TEST_SECONDS")
    if given:
        return float(given)
    return LONG_LIMIT if item.get_closest_marker("long") else LIMIT
