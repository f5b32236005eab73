"""Celery's ``shared_task`` on jobq, so that a program can move one module at a time.

    from jobq_contrib.celery import shared_task      # was: from celery import shared_task

    @shared_task(bind=True, max_retries=5)
    def charge(self, order_id): ...

    charge.delay(7)
    chain(fetch.s(url), parse.s(), save.s()).apply_async()

A task is a kind. A worker runs the tasks of all imported modules: `jobq worker app.jobs:registry`,
where ``app/jobs.py`` imports the modules and ``registry`` from here. It needs no Celery.
"""

from __future__ import annotations

import os
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, cast, overload

from jobq.calls.graph import Graph, Node
from jobq.client import Client
from jobq.errors import InvalidArgument, JobqError
from jobq.redaction import error_text, traceback_text
from jobq.registry import JobContext, Permanent, Registry, Retry
from jobq.registry.outcomes import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from uuid import UUID

__all__ = [
    "GroupResult", "Result", "Signature", "Task", "chain", "chord", "group", "registry",
    "shared_task", "use",
]  # fmt: skip

registry: Final = Registry()
"""The handlers of all tasks of imported modules."""

STATES: Final = {
    "queued": "PENDING", "blocked": "PENDING", "running": "STARTED", "retrying": "RETRY",
    "succeeded": "SUCCESS", "dead": "FAILURE", "cancelled": "REVOKED",
}  # fmt: skip
FOREVER: Final = 10_000
"""Attempts of a task with ``max_retries=None``."""


@cache
def _from_environment() -> Client:
    return Client(os.environ["DATABASE_URL"])


_client: Callable[[], Client] = _from_environment


def use(client: Callable[[], Client]) -> None:
    """Choose the client with which tasks are enqueued, such as `jobq_contrib.django.client`.

    Without it, they are enqueued with one client for DATABASE_URL, outside of your transactions.
    """
    global _client  # noqa: PLW0603 - as Celery has a current app
    _client = client


class Options(TypedDict, total=False):
    """Options of ``apply_async``.

    Attributes:
        countdown: seconds until the task may run.
        eta: when it may run.
        expires: seconds, or the time, after which it does not start.
        queue: its queue.
        priority: higher values run first.
    """

    countdown: float | None
    eta: datetime | None
    expires: float | datetime | None
    queue: str | None
    priority: int | None


@dataclass(frozen=True, slots=True)
class Result:
    """A job that was enqueued, with the names of Celery's AsyncResult."""

    id: str

    @property
    def state(self) -> str:
        """PENDING, STARTED, RETRY, SUCCESS, FAILURE or REVOKED."""
        return STATES[_client().get(self.id).state]

    @property
    def status(self) -> str:
        """The same."""
        return self.state

    @property
    def result(self) -> Any:  # noqa: ANN401 - any JSON
        """What the task has returned; None until then."""
        return _client().get(self.id).result

    def ready(self) -> bool:
        """Return whether the job has ended."""
        return _client().get(self.id).is_finished

    def successful(self) -> bool:
        """Return whether it has succeeded."""
        return self.state == "SUCCESS"

    def failed(self) -> bool:
        """Return whether it is dead."""
        return self.state == "FAILURE"

    def get(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - any JSON
        """Wait for the result.

        Raises:
            JobFailed: the job is dead.
            JobCancelled: the job was cancelled.
            TimeoutError: it has not ended in time.
        """
        return _client().result(self.id, timeout)

    def revoke(self) -> None:
        """Cancel the job, or ask its worker to stop it."""
        _client().cancel(self.id)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The jobs of a group, in the order of the group."""

    results: list[Result]

    def get(self, timeout: float | None = None) -> list[Any]:
        """Wait for all results, each for so long."""
        return [result.get(timeout) for result in self.results]

    def ready(self) -> bool:
        """Return whether all have ended."""
        return all(result.ready() for result in self.results)


@dataclass(frozen=True)
class _Plan:
    """Jobs to be enqueued together: what a part of a canvas waits for, and what ends it."""

    graph: Graph
    waits: Sequence[Node] = ()
    is_group: bool = False


class Canvas(ABC):
    """A signature, a chain or a group: what can be joined by ``|`` and enqueued."""

    def __or__(self, other: Canvas) -> chain:
        return chain(self, other)

    def delay(self) -> Result | GroupResult:
        """Enqueue it."""
        return self.apply_async()

    def apply_async(self, **options: Unpack[Options]) -> Result | GroupResult:
        """Enqueue all its jobs, or none; return that or those that end it.

        Options are of the jobs that wait for nothing.
        """
        plan = self._planned(_Plan(Graph()), options)
        ids = _client().enqueue_graph(plan.graph)
        results = [Result(str(ids[node.name])) for node in plan.waits]
        return GroupResult(results) if plan.is_group else results[0]

    @abstractmethod
    def _planned(self, plan: _Plan, options: Options) -> _Plan:
        """Add its jobs to a plan."""


@dataclass(frozen=True)
class Signature(Canvas):
    """A task with arguments.

    Attributes:
        is_immutable: whether it does not take the results of what it waits for.
    """

    task: Task
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    is_immutable: bool = False
    options: Options = field(default_factory=Options)

    def set(self, **options: Unpack[Options]) -> Signature:
        """Return it with other options."""
        return replace(self, options={**self.options, **options})

    def apply_async(self, **options: Unpack[Options]) -> Result:
        """Enqueue it."""
        given = cast("Options", {**self.options, **options})
        return self.task.apply_async(self.args, self.kwargs, **given)

    def _planned(self, plan: _Plan, options: Options) -> _Plan:
        payload: dict[str, Any] = {"args": self.args, "kwargs": self.kwargs}
        if plan.waits and not self.is_immutable:
            names = [node.name for node in plan.waits]
            payload["results_of"] = names if plan.is_group else names[0]
        given = cast("Options", {**self.options, **({} if plan.waits else options)})
        node = plan.graph.add(
            self.task.name, payload, after=plan.waits, **self.task.job_options(given)
        )
        return _Plan(plan.graph, [node])


class chain(Canvas):  # noqa: N801 - Celery's name
    """Parts one after the other; each gets the result of that before as its first argument."""

    def __init__(self, *parts: Canvas | Iterable[Canvas]) -> None:
        self.parts = _parts(parts)

    def _planned(self, plan: _Plan, options: Options) -> _Plan:
        for part in self.parts:
            plan = part._planned(plan, options)  # noqa: SLF001 - a class of this module
        return plan


class group(Canvas):  # noqa: N801 - Celery's name
    """Parts side by side; what follows gets the list of their results."""

    def __init__(self, *parts: Canvas | Iterable[Canvas]) -> None:
        self.parts = _parts(parts)

    def _planned(self, plan: _Plan, options: Options) -> _Plan:
        ends = [part._planned(plan, options) for part in self.parts]  # noqa: SLF001
        return _Plan(plan.graph, [node for end in ends for node in end.waits], is_group=True)


class chord(chain):  # noqa: N801 - Celery's name
    """A group, and what runs with the list of its results when all have succeeded."""

    def __init__(self, header: group | Iterable[Canvas], body: Canvas | None = None) -> None:
        self.header = header if isinstance(header, group) else group(header)
        super().__init__(self.header, *([body] if body else []))

    def __call__(self, body: Canvas) -> Result | GroupResult:
        """Enqueue it with this end: ``chord(header)(body)``."""
        return chord(self.header, body).apply_async()


def _parts(given: Sequence[Any]) -> list[Canvas]:
    """Return parts that are given one by one or as one iterable."""
    is_one = len(given) == 1 and not isinstance(given[0], Canvas)
    parts = list(given[0] if is_one else given)
    if not parts:
        raise InvalidArgument("a chain or group needs a part")
    return parts


@dataclass(frozen=True)
class Request:
    """What a bound task reads as ``self.request``."""

    id: str | None = None
    retries: int = 0
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


class JobRequest(Request):
    """The request of a job, which looks up its retries when they are needed."""

    def __init__(self, context: JobContext, args: list[Any], kwargs: dict[str, Any]) -> None:
        vars(self).update(
            id=str(context.job_id), args=args, kwargs=kwargs, _attempt=context.attempt
        )

    @cached_property
    def retries(self) -> int:
        """How often the job was retried since it was enqueued or redriven."""
        attempt: int = vars(self)["_attempt"]
        if self.id is None or attempt == 1:
            return 0
        try:  # attempt also counts starts after which the job was returned to its queue
            return _client().get(self.id).attempts - 1
        except (KeyError, JobqError):  # no client for the job's database, or it does not answer
            return attempt - 1


class TaskOptions(TypedDict, total=False):
    """Options of ``shared_task``.

    Attributes:
        name: name of the kind; by default module and function.
        bind: whether the function takes the task as its first argument.
        max_retries: how often it is run again; None for no limit; 3 by default.
        default_retry_delay: seconds before it runs again; 180 by default.
        autoretry_for: exceptions after which it is run again. After others it is not.
        retry_backoff: True or seconds: the delay doubles from there.
        retry_backoff_max: the longest delay in seconds; 600 by default.
        retry_jitter: whether the delay is random up to the backoff; True by default.
        queue, priority: of its jobs.
        time_limit: seconds that an attempt may take.
        ignore_result, acks_late: without effect.
    """

    name: str | None
    bind: bool
    max_retries: int | None
    default_retry_delay: float
    autoretry_for: type[BaseException] | Iterable[type[BaseException]]
    retry_backoff: bool | float
    retry_backoff_max: float
    retry_jitter: bool
    queue: str | None
    priority: int | None
    time_limit: float | None
    ignore_result: bool
    acks_late: bool


@dataclass(eq=False)
class Task:
    """A task: its function, and how to enqueue it."""

    run: Callable[..., Any]
    name: str
    options: TaskOptions
    request: Request = field(default_factory=Request)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the function
        """Call the function here."""
        return (
            self.run(self, *args, **kwargs)
            if self.options.get("bind")
            else self.run(*args, **kwargs)
        )

    def s(self, *args: Any, **kwargs: Any) -> Signature:  # noqa: ANN401
        """Return the task with arguments, to which results are prepended."""
        return Signature(self, args, kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature:  # noqa: ANN401
        """Return the task with just these arguments."""
        return Signature(self, args, kwargs, is_immutable=True)

    def delay(self, *args: Any, **kwargs: Any) -> Result:  # noqa: ANN401
        """Enqueue the task."""
        return self.apply_async(args, kwargs)

    def apply_async(
        self,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Enqueue the task; a TypeError if an option is unknown."""
        payload = {"args": list(args), "kwargs": dict(kwargs or {})}
        job = _client().enqueue(self.name, payload, **self.job_options(options))
        return Result(str(job.job_id))

    def retry(
        self,
        *,
        exc: BaseException | None = None,
        countdown: float | None = None,
        eta: datetime | None = None,
    ) -> Retry:
        """Run the task again, unless its retries are spent; raises Retry."""
        wait: timedelta | float | None = countdown
        if eta is not None:
            wait = max(eta - datetime.now(UTC), timedelta(0))
        raise _retry(exc, self.options.get("default_retry_delay", 180) if wait is None else wait)

    def job_options(self, options: Options) -> dict[str, Any]:
        """Return options as those of `Client.enqueue`."""
        if unknown := options.keys() - Options.__annotations__:
            raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
        now = datetime.now(UTC)
        countdown, expires = options.get("countdown"), options.get("expires")
        if isinstance(expires, int | float):
            expires = now + timedelta(seconds=expires)
        later = None if countdown is None else now + timedelta(seconds=countdown)
        most = self.options.get("max_retries", 3)
        given = {
            "run_at": later or options.get("eta"),
            "expires_at": expires,
            "queue": options.get("queue", self.options.get("queue")),
            "priority": options.get("priority", self.options.get("priority")),
            "max_attempts": FOREVER if most is None else most + 1,
            "timeout": self.options.get("time_limit"),
        }
        return {name: value for name, value in given.items() if value is not None}

    def handle(self, payload: dict[str, Any], context: JobContext) -> Any:  # noqa: ANN401 - any JSON
        """Run a job; the handler of the kind."""
        args = payload["args"]
        if of := payload.get("results_of"):
            results = {each.name: each.result for each in context.inputs()}
            args = [[results[name] for name in of] if isinstance(of, list) else results[of], *args]
        request = JobRequest(context, args, payload["kwargs"])
        try:
            return replace(self, request=request)(*args, **payload["kwargs"])
        except OUTCOMES:
            raise
        except cast("tuple[type[BaseException]]", self.options.get("autoretry_for", ())) as error:
            raise _retry(error, self._delay(request)) from error
        except Exception as error:
            details = {"traceback": traceback_text(error)}
            raise Permanent(type(error).__name__, error_text(error), details=details) from error

    def _delay(self, request: Request) -> float:
        """Return the seconds until a retry by ``autoretry_for``."""
        backoff = self.options.get("retry_backoff")
        if not backoff:
            return self.options.get("default_retry_delay", 180)
        longest = self.options.get("retry_backoff_max", 600)
        delay: float = min(float(backoff) * 2 ** min(request.retries, 60), longest)
        return random.uniform(0, delay) if self.options.get("retry_jitter", True) else delay  # noqa: S311


def _retry(error: BaseException | None, wait: timedelta | float) -> Retry:
    """Return what runs the job again after a wait."""
    if error is None:
        return Retry(in_=wait)
    details = {"traceback": traceback_text(error)}
    return Retry(error_text(error), in_=wait, code=type(error).__name__, details=details)


@overload
def shared_task(function: Callable[..., Any], /) -> Task: ...
@overload
def shared_task(**options: Unpack[TaskOptions]) -> Callable[[Callable[..., Any]], Task]: ...
def shared_task(
    function: Callable[..., Any] | None = None, **options: Unpack[TaskOptions]
) -> Task | Callable[[Callable[..., Any]], Task]:
    """Make a task of a function; a decorator, with or without options.

    Raises:
        TypeError: an option is unknown.
        ValueError: there is another task of this name.
    """
    if unknown := options.keys() - TaskOptions.__annotations__:
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
    errors = options.get("autoretry_for", ())
    options["autoretry_for"] = (errors,) if isinstance(errors, type) else tuple(errors)

    def made(run: Callable[..., Any]) -> Task:
        name = options.get("name") or f"{run.__module__}.{run.__qualname__}"
        task = Task(run, name, options)
        update_wrapper(task, run)
        registry.handler(name)(task.handle)
        return task

    return made if function is None else made(function)


def result_of(job_id: UUID | str) -> Result:
    """Return the result of a job by its id, as Celery's ``AsyncResult(id)``."""
    return Result(str(job_id))
