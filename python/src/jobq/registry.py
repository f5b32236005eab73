"""Handlers by kind.

registry = Registry()

@registry.handler("send_email", max_attempts=3, timeout=30)
async def send_email(payload: SendEmail, context: JobContext) -> None: ...
"""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, overload

from jobq import schedules
from jobq.arguments import as_timedelta, refuse_lists
from jobq.context import JobContext
from jobq.handler import Handler, describe
from jobq.hooks import Hooks
from jobq.kinds import put_kind
from jobq.outcomes import Cancelled, Permanent, RateLimited, Retry, Snooze, Unable
from jobq.typed import enqueueing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from typing import Unpack
    from uuid import UUID

    from jobq.call import Call
    from jobq.client import Client
    from jobq.typed import BatchRegister, HandlerOptions, Register

__all__ = [
    "Cancelled",
    "Handler",
    "JobContext",
    "Permanent",
    "RateLimited",
    "Registry",
    "Retry",
    "Snooze",
    "Unable",
]

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
            raise TypeError("a version is an integer")
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
        queue: str | None = None,
        priority: int | None = None,
        max_attempts: int | None = None,
        timeout: timedelta | float | None = None,
        lease: timedelta | float | None = None,
        retry: str | None = None,
        retry_strategy: str | None = None,
        retry_initial_delay: timedelta | float | None = None,
        retry_max_delay: timedelta | float | None = None,
        retry_jitter: float | None = None,
        dedup: str | None = None,
        dedup_period: timedelta | float | None = None,
        dedup_max_wait: timedelta | float | None = None,
        reuse_key_after_failure: bool | None = None,
        concurrency_key: Sequence[str] | None = None,
        max_running: int | None = None,
        rate_limit: int | None = None,
        rate_period: timedelta | float | None = None,
        rate_burst: int | None = None,
        key_max_running: int | None = None,
        key_rate_limit: int | None = None,
        key_rate_period: timedelta | float | None = None,
        key_rate_burst: int | None = None,
        ordered: bool | None = None,
        hold_on_dead: bool = False,
        keep_succeeded: timedelta | float | None = None,
        keep_dead: timedelta | float | None = None,
        keep_cancelled: timedelta | float | None = None,
        transactional: bool = False,
        process: bool = False,
        on_dead: Callable[[JobContext, str, str], Any] | None = None,
        interrupt_on_cancel: bool = False,
        batch: int = 0,
        batch_wait: timedelta | float = 0.01,
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
            queue: where jobs of the kind go.
            priority: higher runs first.
            max_attempts: how many attempts may fail.
            timeout: of an attempt, a timedelta or seconds.
            lease: how long a claim holds without a heartbeat, a timedelta or seconds.
            retry: a preset: standard, decorrelated, powers_of_two or delivery.
            retry_strategy: fixed, linear, exponential or decorrelated, instead of a preset.
            retry_initial_delay: the first wait, a timedelta or seconds.
            retry_max_delay: the longest, a timedelta or seconds.
            retry_jitter: 0 to 1, as a share of the wait.
            dedup: what dedup keys of the kind do: skip, enqueue, replace, debounce or throttle.
            dedup_period: for how long debounce waits, or throttle makes no other job.
            dedup_max_wait: how long other calls may put a job off in all.
            reuse_key_after_failure: whether a failed job gives its idempotency key back.
            concurrency_key: the path in the payload of each job's concurrency key.
            max_running: how many jobs of the kind run at once, in all queues and workers.
            rate_limit: how many of them start in each ``rate_period``.
            rate_period: a second by default.
            rate_burst: how many of them may start together; 1 by default.
            key_max_running: how many jobs of each concurrency key run at once, in all queues
                and workers.
            key_rate_limit: how many of each key start in each ``key_rate_period``.
            key_rate_period: a second by default.
            key_rate_burst: how many of a key may start together; 1 by default.
            ordered: whether the jobs of each key run one at a time, and wait for one that is
                tried again.
            hold_on_dead: whether a dead job of an ordered kind holds its key, until it is
                redriven or the key released.
            keep_succeeded: how long jobs are kept that succeeded, a timedelta or seconds; 0
                leaves no trace of them.
            keep_dead: the same for dead jobs; at least 1 hour.
            keep_cancelled: the same for cancelled jobs; at least 1 hour.
            transactional: whether the handler takes ``connection``, whose transaction also
                completes the job: its rows and the completion commit together or not at all.
            process: whether a plain function runs in another process, for work on the CPU.
            on_dead: called with the context, the error's code and its text when a job of
                the kind is dead; a plain function or a coroutine function.
            interrupt_on_cancel: whether a coroutine or a process is interrupted when somebody
                asks to cancel the job, which is cancelled then.
            batch: the handler takes a list of so many payloads at most, and a list
                ``contexts`` if it names that; it returns None or a list of the results, in
                which an exception stands for a job that failed. A batch is no larger than
                the worker's concurrency.
            batch_wait: how long a batch waits for more jobs, a timedelta or seconds; half of a
                job's timeout at most.

        Raises:
            TypeError: the function cannot be called as a handler is.
            ValueError: the kind has a handler already.
            InvalidArgument: a list is given for a kind, or for another text.
        """
        definition = {
            "queue": queue,
            "priority": priority,
            "max_attempts": max_attempts,
            "timeout": as_timedelta(timeout),
            "lease": as_timedelta(lease),
            "retry_preset": retry,
            "retry_strategy": retry_strategy,
            "retry_initial_delay": as_timedelta(retry_initial_delay),
            "retry_max_delay": as_timedelta(retry_max_delay),
            "retry_jitter": retry_jitter,
            "dedup": dedup,
            "dedup_period": as_timedelta(dedup_period),
            "dedup_max_wait": as_timedelta(dedup_max_wait),
            "reuse_key_after_failure": reuse_key_after_failure,
            "concurrency_key": concurrency_key and list(concurrency_key),
            "max_running": max_running,
            "rate_limit": rate_limit,
            "rate_period": as_timedelta(rate_period),
            "rate_burst": rate_burst,
            "key_max_running": key_max_running,
            "key_rate_limit": key_rate_limit,
            "key_rate_period": as_timedelta(key_rate_period),
            "key_rate_burst": key_rate_burst,
            "ordered": ordered,
            "on_dead": "hold" if hold_on_dead else None,
            "keep_succeeded": as_timedelta(keep_succeeded),
            "keep_dead": as_timedelta(keep_dead),
            "keep_cancelled": as_timedelta(keep_cancelled),
        }

        refuse_lists({"kind": kind, **definition})

        def register(function: F) -> F:
            if kind in self._handlers:
                raise ValueError(f"kind {kind} has a handler already")
            self._handlers[kind] = describe(
                kind,
                _instance(function),
                definition,
                transactional=transactional,
                process=process,
                on_dead=on_dead,
                interrupt_on_cancel=interrupt_on_cancel,
                batch=batch,
                batch_wait=batch_wait / timedelta(seconds=1)
                if isinstance(batch_wait, timedelta)
                else batch_wait,
            )
            enqueueing(function, kind)
            return function

        return register

    def schedule(
        self,
        name: str,
        cron: str | None = None,
        *,
        every: timedelta | float | None = None,
        **options: Any,  # noqa: ANN401 - the parameters of create_schedule() of these names
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
            every: the interval instead, a timedelta or seconds.
            **options: the other parameters of ``Client.create_schedule`` but ``kind``.

        Raises:
            TypeError: the function is no handler yet, or an option is unknown.
            ValueError: the name has a schedule already.
        """

        def register(function: F) -> F:
            kinds = [h.kind for h in self if function in (h.function, type(h.function))]
            if not kinds:
                raise TypeError(f"put the schedule {name} above the decorator of its handler")
            if name in self._schedules:
                raise ValueError(f"there is a schedule {name} already")
            self._schedules[name] = schedules.create_schedule(
                name, kinds[-1], cron, every=as_timedelta(every), **options
            )
            return function

        return register

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
        self._fallback = describe(
            "any other kind", function, {}, transactional=False, process=False, on_dead=None
        )
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

    def declare(self, client: Client) -> None:
        """Declare the kinds, with their limits and their payloads, and the schedules.

        Workers do it when they start. It replaces what was declared of these kinds before,
        but by this version of the program or a newer one.

        Raises:
            InvalidArgument: a limit is out of range.
            InvalidSchedule: a cron expression or time zone cannot be understood.
        """
        for call in self.definitions():
            client.run(call)


def _instance(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an instance of a handler class, and a function as it is."""
    return _made(function) if inspect.isclass(function) else function


def _made(kind: type[Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = kind()
    return made
