"""Calls of other jobs, and what a handler can wait for."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from jobq.errors import ChildFailed
from jobq.models import Json


@dataclass(frozen=True, slots=True)
class Child:
    """A job that a handler has called.

    Attributes:
        job_id: the job.
        kind: its kind.
        name: the name of the call, unique in the calling job.
    """

    job_id: UUID
    kind: str
    name: str


class ChildCall:
    """A call in a coroutine. Awaiting it calls the job and returns its result.

    Attributes:
        document: the job, as the database takes it.
    """

    __slots__ = ("_result_of", "document")

    def __init__(
        self,
        document: dict[str, Json],
        result_of: Callable[[ChildCall], Coroutine[Any, Any, Json]],
    ) -> None:
        self.document = document
        self._result_of = result_of

    def __await__(self) -> Generator[Any, None, Json]:
        return self._result_of(self).__await__()


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The messages of a name, for `JobContext.wait_any`."""

    name: str


Source: TypeAlias = str | Child | ChildCall | Mailbox
"""What a handler can wait for: an event, the end of a called job, the next message."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came first.

    Attributes:
        source: the event, called job or mailbox, as it was given.
        value: the payload of the event, the result of the job, or the message.
    """

    source: Source
    value: Json


def value_of_end(end: Mapping[str, Any], kind: str) -> Json:
    """Return the result of a called job.

    Raises:
        ChildFailed: it has not succeeded.
    """
    if end["state"] != "succeeded":
        raise ChildFailed(kind, end)
    return end["result"]
