"""Handlers that take a batch: the jobs of a kind that run at a time are done by one call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from jobq.settlement import NOTHING, Raised, Returned
from jobq.worker.forks import generation, leave_if_forked

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobq.context import JobContext
    from jobq.handler import Handler
    from jobq.worker.threads import Threads

__all__ = ["Batches", "Place", "outcomes_of"]

# Of a job's timeout: what it may wait for others, so that the handler has the rest.
WAIT_SHARE: Final = 0.5


class Place:
    """A job's place in a batch.

    Args:
        batch: that it is in.
        payload: of the job.
        context: of the job, for handlers that take contexts.
        tell: called once with what came of the job.
    """

    __slots__ = ("_batch", "_tell", "context", "is_open", "payload")

    def __init__(
        self,
        batch: Batch,
        payload: object,
        context: JobContext | None,
        tell: Callable[[Returned | Raised], None],
    ) -> None:
        self._batch: Batch | None = batch
        self._tell = tell
        self.payload = payload
        self.context = context
        self.is_open = True

    def leave(self) -> None:
        """Wait no longer: the job is told so in the next turn of the event loop."""
        if self.is_open and self._batch is not None:
            self.is_open = False
            self._batch.left()
            self._batch = None
            left = Raised(asyncio.CancelledError())
            asyncio.get_running_loop().call_soon(self._tell, left)

    def end(self, did: Returned | Raised) -> None:
        """Tell what came of the job, if it still waits for it."""
        self._batch = None
        if self.is_open:
            self.is_open = False
            self._tell(did)


class Batch:
    """Jobs that are done by one call.

    Args:
        handler: what takes them.
        threads: where it runs, if it is a plain function.
    """

    def __init__(self, handler: Handler, threads: Threads) -> None:
        self._handler = handler
        self._threads = threads
        self._task: asyncio.Task[None] | None = None
        self.places: list[Place] = []

    def begin(self) -> asyncio.Task[None]:
        """Have its jobs done."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="jobq batch")
        return self._task

    def left(self) -> None:
        """A job has left: where no other waits for what is being done, stop it."""
        if self._task is not None and not any(place.is_open for place in self.places):
            self._task.cancel()

    async def _run(self) -> None:
        places = self.places = [place for place in self.places if place.is_open]
        if not places:
            return
        born = generation()
        try:
            outcomes = outcomes_of(await self._call(), len(places))
        except BaseException as error:
            outcomes = [Raised(error)] * len(places)
        leave_if_forked(born)
        for place, did in zip(places, outcomes, strict=True):
            place.end(did)

    async def _call(self) -> Any:  # noqa: ANN401 - what it returns
        arguments: list[object] = [[place.payload for place in self.places]]
        if self._handler.extras:
            arguments.append([place.context for place in self.places])
        if self._handler.mode == "coroutine":
            return await self._handler.function(*arguments)
        did = await self._threads.run(self._handler.function, *arguments)
        if isinstance(did, Raised):
            raise did.error
        return did.value


class Batches:
    """Gathers the jobs of one kind.

    Args:
        handler: what takes them.
        threads: where it runs, if it is a plain function.
        concurrency: how many jobs the worker runs at a time: a batch waits for no more.
    """

    def __init__(self, handler: Handler, threads: Threads, concurrency: int) -> None:
        self._handler = handler
        self._threads = threads
        self._most = min(handler.batch, concurrency)
        self._loop = asyncio.get_running_loop()
        self._next = Batch(handler, threads)
        self._timer: asyncio.TimerHandle | None = None
        self._begins_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    def join(
        self,
        payload: object,
        context: JobContext | None,
        seconds: float,
        tell: Callable[[Returned | Raised], None],
    ) -> Place:
        """Have a job done with the others that are there.

        Args:
            payload: of the job.
            context: of the job, for handlers that take contexts.
            seconds: that its attempt may take, of which waiting for others is a part.
            tell: called with what the handler returned or raised, or gave in place of
                this job's result.
        """
        place = Place(self._next, payload, context, tell)
        self._next.places.append(place)
        if len(self._next.places) >= self._most:
            self._begin()
        else:
            self._begin_within(min(self._handler.batch_wait, seconds * WAIT_SHARE))
        return place

    async def outcome(self, payload: object, context: JobContext | None, seconds: float) -> object:
        """Do the same, wait for what came of the job, and return its result.

        Raises:
            BaseException: what the handler raised, or gave in place of this job's result.
        """
        told: asyncio.Future[Returned | Raised] = self._loop.create_future()
        place = self.join(
            payload, context, seconds, lambda did: None if told.done() else told.set_result(did)
        )
        try:
            did = await told
        finally:
            place.leave()
        if isinstance(did, Raised):
            raise did.error
        return did.value

    def _begin_within(self, seconds: float) -> None:
        moment = self._loop.time() + seconds
        if self._timer is not None:
            if self._begins_at <= moment:
                return
            self._timer.cancel()
        self._begins_at = moment
        self._timer = self._loop.call_at(moment, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        batch, self._next = self._next, Batch(self._handler, self._threads)
        task = batch.begin()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def outcomes_of(returned: object, jobs: int) -> list[Returned | Raised]:
    """Return what came of each job of a batch.

    Raises:
        TypeError: the handler has not said it.
    """
    if returned is None:
        return [NOTHING] * jobs
    if not isinstance(returned, list | tuple) or len(returned) != jobs:
        raise TypeError(
            "a handler of batches returns None, or a result for each job in their order"
        )
    return [
        Raised(value) if isinstance(value, BaseException) else Returned(value) for value in returned
    ]
