"""What runs around every handler of a registry, and around enqueueing."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any

from jobq.redaction import error_text
from jobq.registry.settlement import Suspended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jobq.models import Enqueued
    from jobq.registry.context import JobContext

__all__ = ["Hooks"]

logger = logging.getLogger("jobq.worker")


class Hooks:
    """The hooks of a registry, in the order in which they were given."""

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
        """Whether some run around enqueueing."""
        return bool(self.before_enqueue or self.after_enqueue)

    def around_coroutine(self, call: Callable[..., Any], context: JobContext) -> Callable[..., Any]:
        """Return what awaits the hooks around the call of a coroutine function."""

        async def called(*arguments: object) -> object:
            try:
                for before in self.before:
                    await _done(before(context))
                value: object = await call(*arguments)
                for after in self.after:
                    await _done(after(context, value))
            except Suspended:
                raise  # the job only waits
            except BaseException as error:
                for failed in self.error:
                    try:
                        await _done(failed(context, error))
                    except Exception as another:
                        _complain(another)
                raise
            return value

        return called

    def around_function(
        self,
        call: Callable[..., Any],
        context: JobContext,
        wait: Callable[[Awaitable[Any]], Any],
    ) -> Callable[..., Any]:
        """Return what calls the hooks around the call of a plain function, where that runs.

        Args:
            call: the function.
            context: of the job.
            wait: waits for a hook that is a coroutine.
        """

        def done(hooked: object) -> None:
            if inspect.isawaitable(hooked):
                wait(hooked)

        def called(*arguments: object) -> object:
            try:
                for before in self.before:
                    done(before(context))
                value: object = call(*arguments)
                for after in self.after:
                    done(after(context, value))
            except Suspended:
                raise
            except BaseException as error:
                for failed in self.error:
                    try:
                        done(failed(context, error))
                    except Exception as another:
                        _complain(another)
                raise
            return value

        return called


async def _done(hooked: object) -> None:
    if inspect.isawaitable(hooked):
        await hooked


def _complain(error: BaseException) -> None:
    logger.error("a hook for errors failed: %s", error_text(error))
