"""Workflows: the calls that bring events and signals, and show the steps of a job.

`Client` and `AsyncClient` have a method for each of these calls.
"""

from __future__ import annotations

from uuid import UUID

from jobq.arguments import as_text, as_uuid, encode
from jobq.call import Call, scalar
from jobq.models import Json, Step, record

__all__ = ["emit", "list_steps", "signal"]


def emit(event: str, payload: Json = None) -> Call[bool]:
    """Say that an event has happened, for all jobs that wait for it or will.

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
    """Tell one job something that it waits for or will: an event that it alone sees.

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
    given = {"job_id": as_uuid(job_id), "name": as_text(name), "payload": encode(payload)}
    return Call("signal", given, scalar)


def list_steps(job_id: UUID | str) -> Call[list[Step]]:
    """Return what the steps of a job have come to, in their order.

    What a job has waited for stands among them, its name beginning with ``event:``.

    Raises:
        JobNotFound: there is no such job.
    """
    return Call("list_steps", {"job_id": as_uuid(job_id)}, list, record(Step))
