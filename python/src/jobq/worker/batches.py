"""Handlers that take a batch: the jobs of a kind that run at a time are done by one call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from jobq.settlement import Raised, Returned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobq.context import JobContext
    from jobq.handler import Handler
    from jobq.worker.threads import Threads

__all__ = ["Batches", "outcomes_of"]

# Of a job's timeout: what it may wait for others, so that the handler has the rest.
WAIT_SHARE: Final = 0.5


class _Place:
    """A job that waits for its batch, and for what came of it."""

    def __init__(self, payload: object, context: JobContext | None) -> None:
        self.payload = payload
        self.context = context
        self.did: asyncio.Future[Returned | Raised] = asyncio.get_running_loop().create_future()


class Batches:
    """Gathers the jobs of one kind.

    Args:
        handler: what takes them.
        threads: where it runs, if it is a plain function.
    """

    def __init__(self, handler: Handler, threads: Threads) -> None:
        self._handler = handler
        self._threads = threads
        self._waiting: list[_Place] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def join(self, payload: object, context: JobContext | None, seconds: float) -> object:
        """Have a job done with the others that are there, and return its result.

        Args:
            payload: of the job.
            context: of the job, for handlers that take contexts.
            seconds: that its attempt may take, of which waiting for others is a part.

        Raises:
            BaseException: what the handler raised, or gave in place of this job's result.
        """
        place = _Place(payload, context)
        self._waiting.append(place)
        if len(self._waiting) >= self._handler.batch:
            self._begin()
        else:
            self._begin_within(min(self._handler.batch_wait, seconds * WAIT_SHARE))
        did = await place.did
        if isinstance(did, Raised):
            raise did.error
        return did.value

    def _begin_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        moment = loop.time() + seconds
        if self._timer is not None:
            moment = min(moment, self._timer.when())
            self._timer.cancel()
        self._timer = loop.call_at(moment, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        places = [place for place in self._waiting if not place.did.done()]
        self._waiting = []
        if not places:
            return
        task = asyncio.get_running_loop().create_task(self._run(places))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def on_end(_did: asyncio.Future[Returned | Raised]) -> None:
            if all(place.did.cancelled() for place in places):
                task.cancel()  # nobody waits for it any more

        for place in places:
            place.did.add_done_callback(on_end)

    async def _run(self, places: Sequence[_Place]) -> None:
        try:
            outcomes = outcomes_of(await self._call(places), len(places))
        except BaseException as error:
            outcomes = [Raised(error)] * len(places)
        for place, did in zip(places, outcomes, strict=True):
            if not place.did.done():
                place.did.set_result(did)

    async def _call(self, places: Sequence[_Place]) -> Any:  # noqa: ANN401 - what it returns
        arguments: list[object] = [[place.payload for place in places]]
        if self._handler.extras:
            arguments.append([place.context for place in places])
        if self._handler.mode == "coroutine":
            return await self._handler.function(*arguments)
        did = await self._threads.run(self._handler.function, *arguments)
        if isinstance(did, Raised):
            raise did.error
        return did.value


def outcomes_of(returned: object, jobs: int) -> list[Returned | Raised]:
    """Return what came of each job of a batch.

    Raises:
        TypeError: the handler has not said it.
    """
    if returned is None:
        return [Returned(None)] * jobs
    if not isinstance(returned, list | tuple) or len(returned) != jobs:
        raise TypeError(
            "a handler of batches returns None, or a result for each job in their order"
        )
    return [
        Raised(value) if isinstance(value, BaseException) else Returned(value) for value in returned
    ]
