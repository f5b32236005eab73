"""Calls for events, signals, batches and graphs."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from jobq.calls.arguments import as_jsonb, as_object
from jobq.calls.call import Call, scalar
from jobq.calls.graph import Graph, as_document, payloads_of
from jobq.models import Json
from jobq.tracing import with_trace


def publish(
    event: str,
    payload: Json = None,
    *,
    metadata: Mapping[str, Json] | None = None,
    idempotency_key: str | None = None,
) -> Call[dict[str, UUID]]:
    """Enqueue a job of each kind that has subscribed to an event; return their ids by kind.

    The jobs exist when the transaction commits.

    Args:
        event: name of the event; the jobs have it as ``event`` in their metadata.
        payload: payload of the jobs; None is ``{}``.
        metadata: metadata of the jobs.
        idempotency_key: publishing again with this key creates no second job of a kind.

    Raises:
        JobqError: as ``enqueue_many``; then no job is enqueued.
    """
    arguments = {
        "event": event,
        "payload": as_jsonb(payload),
        "metadata": as_jsonb(with_trace(metadata)),
        "idempotency_key": idempotency_key,
    }
    return Call("publish", arguments, dict)


def open_batch(
    on_success: Mapping[str, Json] | None = None,
    on_end: Mapping[str, Json] | None = None,
    on_first_death: Mapping[str, Json] | None = None,
) -> Call[UUID]:
    """Create a batch, and the jobs to run when it ends; return its ``batch_id``.

    Each job is given by the arguments of ``enqueue`` by name, except keys, ``expires_at``,
    ``after`` and ``after_failure``. Until it runs it is ``blocked``. Its metadata contain the
    ``batch_id``.

    Args:
        on_success: runs when all members have succeeded, else is cancelled.
        on_end: runs when all members have ended.
        on_first_death: runs as soon as a member is dead, else is cancelled.

    Raises:
        JobqError: as ``enqueue``.
    """
    jobs = {"on_success": on_success, "on_end": on_end, "on_first_death": on_first_death}
    objects = {name: as_object(name, job) for name, job in jobs.items() if job is not None}
    given = {name: as_jsonb(objects.get(name)) for name in jobs}
    inputs = [(str(job.get("kind")), job.get("payload")) for job in objects.values()]
    return Call("open_batch", given, scalar, inputs=inputs)


def enqueue_graph(
    graph: Graph | Mapping[str, Json], graph_of: UUID | str | None = None
) -> Call[dict[str, UUID]]:
    """Enqueue jobs that wait for each other, all or none, and return their ids by name.

    Args:
        graph: a `Graph`, or the document for ``enqueue_graph`` of the database.
        graph_of: a live job whose graph these jobs join, such as the calling handler's.

    Raises:
        InvalidArgument: the graph has a cycle (the detail names it), or a name is used twice.
        JobNotFound: a job to wait for does not exist.
        IllegalState: a job of ``before`` is not blocked.
        JobqError: as ``enqueue``.
    """
    given = as_document(graph)
    arguments = {"graph": as_jsonb(given), "graph_of": graph_of}
    return Call("enqueue_graph", arguments, dict, inputs=payloads_of(given))
