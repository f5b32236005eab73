"""Makes calls of many callers by one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from jobq.errors import JobqError

T = TypeVar("T")

# Characters of JSON after which no more is added to a call.
MAX_TEXT: Final = 4_194_304


class Batcher(Generic[T]):
    """Runs calls together: those that come during a run are in the next one.

    Args:
        run: makes several calls by one statement; returns for each what it returns or raises.
        most: maximum number of calls in a run.
        delay: seconds from one run to the next.
    """

    def __init__(
        self,
        run: Callable[[Sequence[tuple[Any, ...]]], Awaitable[Sequence[T | Exception]]],
        most: int,
        delay: float = 0.0,
    ) -> None:
        self._run = run
        self._most = most
        self._delay = delay
        self._calls: deque[tuple[tuple[Any, ...], asyncio.Future[T]]] = deque()
        self._task: asyncio.Task[None] | None = None

    def call(self, parameters: tuple[Any, ...]) -> asyncio.Future[T]:
        """Return what a call returns, once it has run.

        A first parameter that is a list counts as so many calls. The last one may be JSON text.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._calls.append((parameters, answer))
        if self._task is None:
            self._task = loop.create_task(self._run_all())
        return answer

    async def _run_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._calls:
                began_at = loop.time()
                calls: list[tuple[tuple[Any, ...], asyncio.Future[T]]] = []
                size = length = 0
                while self._calls and size < self._most and length < MAX_TEXT:
                    parameters, answer = self._calls.popleft()
                    if not answer.done():  # else its caller was stopped meanwhile
                        calls.append((parameters, answer))
                        size += len(parameters[0]) if isinstance(parameters[0], list) else 1
                        length += len(parameters[-1]) if isinstance(parameters[-1], str) else 0
                await self._answer(calls)
                if self._delay:
                    await asyncio.sleep(max(0.0, began_at + self._delay - loop.time()))
        finally:
            self._task = None

    async def _answer(self, calls: Sequence[tuple[tuple[Any, ...], asyncio.Future[T]]]) -> None:
        """Make several calls together; one by one if the database refuses one of them."""
        if not calls:
            return
        answers: Sequence[T | Exception]
        try:
            answers = await self._run([parameters for parameters, _ in calls])
        except Exception as error:
            if isinstance(error, JobqError) and len(calls) > 1:
                for call in calls:
                    await self._answer([call])
                return
            answers = [error] * len(calls)
        for (_, answer), given in zip(calls, answers, strict=True):
            if answer.done():
                continue
            if isinstance(given, Exception):
                answer.set_exception(given)
            else:
                answer.set_result(given)
