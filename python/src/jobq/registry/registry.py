"""Handlers by kind.

registry = Registry()

@registry.handler("send_email", max_attempts=3, timeout=30)
async def send_email(payload: SendEmail, context: JobContext) -> None: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeVar, Unpack, overload
from uuid import UUID

from jobq.calls import generated
from jobq.calls.arguments import TEXTS, Span, refuse_lists, refuse_unknown
from jobq.calls.call import Call, Caller
from jobq.calls.definitions import create_schedule, put_kind
from jobq.calls.options import CommonOptions, ScheduleOptions, in_time
from jobq.registry.handler import Handler, describe
from jobq.registry.hooks import Hooks
from jobq.registry.typed import BatchRegister, HandlerOptions, Register, enqueueing

F = TypeVar("F", bound="Callable[..., Any]")


class Registry:
    """The handlers of a worker, one for each kind of job.

    Args:
        version: increasing version of the program, such as a build number. Declarations of a
            newer version then stay, and so do changes made by hand since this version declared a
            kind. Without it, the process that starts last replaces declarations.

    Attributes:
        hooks: hooks around every handler.
        beyond: returns the kinds that the function of `otherwise` cannot run here.
    """

    def __init__(self, version: int | None = None) -> None:
        if version is not None and type(version) is not int:
            raise TypeError("version must be an integer")
        self.version = version
        self._handlers: dict[str, Handler] = {}
        self._fallback: Handler | None = None
        self.beyond: Callable[[], Awaitable[Mapping[str, tuple[str, str]]]] | None = None
        self._subscriptions: list[Call[None]] = []
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
        class with ``__call__``, which is instantiated once. It takes the payload, then
        ``context`` and ``connection`` if it has these parameters. If the payload is annotated
        as a dataclass, a pydantic model or another type of msgspec, it is converted before the
        call. A payload that does not match is refused at enqueue and never reaches the handler.

        The handler's return value, any JSON, is stored as the job's result.

        The function gets the methods ``enqueue(client, payload, **options)`` and
        ``enqueue_many(client, payloads)``, whose payload type checkers know. A class does not.

        Args:
            kind: its kind.
            batch: maximum number of jobs per call, at most the worker's concurrency. The handler
                then takes a list of payloads, and a list ``contexts`` if it has this parameter.
                It returns None or a list of results, with exceptions for failed jobs.
            options: see `jobq.registry.typed.HandlerOptions`.

        Raises:
            TypeError: the function cannot be a handler, or an option is unknown.
            ValueError: the kind already has a handler.
            InvalidArgument: a list is given for a text.
        """
        refuse_unknown(options, HandlerOptions)
        given = CommonOptions.__annotations__.keys() & options.keys()
        definition = {
            **in_time({name: options[name] for name in given}),
            "retry_preset": options.get("retry"),
            "on_dead": "hold" if options.get("hold_on_dead") else None,
        }
        refuse_lists({"kind": kind, **definition}, TEXTS - {"dedup_key"})

        def register(function: F) -> F:
            if kind in self._handlers:
                raise ValueError(f"kind {kind} already has a handler")
            called: Any = function() if inspect.isclass(function) else function
            events = options.get("subscribe_to") or ()
            for event in [events] if isinstance(events, str) else events:
                self._subscriptions.append(generated.subscribe(event, kind))
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
        """Return a decorator that declares a schedule for a handler.

        Put it above ``handler``, once for each schedule:

            @registry.schedule("weekly report", "0 9 * * MON", time_zone="Asia/Kolkata")
            @registry.handler("report")
            async def report() -> None: ...

        A schedule that is removed from the program continues until it is retired.

        Args:
            name: name of the schedule.
            cron: the expression.
            every: an interval instead.
            options: see `jobq.calls.options.ScheduleOptions`.

        Raises:
            TypeError: the function is not a handler yet, or an option is unknown.
            ValueError: the name already has a schedule.
        """

        def register(function: F) -> F:
            kinds = [h.kind for h in self if function in (h.function, type(h.function))]
            if not kinds:
                raise TypeError(f"put the schedule {name} above the decorator of its handler")
            if name in self._schedules:
                raise ValueError(f"the schedule {name} already exists")
            self._schedules[name] = create_schedule(name, kinds[-1], cron, every=every, **options)
            return function

        return register

    def before_enqueue(self, hook: F) -> F:
        """Register a hook that clients of this registry call before they enqueue a job.

        It gets a dict with ``kind``, ``payload`` and the options of ``enqueue``, and may change it.
        Its exceptions reach the caller of ``enqueue`` or ``enqueue_many``. A decorator.
        """
        self.hooks.before_enqueue.append(hook)
        return hook

    def after_enqueue(self, hook: F) -> F:
        """Register a hook that is called with such a dict and the resulting `Enqueued`.

        If the client uses a connection of the caller's, its transaction is still open.
        """
        self.hooks.after_enqueue.append(hook)
        return hook

    def before(self, hook: F) -> F:
        """Register a hook that is called with the context before every handler; a decorator.

        Its exceptions count as the handler's. A plain hook runs where the handler does, a
        coroutine on the worker's event loop.
        """
        self.hooks.before.append(hook)
        return hook

    def after(self, hook: F) -> F:
        """Register a hook that is called with the context and the result after every handler.

        It is not called if the handler raises.
        """
        self.hooks.after.append(hook)
        return hook

    def on_error(self, hook: F) -> F:
        """Register a hook that is called with the context and a handler's or hook's exception.

        This includes outcomes such as Retry. Exceptions of this hook are only logged.
        """
        self.hooks.error.append(hook)
        return hook

    def otherwise(
        self,
        function: Callable[..., Any],
        *,
        beyond: Callable[[], Awaitable[Mapping[str, tuple[str, str]]]] | None = None,
    ) -> None:
        """Register a handler for all kinds without a handler.

        It gets the kind as ``context.kind``. If it raises Unable with ``in_=0``, the worker
        claims no jobs of this kind for a minute.

        Args:
            function: the handler.
            beyond: called at the start and each minute, by a sleepy worker only after it was woken;
                returns the kinds that it cannot run here, each with a code and a text. Their jobs
                are not claimed.

        Raises:
            TypeError: the function cannot be a handler.
        """
        self._fallback = describe("any other kind", function)
        self.beyond = beyond

    def is_fallback(self, handler: Handler | None) -> bool:
        """Whether this is the handler of `otherwise`."""
        return handler is not None and handler is self._fallback

    def get(self, kind: str) -> Handler | None:
        """Return the handler of a kind, or None."""
        return self._handlers.get(kind, self._fallback)

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())

    def __len__(self) -> int:
        return len(self._handlers)

    def kinds(self) -> dict[str, Call[None]]:
        """Return the calls that declare the kinds of handlers with options or payload types."""
        return {
            h.kind: put_kind(h.kind, **h.definition, version=self.version)
            for h in self
            if h.definition
        }

    def definitions(self) -> list[Call[Any]]:
        """Return the calls that declare kinds and schedules."""
        return [*self.kinds().values(), *self._subscriptions, *self._schedules.values()]

    def declare(self, client: Caller) -> None:
        """Declare the kinds and schedules.

        Workers do this when they start. It replaces earlier declarations of these kinds, except
        those of this version of the program or a newer one.

        Raises:
            InvalidArgument: a limit is out of range.
            InvalidSchedule: a cron expression or time zone cannot be understood.
        """
        for call in self.definitions():
            client.run(call)
