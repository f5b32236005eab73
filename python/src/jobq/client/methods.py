"""The methods of `Client` and `AsyncClient`, one for each call of `jobq.calls`.

A method runs its call by the client's ``run``, which is a coroutine in `AsyncClient`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, get_args, overload

from jobq.calls import (
    defaults,
    definitions,
    events,
    grants,
    jobs,
    kinds,
    limits,
    queues,
    schedules,
    steering,
    workflows,
)
from jobq.calls.arguments import as_object
from jobq.calls.call import Call
from jobq.database import awaited, finished
from jobq.models import Json
from jobq.registry.hooks import Hooks

Enqueueing: TypeAlias = tuple[list[dict[str, Any]], Callable[[], Call[Any]]]


P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any]")


class Method(Generic[P, T]):
    """A method made of a function that returns a call.

    Args:
        make: returns the call; the method has its name, documentation and signature.
        jobs_of: if the method enqueues, returns its jobs as dicts, and a function that returns
            the call after hooks have changed them.
    """

    def __init__(
        self, make: Callable[P, Call[T]], jobs_of: Callable[..., Enqueueing] | None = None
    ) -> None:
        async def called(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401
            hooks = self.hooks
            if jobs_of is None or hooks is None or not hooks.is_enqueueing:
                return await awaited(self.run(make(*args, **kwargs)))
            made, call = jobs_of(*args, **kwargs)
            return after(hooks, made, await awaited(self.run(before(hooks, made, call))))

        def waiting(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401
            return finished(called(self, *args, **kwargs))

        self._waiting, self._awaited = dressed(waiting, make), dressed(called, make)

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Any]: ...
    @overload
    def __get__(self, client: WaitingCalls, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AwaitedCalls, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: object, owner: type) -> Any:
        """Return the method of a client, or the function of its class."""
        function = self._awaited if issubclass(owner, AwaitedCalls) else self._waiting
        return function if client is None else MethodType(function, client)


def dressed(function: F, make: Callable[..., Call[Any]]) -> F:
    """Set the name, the documentation and the signature that help() shows."""
    update_wrapper(function, make)
    signature = inspect.signature(make, eval_str=True)
    (answer,) = get_args(signature.return_annotation)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [own, *signature.parameters.values()]
    shown = signature.replace(parameters=parameters, return_annotation=answer)
    vars(function)["__signature__"] = shown
    return function


def one_job(kind: str, payload: Json = None, **options: Any) -> Enqueueing:  # noqa: ANN401
    """Return the job of ``enqueue``, and a function that returns its call."""
    job = {"kind": kind, "payload": payload, **options}
    return [job], lambda: jobs.enqueue(**job)


def many_jobs(given: Iterable[Mapping[str, Json]]) -> Enqueueing:
    """Return the jobs of ``enqueue_many``, and a function that returns their call."""
    made: list[dict[str, Any]] = [dict(as_object("each job", job)) for job in given]
    return made, lambda: jobs.enqueue_many(made)


def before(hooks: Hooks, made: list[dict[str, Any]], call: Callable[[], Call[Any]]) -> Call[Any]:
    """Run the hooks that may change jobs, and return the call that enqueues them."""
    for job in made:
        for hook in hooks.before_enqueue:
            hook(job)
    return call()


def after(hooks: Hooks, made: list[dict[str, Any]], answer: T) -> T:
    """Run the hooks that get the result of an enqueue."""
    for job, enqueued in zip(made, answer if isinstance(answer, list) else [answer], strict=True):
        for hook in hooks.after_enqueue:
            hook(job, enqueued)
    return answer


class Calls:
    """Every call of a client.

    Attributes:
        hooks: hooks around enqueueing, of the client's registry.
    """

    hooks: Hooks | None = None

    enqueue = Method(jobs.enqueue, one_job)
    enqueue_many = Method(jobs.enqueue_many, many_jobs)
    get = Method(jobs.get)
    find = Method(jobs.find)
    list_jobs = Method(jobs.list_jobs)
    attempts = Method(jobs.attempts)
    logs = Method(jobs.logs)
    page_events = Method(events.page_events)
    explain = Method(jobs.explain)
    emit = Method(workflows.emit)
    subscribe = Method(workflows.subscribe)
    unsubscribe = Method(workflows.unsubscribe)
    publish = Method(workflows.publish)
    list_subscriptions = Method(workflows.list_subscriptions)
    signal = Method(workflows.signal)
    list_steps = Method(workflows.list_steps)
    list_inputs = Method(workflows.list_inputs)
    open_batch = Method(workflows.open_batch)
    seal_batch = Method(workflows.seal_batch)
    cancel_batch = Method(workflows.cancel_batch)
    batch = Method(workflows.batch)
    enqueue_graph = Method(workflows.enqueue_graph)
    graph = Method(workflows.graph)
    cancel_tree = Method(workflows.cancel_tree)
    redrive_tree = Method(workflows.redrive_tree)
    queue_stats = Method(queues.queue_stats)
    replica_lag = Method(queues.replica_lag)
    settings = Method(defaults.settings)
    cancel = Method(jobs.cancel)
    redrive = Method(jobs.redrive)
    rerun = Method(jobs.rerun)
    redrive_many = Method(jobs.redrive_many)
    change_many = Method(steering.change_many)
    cancel_many = Method(steering.cancel_many)
    delete_many = Method(steering.delete_many)
    work = Method(jobs.work)
    pause = Method(queues.pause)
    resume = Method(queues.resume)
    put_kind = Method(kinds.put_kind)
    list_kinds = Method(kinds.list_kinds)
    pause_kind = Method(kinds.pause_kind)
    resume_kind = Method(kinds.resume_kind)
    delete_kind = Method(kinds.delete_kind)
    put_queue = Method(queues.put_queue)
    list_queues = Method(queues.list_queues)
    list_workers = Method(queues.list_workers)
    put_budget = Method(limits.put_budget)
    put_limit = Method(limits.put_limit)
    list_budgets = Method(limits.list_budgets)
    list_limits = Method(limits.list_limits)
    hold_key = Method(limits.hold_key)
    release_key = Method(limits.release_key)
    delete_limit = Method(limits.delete_limit)
    configure = Method(defaults.configure)
    grant_queue = Method(grants.grant_queue)
    revoke_queue = Method(grants.revoke_queue)
    enforce_queue_grants = Method(grants.enforce_queue_grants)
    list_queue_grants = Method(grants.list_queue_grants)
    create_schedule = Method(schedules.create_schedule)
    update_schedule = Method(schedules.update_schedule)
    pause_schedule = Method(schedules.pause_schedule)
    resume_schedule = Method(schedules.resume_schedule)
    run_schedule = Method(schedules.run_schedule)
    backfill_schedule = Method(schedules.backfill_schedule)
    retire_schedule = Method(schedules.retire_schedule)
    get_schedule = Method(schedules.get_schedule)
    list_schedules = Method(schedules.list_schedules)
    schedule_versions = Method(schedules.schedule_versions)
    schedule_status = Method(schedules.schedule_status)
    preview_schedule = Method(schedules.preview_schedule)
    preview_cron = Method(schedules.preview_cron)
    put_payload_spec = Method(definitions.put_payload_spec)
    put_config = Method(definitions.put_config)
    put_secret = Method(definitions.put_secret)
    put_endpoint = Method(definitions.put_endpoint)
    pause_endpoint = Method(definitions.pause_endpoint)
    resume_endpoint = Method(definitions.resume_endpoint)
    test_endpoint = Method(definitions.test_endpoint)
    endpoint_stats = Method(definitions.endpoint_stats)
    delete_definition = Method(definitions.delete_definition)
    get_definition = Method(definitions.get_definition)
    list_definitions = Method(definitions.list_definitions)
    list_versions = Method(definitions.list_versions)


class WaitingCalls(Calls):
    """The calls of a synchronous client."""


class AwaitedCalls(Calls):
    """The calls of an asynchronous client."""
