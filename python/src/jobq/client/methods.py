"""The methods of `Client` and `AsyncClient`, one for each call of `jobq.calls`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobq.calls import definitions, events, jobs, streams, workflows
from jobq.calls.arguments import as_object
from jobq.client.generated import GeneratedCalls
from jobq.client.method import Enqueueing, Method
from jobq.models import Json
from jobq.registry.hooks import Hooks


def one_job(kind: str, payload: Json = None, **options: Any) -> Enqueueing:  # noqa: ANN401
    """Return the job of ``enqueue``, and a function that returns its call."""
    job = {"kind": kind, "payload": payload, **options}
    return [job], lambda: jobs.enqueue(**job)


def many_jobs(given: Iterable[Mapping[str, Json]]) -> Enqueueing:
    """Return the jobs of ``enqueue_many``, and a function that returns their call."""
    made: list[dict[str, Any]] = [dict(as_object("each job", job)) for job in given]
    return made, lambda: jobs.enqueue_many(made)


class Calls(GeneratedCalls):
    """Every call of a client.

    Attributes:
        hooks: hooks around enqueueing, of the client's registry.
    """

    hooks: Hooks | None = None

    enqueue = Method(jobs.enqueue, one_job)
    enqueue_many = Method(jobs.enqueue_many, many_jobs)
    list_jobs = Method(jobs.list_jobs)
    page_events = Method(events.page_events)
    publish = Method(workflows.publish)
    read_stream = Method(streams.read_stream)
    open_batch = Method(workflows.open_batch)
    enqueue_graph = Method(workflows.enqueue_graph)
    change_many = Method(jobs.change_many)
    put_kind = Method(definitions.put_kind)
    put_queue = Method(definitions.put_queue)
    create_schedule = Method(definitions.create_schedule)
    update_schedule = Method(definitions.update_schedule)
    put_secret = Method(definitions.put_secret)
    test_endpoint = Method(definitions.test_endpoint)
    list_definitions = Method(definitions.list_definitions)
