"""Threads for handlers that are plain functions."""

from __future__ import annotations

import contextvars
import threading
from asyncio import wrap_future
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from jobq.outcomes import Unable
from jobq.settlement import Raised, Returned
from jobq.worker.forks import generation, leave_if_forked

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["Threads"]

Call: TypeAlias = "tuple[Future[Returned | Raised], contextvars.Context, Callable[..., Any], Any]"


class Threads:
    """Daemon threads, which a handler that hangs cannot make the process wait for.

    Each call gets an idle thread, or a new one: the worker's slots bound their number.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def run(
        self, function: Callable[..., Any], *arguments: object
    ) -> asyncio.Future[Returned | Raised]:
        """Run a function in a thread, with the caller's context variables.

        What it raises is a result like any other: no future takes every exception.

        Raises:
            Unable: the system gives no thread.
        """
        with self._lock:
            is_served = self._idle > 0
            self._idle -= is_served
        if not is_served:
            try:
                threading.Thread(target=self._serve, name="jobq handler", daemon=True).start()
            except RuntimeError as error:
                raise Unable("NO_THREAD", str(error), in_=1.0) from error
        future: Future[Returned | Raised] = Future()
        self._calls.put((future, contextvars.copy_context(), function, arguments))
        return wrap_future(future)

    def _serve(self) -> None:
        born = generation()
        while True:
            future, context, function, arguments = self._calls.get()
            did: Returned | Raised
            try:
                did = Returned(context.run(function, *arguments))
            except BaseException as error:
                did = Raised(error)
            leave_if_forked(born)
            with self._lock:
                self._idle += 1
            if future.set_running_or_notify_cancel():
                future.set_result(did)
            del future, context, function, arguments, did
