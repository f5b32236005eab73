"""The event loop of a worker: which it is, and how it stays as it was."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

from jobq.worker.logs import current_job

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

__all__ = ["KeptLoop", "loop_factory"]


def loop_factory() -> Callable[[], AbstractEventLoop] | None:
    """Return uvloop's, where it is installed (the extra ``fast``), else None for asyncio's."""
    try:
        uvloop: Any = importlib.import_module("uvloop")
    except ImportError:
        return None
    factory: Callable[[], AbstractEventLoop] = uvloop.new_event_loop
    return factory


class KeptLoop:
    """The running loop, kept as it is now, though handlers run on it.

    A task factory that fails would end the worker, so no handler may set one. What else a
    handler puts in the place of the loop's methods can be taken away again.
    """

    def __init__(self) -> None:
        loop: Any = asyncio.get_running_loop()
        if not isinstance(loop.set_task_factory, SetTaskFactory):
            loop.set_task_factory = SetTaskFactory(loop)
        self._loop = loop
        self._set_task_factory: SetTaskFactory = loop.set_task_factory
        self._own = frozenset(vars(loop))

    def restore(self) -> None:
        """Undo what handlers have changed."""
        for name in vars(self._loop).keys() - self._own:
            if hasattr(type(self._loop), name):
                delattr(self._loop, name)
        self._loop.set_task_factory = self._set_task_factory
        self._set_task_factory(self._set_task_factory.factory)


class SetTaskFactory:
    """A loop's set_task_factory that refuses handlers, and knows what others have set."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._set: Callable[[Any], None] = loop.set_task_factory
        self.factory: Any = loop.get_task_factory()

    def __call__(self, factory: Any) -> None:  # noqa: ANN401 - as asyncio has it
        if current_job.get() is not None:
            raise RuntimeError("a handler may not set the task factory of its worker's event loop")
        self._set(factory)
        self.factory = factory
