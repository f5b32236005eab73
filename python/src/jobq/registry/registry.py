"""Handlers by kind.

registry = Registry()

@registry.handler("send_email", max_attempts=3, timeout=30)
async def send_email(payload: SendEmail, context: JobContext) -> None: ...
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar, overload

from jobq.calls import schedules
from jobq.calls.arguments import refuse_lists, refuse_unknown
from jobq.calls.kinds import put_kind
from jobq.calls.options import CommonOptions, in_time
from jobq.registry.handler import Handler, describe
from jobq.registry.hooks import Hooks
from jobq.registry.typed import HandlerOptions, enqueueing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from typing import Unpack
    from uuid import UUID

    from jobq.calls.call import Call, Caller
    from jobq.calls.options import ScheduleOptions, Span
    from jobq.registry.typed import BatchRegister, Register

__all__ = ["Registry"]

F = TypeVar("F", bound="Callable[..., Any]")


class Registry:
    """The handlers of a worker, one for each kind of job.

    Args:
        version: of the program, a number that grows, such as that of the build. What a newer
            version has declared of a kind then stays, and so does what was changed by hand
            since this version declared it. Without one, whoever starts last is right.

    Attributes:
        hooks: what runs around every handler.
        beyond: tells what the function of `otherwise` cannot do here, or None.
    """

    def __init__(self, version: int | None = None) -> None:
        if version is not None and type(version) is not int:
            raise TypeError("version must be an integer")
        self.version = version
        self._handlers: dict[str, Handler] = {}
        self._fallback: Handler | None = None
        self.beyond: Callable[[], Awaitable[Mapping[str, tuple[str, str]]]] | None = None
        self._schedules: dict[str, Call[UUID]] = {}
        self.hooks = Hooks()

    @overload
    def handler(self, kind: str, **options: Unpack[HandlerOptions]) -> Register: ...
    @overload
    def handler(
        self, kind: str, *, batch: int, **options: Unpack[HandlerOptions]
    ) -> BatchRegister: ...
    def handler(
        self,
        kind: str,
        *,
        batch: int = 0,
        **options: Any,
    ) -> Any:
        """Return a decorator that registers a handler of a kind.

        A handler is a coroutine function, a plain function (it runs in a thread), or a
        class with ``__call__``, of which one instance is made. It takes the payload, and
        after it what it names ``context`` and ``connection``. A payload annotated as a
        dataclass, a pydantic model or another type of msgspec's is made before the call;
        one that does not fit is refused at enqueue and never reaches the handler.

        What the handler returns, any JSON, is stored as the job's result.

        The function stays as it is, and gets ``enqueue(client, payload, **options)`` and
        ``enqueue_many(client, payloads)``, of which type checkers know the payload. A class
        gets neither, nor what cannot have attributes.

        Args:
            kind: what it does.
            batch: the handler takes a list of so many payloads at most, and a list
                ``contexts`` if it names that; it returns None or a list of the results, in
                which an exception stands for a job that failed. A batch is no larger than
                the worker's concurrency.
            options: see `jobq.registry.typed.HandlerOptions`.

        Raises:
            TypeError: the function cannot be called as a handler is, or there is no such option.
            ValueError: the kind already has a handler.
            InvalidArgument: a list is given for a kind, or for another text.
        """
        refuse_unknown(options, HandlerOptions)
        given = CommonOptions.__annotations__.keys() & options.keys()
        definition = {
            **in_time({name: options[name] for name in given}),
            "retry_preset": options.get("retry"),
            "on_dead": "hold" if options.get("hold_on_dead") else None,
        }
        refuse_lists({"kind": kind, **definition})

        def register(function: F) -> F:
            if kind in self._handlers:
                raise ValueError(f"kind {kind} already has a handler")
            called: Any = function() if inspect.isclass(function) else function
            self._handlers[kind] = describe(kind, called, options, definition, batch=batch)
            enqueueing(function, kind)
            return function

        return register

    def schedule(
        self,
        name: str,
        cron: str | None = None,
        *,
        every: Span | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Callable[[F], F]:
        """Return a decorator that has a handler's jobs made by a schedule.

        It stands above ``handler``, once for each schedule:

            @registry.schedule("weekly report", "0 9 * * MON", time_zone="Asia/Kolkata")
            @registry.handler("report")
            async def report() -> None: ...

        A schedule that is no longer here stays as it is until it is retired.

        Args:
            name: of the schedule.
            cron: the expression.
            every: the interval instead.
            options: see `jobq.calls.options.ScheduleOptions`.

        Raises:
            TypeError: the function is no handler yet, or an option is unknown.
            ValueError: the name has a schedule already.
        """

        def register(function: F) -> F:
            kinds = [h.kind for h in self if function in (h.function, type(h.function))]
            if not kinds:
                raise TypeError(f"put the schedule {name} above the decorator of its handler")
            if name in self._schedules:
                raise ValueError(f"the schedule {name} already exists")
            self._schedules[name] = schedules.create_schedule(
                name, kinds[-1], cron, every=every, **options
            )
            return function

        return register

    def before_enqueue(self, hook: F) -> F:
        """Have a function called with each job before clients of this registry enqueue it.

        It gets a dict with ``kind``, ``payload`` and the options of ``enqueue``, and may change it.
        What it raises, the caller of ``enqueue`` or ``enqueue_many`` gets. A decorator.
        """
        self.hooks.before_enqueue.append(hook)
        return hook

    def after_enqueue(self, hook: F) -> F:
        """Have a function called with such a dict and the `Enqueued` that the database answered.

        The transaction of a client with a connection of the caller's is still open then.
        """
        self.hooks.after_enqueue.append(hook)
        return hook

    def before(self, hook: F) -> F:
        """Have a function called with the context before every handler; a decorator.

        What it raises stands for what the handler would have. A plain hook runs where the
        handler does, a coroutine on the worker's event loop.
        """
        self.hooks.before.append(hook)
        return hook

    def after(self, hook: F) -> F:
        """Have a function called with the context and the result after every handler.

        It is not called when the handler raises.
        """
        self.hooks.after.append(hook)
        return hook

    def on_error(self, hook: F) -> F:
        """Have a function called with the context and what a handler, or another hook, raised.

        Outcomes such as Retry are told too. What the function raises is only logged.
        """
        self.hooks.error.append(hook)
        return hook

    def otherwise(
        self,
        function: Callable[..., Any],
        *,
        beyond: Callable[[], Awaitable[Mapping[str, tuple[str, str]]]] | None = None,
    ) -> None:
        """Have a function do the jobs of every kind that has no handler.

        It is called as a handler is, and tells by ``context.kind`` what to do. Where it raises
        Unable with ``in_=0``, the worker leaves the kind to others for a minute.

        Args:
            function: does the jobs.
            beyond: asked at the start and each minute for the kinds that it cannot do here, each
                with a code and a text that say why; their jobs are not claimed.

        Raises:
            TypeError: the function cannot be called as a handler is.
        """
        self._fallback = describe("any other kind", function)
        self.beyond = beyond

    @property
    def has_fallback(self) -> bool:
        """Whether a function does the jobs of every kind that has no handler."""
        return self._fallback is not None

    def is_fallback(self, handler: Handler | None) -> bool:
        """Whether it is what does the jobs that have no handler; hooks run around deliveries."""
        return handler is not None and handler is self._fallback

    def get(self, kind: str) -> Handler | None:
        """Return the handler of a kind, or None."""
        return self._handlers.get(kind, self._fallback)

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())

    def __len__(self) -> int:
        return len(self._handlers)

    def kinds(self) -> dict[str, Call[None]]:
        """Return the calls that declare kinds, of those whose handlers say something of them."""
        return {
            h.kind: put_kind(h.kind, **h.definition, version=self.version)
            for h in self
            if h.definition
        }

    def definitions(self) -> list[Call[Any]]:
        """Return the calls that declare kinds and schedules."""
        return [*self.kinds().values(), *self._schedules.values()]

    def declare(self, client: Caller) -> None:
        """Declare the kinds, with their limits and their payloads, and the schedules.

        Workers do it when they start. It replaces what was declared of these kinds before,
        but by this version of the program or a newer one.

        Raises:
            InvalidArgument: a limit is out of range.
            InvalidSchedule: a cron expression or time zone cannot be understood.
        """
        for call in self.definitions():
            client.run(call)
