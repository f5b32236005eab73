"""Rows of the database as frozen records.

Unknown columns are ignored, so that an older client works with a newer database. Most are made of
the functions and views that return them, see python/calls.toml.
"""
# ruff: noqa: F405 - the types of values are imported together

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar
from uuid import UUID

from psycopg import AsyncCursor, Cursor

from jobq.models.generated import *  # noqa: F403 - all of them
from jobq.models.types import *  # noqa: F403

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The result of an enqueue.

    Attributes:
        job_id: the new job, or the existing one with the same key.
        created: whether this call created it.
    """

    job_id: UUID
    created: bool


@dataclass(frozen=True, slots=True)
class Job:
    """A job, live or archived: a row of the view ``jobq.job``.

    Attributes:
        attempt: number of claims; the fencing token of the last claim.
        attempts: number of attempts that count toward ``max_attempts``.
        timeout: timeout of each attempt.
        lease: how long a claim is valid without a heartbeat.
        finished_at: None while the job is live.
        delivery_version: version of the endpoint; None if a handler runs the job.
        expires_at: no attempt starts after this time.
        batch_id: its batch, if any.
        updated_at: when its state last changed.
    """

    job_id: UUID
    kind: str
    queue: str
    state: State
    previous_state: State | None
    payload: Json
    result: Json
    run_at: datetime
    priority: int
    attempt: int
    attempts: int
    max_attempts: int
    timeout: timedelta
    lease: timedelta
    worker: str | None
    claimed_at: datetime | None
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    cancel_requested_at: datetime | None
    cancel_reason: str | None
    idempotency_key: str | None
    dedup_key: str | None
    concurrency_key: str | None
    last_error_code: str | None
    last_error: str | None
    metadata: dict[str, Json]
    progress: Json
    schedule_id: UUID | None
    slot_at: datetime | None
    region: str
    created_at: datetime
    finished_at: datetime | None
    delivery_version: int | None
    expires_at: datetime | None
    batch_id: UUID | None
    cost: Decimal
    updated_at: datetime

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended."""
        return self.finished_at is not None


class JobPage(list[Job]):
    """Jobs, newest first.

    Attributes:
        cursor: ``before`` of the next page; None on the last page. A page can have few jobs or
            none and still a cursor, because each page searches at most 100,000 jobs.
    """

    def __init__(self, jobs: Iterable[Job], cursor: UUID | None) -> None:
        super().__init__(jobs)
        self.cursor = cursor


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job as its worker receives it; ``attempt`` is the fencing token."""

    job_id: UUID
    attempt: int
    kind: str
    payload: Json
    metadata: dict[str, Json]
    queue: str
    max_attempts: int
    timeout: timedelta
    lease_expires_at: datetime
    run_at: datetime
    created_at: datetime
    idempotency_key: str | None
    lease: timedelta
    delivery_version: int | None
    is_awaited: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a person to a question.

    Attributes:
        data: the data, which match the form of the question if it is approved.
        reason: why, or None.
        by: who answered, as in the audit.
    """

    is_approved: bool
    data: Json
    reason: str | None
    by: str


@dataclass(frozen=True, slots=True)
class Input:
    """The state and result of a parent.

    Attributes:
        job_id: the parent.
        name: its name in the graph, if any.
        kind: None without a record of it, for example for a deleted job.
        state: ``gone`` without a record; ``hidden`` if grants by queue hide the parent.
        result: its result; None unless it has succeeded.
        after_failure: what happens to the child if the parent is dead or cancelled.
    """

    job_id: UUID
    name: str | None
    kind: str | None
    state: State | Literal["gone", "hidden"]
    result: Json
    after_failure: AfterFailure


ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def words_of(*kinds: type) -> dict[str, str]:
    """Return the descriptions of attributes from the docstrings of classes."""
    found = {}
    for kind in kinds:
        for name, text in ATTRIBUTE.findall(inspect.getdoc(kind) or ""):
            plain = " ".join(text.replace("`", "").split())
            found[name] = f"{plain[0].upper()}{plain[1:]}"
    return found


class _RecordMaker(Generic[T]):
    """A row factory of psycopg for a record class."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._names = [f.name for f in fields(kind)]  # type: ignore[arg-type]

    def __call__(self, cursor: Cursor[Any] | AsyncCursor[Any]) -> Callable[[Sequence[Any]], T]:
        """Return a function that converts a row of this cursor to a record."""
        kind = self._kind
        columns = [column.name for column in cursor.description or ()]
        if columns == self._names:
            return lambda row: kind(*row)
        places = [columns.index(name) for name in self._names if name in columns]
        return lambda row: kind(*[row[place] for place in places])


@cache
def record(kind: type[T]) -> _RecordMaker[T]:
    """Return a row factory for a record class, by the names of columns."""
    return _RecordMaker(kind)
