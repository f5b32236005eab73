"""Handlers as type checkers see them: jobs are enqueued with the handler's payload type.

@registry.handler("welcome")
async def welcome(payload: Welcome) -> None: ...

welcome.enqueue(client, Welcome(1))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

from jobq.calls.options import CommonOptions, EnqueueOptions
from jobq.models import Json
from jobq.registry.context import JobContext

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
K = TypeVar("K")
C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
Payload_contra = TypeVar("Payload_contra", contravariant=True)
Payload = TypeVar("Payload")


class HandlerOptions(CommonOptions, total=False):
    """Options of `Registry.handler`.

    Attributes:
        retry: a preset: standard, decorrelated, powers_of_two or delivery.
        hold_on_dead: whether a dead job of an ordered kind holds its key, until it is
            redriven or the key is released.
        transactional: whether the handler takes ``connection``, whose transaction also
            completes the job: its rows and the completion commit together or not at all.
        process: whether a plain function runs in another process, for CPU-bound work.
        on_dead: called with the context, the error code and the error text when a job of
            the kind is dead; a plain function or a coroutine function.
        interrupt_on_cancel: whether a coroutine or process is interrupted when the job is to be
            cancelled.
        batch_wait: how long a batch waits for more jobs, a timedelta or seconds; at most half of
            a job's timeout.
        max_in_process: maximum number of running jobs of the kind per worker process.
        retry_on: exception classes, one or several: jobs are retried only after these.
        discard_on: exception classes after which a job is dead at once.
        retry_delay: returns the delay before a retry, a timedelta or seconds, or None for the
            kind's backoff; called with the exception and the attempt.
        pin_release: whether a job that has started continues only on workers of the same release;
            see ``release`` of `jobq.Worker`.
        subscribe_to: events to which workers subscribe the kind when they start, one or several.
    """

    retry: str | None
    hold_on_dead: bool
    transactional: bool
    process: bool
    on_dead: Callable[[JobContext, str, str], Any] | None
    interrupt_on_cancel: bool
    batch_wait: timedelta | float
    max_in_process: int | None
    retry_on: type[BaseException] | Iterable[type[BaseException]] | None
    discard_on: type[BaseException] | Iterable[type[BaseException]] | None
    retry_delay: Callable[[Any, int], timedelta | float | None] | None
    pin_release: bool
    subscribe_to: str | Iterable[str] | None


class Enqueues(Protocol[T_co]):
    """A client that enqueues one job; `AsyncClient` returns an awaitable."""

    def enqueue(self, *args: Any, **kwargs: Any) -> T_co:  # noqa: ANN401 - any client's
        """Enqueue a job."""


class EnqueuesMany(Protocol[T_co]):
    """A client that enqueues many jobs."""

    def enqueue_many(self, *args: Any, **kwargs: Any) -> T_co:  # noqa: ANN401 - any client's
        """Enqueue many jobs."""


class TypedHandler(Protocol[Payload_contra, P, R_co]):
    """A handler with a payload: the function, with methods to enqueue its jobs."""

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""

    def enqueue(
        self, client: Enqueues[T], payload: Payload_contra, **options: Unpack[EnqueueOptions]
    ) -> T:
        """Enqueue a job of the handler's kind, as the client's `enqueue` does.

        Raises:
            TypeError: the function is the handler of several kinds.
            JobqError: as `Client.enqueue`.
        """

    def enqueue_many(self, client: EnqueuesMany[T], payloads: Iterable[Payload_contra]) -> T:
        """Enqueue a job of the handler's kind for each payload, all or none; see `enqueue`."""


class PlainHandler(Protocol[P, R_co]):
    """A handler without a payload: the function, with a method to enqueue its jobs."""

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""

    def enqueue(self, client: Enqueues[T], **options: Unpack[EnqueueOptions]) -> T:
        """Enqueue a job of the handler's kind; see `TypedHandler.enqueue`."""


class _TakesContext(Protocol[R_co]):
    def __call__(self, context: JobContext) -> R_co: ...


class _TakesConnection(Protocol[C_contra, R_co]):
    def __call__(self, connection: C_contra) -> R_co: ...


class _TakesContextFirst(Protocol[C_contra, R_co]):
    def __call__(self, context: JobContext, connection: C_contra) -> R_co: ...


class _TakesContextLast(Protocol[C_contra, R_co]):
    def __call__(self, connection: C_contra, context: JobContext) -> R_co: ...


class Register(Protocol):
    """The decorator of a handler of single jobs. The first signature that matches applies."""

    @overload
    def __call__(self, function: type[K], /) -> type[K]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: _TakesContext[R], /) -> PlainHandler[[JobContext], R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: _TakesConnection[C, R], /) -> PlainHandler[[C], R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: _TakesContextFirst[C, R], /
    ) -> PlainHandler[[JobContext, C], R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: _TakesContextLast[C, R], /
    ) -> PlainHandler[[C, JobContext], R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Payload, P], R], /
    ) -> TypedHandler[Payload, Concatenate[Payload, P], R]: ...
    @overload
    def __call__(self, function: Callable[[], R], /) -> PlainHandler[[], R]: ...


class BatchRegister(Protocol):
    """The decorator of a batch handler."""

    @overload
    def __call__(self, function: type[K], /) -> type[K]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(
        self, function: Callable[Concatenate[list[Payload], P], R], /
    ) -> TypedHandler[Payload, Concatenate[list[Payload], P], R]: ...


class _Producer:
    """The object whose methods are a handler's `enqueue` and `enqueue_many`."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    @property
    def kind(self) -> str:
        if len(self.kinds) > 1:
            raise TypeError(f"several kinds ({', '.join(self.kinds)}): use client.enqueue(kind, …)")
        return self.kinds[0]

    def enqueue(self, client: Enqueues[T], payload: Json = None, **options: Any) -> T:  # noqa: ANN401 - EnqueueOptions
        return client.enqueue(self.kind, payload, **options)

    def enqueue_many(self, client: EnqueuesMany[T], payloads: Iterable[Json]) -> T:
        kind = self.kind
        return client.enqueue_many([{"kind": kind, "payload": payload} for payload in payloads])


def enqueueing(function: Callable[..., Any], kind: str) -> None:
    """Add `enqueue` and `enqueue_many` to a handler.

    Not to a class, nor if it has such an attribute or can have none.
    """
    if inspect.isclass(function):
        return
    known = getattr(getattr(function, "enqueue", None), "__self__", None)
    if isinstance(known, _Producer):
        known.kinds += [kind] if kind not in known.kinds else []
    elif not hasattr(function, "enqueue"):
        producer = _Producer()
        producer.kinds.append(kind)
        with suppress(AttributeError):
            function.enqueue = producer.enqueue  # type: ignore[attr-defined]
            function.enqueue_many = producer.enqueue_many  # type: ignore[attr-defined]
