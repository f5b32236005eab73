"""Hooks around every handler of a registry, and around enqueueing."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from jobq.database import awaited, finished
from jobq.models import Enqueued
from jobq.redaction import error_text
from jobq.registry.context import JobContext
from jobq.registry.settlement import Suspended

logger = logging.getLogger("jobq.worker")


class Hooks:
    """The hooks of a registry, in the order of their registration."""

    def __init__(self) -> None:
        self.before_enqueue: list[Callable[[dict[str, Any]], Any]] = []
        self.after_enqueue: list[Callable[[dict[str, Any], Enqueued], Any]] = []
        self.before: list[Callable[[JobContext], Any]] = []
        self.after: list[Callable[[JobContext, Any], Any]] = []
        self.error: list[Callable[[JobContext, BaseException], Any]] = []

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.error)

    @property
    def is_enqueueing(self) -> bool:
        """Whether there are hooks around enqueueing."""
        return bool(self.before_enqueue or self.after_enqueue)

    def around(
        self,
        call: Callable[..., Any],
        context: JobContext,
        wait: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
    ) -> Callable[..., Any]:
        """Return a function that calls the hooks around a handler, where the handler runs.

        ``wait`` waits for a hook that is a coroutine; None if the handler is one too.
        """
        if not self:
            return call

        async def done(hooked: Any) -> None:  # noqa: ANN401 - what a hook returned
            if inspect.isawaitable(hooked):
                await hooked if wait is None else wait(awaited(hooked))

        async def called(*arguments: object) -> object:
            try:
                for before in self.before:
                    await done(before(context))
                value = call(*arguments)
                value = await value if wait is None else value
                for after in self.after:
                    await done(after(context, value))
            except Suspended:
                raise  # the job only waits
            except BaseException as error:
                await self._report(context, error, done)
                raise
            return value

        return called if wait is None else lambda *arguments: finished(called(*arguments))

    async def _report(
        self, context: JobContext, error: BaseException, done: Callable[[Any], Awaitable[None]]
    ) -> None:
        for failed in self.error:
            try:
                await done(failed(context, error))
            except Exception as another:
                logger.error(  # noqa: TRY400 - its text may not be fit to be shown
                    "a hook for errors failed: %s", error_text(another)
                )
