"""Workflows: the calls for events, signals, batches and graphs.

`Client` and `AsyncClient` have a method for each of these calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from psycopg.rows import args_row

from jobq.calls.arguments import as_jsonb, as_object, as_text, encode
from jobq.calls.call import Call, column, first, nothing, scalar
from jobq.calls.graph import Graph, as_document, payloads_of
from jobq.models import Batch, CancelledBatch, Input, Json, Steered, Step, record


def emit(event: str, payload: Json = None) -> Call[bool]:
    """Emit an event to all jobs that wait for it, now or later.

    It has happened when the transaction commits. The first one stays: its payload is what
    all get.

    Args:
        event: its name, 1 to 256 characters.
        payload: any JSON of at most 1 MiB.

    Returns:
        Whether this was the first.

    Raises:
        InvalidArgument: the name is too long, or the payload is not JSON.
        PayloadTooLarge: the payload has too many bytes.
    """
    return Call("emit", {"event": as_text(event), "payload": encode(payload)}, scalar)


def signal(job_id: UUID | str, name: str, payload: Json = None) -> Call[bool]:
    """Send a signal to one job: an event that it alone sees.

    Args:
        job_id: the job.
        name: what it waits for, 1 to 256 characters.
        payload: any JSON of at most 1 MiB.

    Returns:
        Whether this was the first of its name for the job.

    Raises:
        JobNotFound: there is no such job.
        IllegalState: it has ended.
        InvalidArgument: the name is too long, or the payload is not JSON.
        PayloadTooLarge: the payload has too many bytes.
    """
    given = {"job_id": job_id, "name": as_text(name), "payload": encode(payload)}
    return Call("signal", given, scalar)


def list_steps(job_id: UUID | str) -> Call[list[Step]]:
    """Return what the steps of a job have come to, in their order.

    What a job has waited for stands among them, its name beginning with ``event:``.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("list_steps", locals(), list, record(Step))


def list_inputs(job_id: UUID | str) -> Call[list[Input]]:
    """Return what the jobs have come to that a job waited for, or waits for.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("list_inputs", locals(), list, args_row(Input))


def open_batch(
    on_success: Mapping[str, Json] | None = None,
    on_end: Mapping[str, Json] | None = None,
    on_first_death: Mapping[str, Json] | None = None,
) -> Call[UUID]:
    """Make a batch, and the jobs that are to run when it ends.

    Each job is given by the parameters of ``enqueue`` by name, without keys, ``expires_at``,
    ``after`` and ``after_failure``. It waits as
    ``blocked``, and its metadata tell the ``batch_id``.

    Args:
        on_success: runs when all members have succeeded; cancelled when one has not.
        on_end: runs when all members have ended, however.
        on_first_death: runs as soon as a member is dead; cancelled when none is.

    Returns:
        The batch, for ``enqueue(batch_id=...)``.

    Raises:
        JobqError: as ``enqueue``.
    """
    jobs = {"on_success": on_success, "on_end": on_end, "on_first_death": on_first_death}
    objects = {name: as_object(name, job) for name, job in jobs.items() if job is not None}
    given = {name: as_jsonb(objects.get(name)) for name in jobs}
    inputs = [(str(job.get("kind")), job.get("payload")) for job in objects.values()]
    return Call("open_batch", given, scalar, inputs=inputs)


def seal_batch(batch_id: UUID | str) -> Call[None]:
    """Seal a batch, which then has all its members: it ends once none of them is live.

    Until then, members that run may add others.

    Raises:
        JobNotFound: there is no such batch.
    """
    return Call("seal_batch", locals(), nothing)


def cancel_batch(
    batch_id: UUID | str, reason: str | None = None, max_jobs: int = 10_000
) -> Call[CancelledBatch]:
    """Cancel the members of a batch, and seal it; call again while some remain.

    Args:
        batch_id: the batch.
        reason: at most 512 characters, kept with the jobs.
        max_jobs: at most so many, 1 to 100000.

    Raises:
        JobNotFound: there is no such batch.
    """
    return Call("cancel_batch", locals(), first, record(CancelledBatch))


def batch(batch_id: UUID | str) -> Call[Batch]:
    """Return how far a batch is.

    Raises:
        JobNotFound: there is no such batch, or its retention has ended.
    """
    return Call("batch_status", locals(), first, record(Batch))


def enqueue_graph(
    graph: Graph | Mapping[str, Json], graph_of: UUID | str | None = None
) -> Call[dict[str, UUID]]:
    """Add jobs that wait for each other, all or none.

    Args:
        graph: a `Graph`, or the object that ``enqueue_graph`` of the database takes.
        graph_of: a live job whose graph these join, such as the one whose handler calls.

    Returns:
        The ids of the jobs, by name.

    Raises:
        InvalidArgument: arrows lead round (the detail says where), or a name is twice.
        JobNotFound: one that is waited for is not there.
        IllegalState: one that is to wait is not blocked any more.
        JobqError: as ``enqueue``.
    """
    given = as_document(graph)
    arguments = {"graph": as_jsonb(given), "graph_of": graph_of}
    return Call("enqueue_graph", arguments, dict, inputs=payloads_of(given))


def graph(job_id: UUID | str, max_nodes: int = 1000) -> Call[dict[str, Json]]:
    """Return a job with all that hangs together with it: ``nodes`` and ``edges``.

    Args:
        job_id: any job of the tree.
        max_nodes: at most so many jobs, 1 to 10000; ``is_whole`` tells whether these are all.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("show_graph", locals(), scalar)


def cancel_tree(
    job_id: UUID | str, reason: str | None = None, scope: str = "all"
) -> Call[list[Steered]]:
    """Cancel a job and all connected jobs, and say which jobs.

    Args:
        job_id: any job of the tree.
        reason: at most 512 characters, kept with the jobs.
        scope: ``all``, or ``downstream`` for the job and what waits for it.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("cancel_tree", locals(), list, args_row(Steered))


def redrive_tree(job_id: UUID | str, scope: str = "failed") -> Call[list[UUID]]:
    """Redrive dead and cancelled jobs of a tree, and return their ids.

    Args:
        job_id: any job of the tree; for ``downstream`` the one from which on.
        scope: ``failed`` (the dead, and what was cancelled because of them), ``downstream``
            or ``all``.

    Raises:
        JobNotFound: there is no such job.
        Conflict: another job holds the key of one of them.
    """
    return Call("redrive_tree", locals(), column)
