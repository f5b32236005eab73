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
from functools import cache
from typing import Any, Final, Literal, TypeAlias, TypeVar
from uuid import UUID

from psycopg import AsyncCursor, Cursor

from jobq.models.generated import *  # noqa: F403 - all of them
from jobq.models.types import *  # noqa: F403

T = TypeVar("T")
Row: TypeAlias = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The result of an enqueue.

    Attributes:
        job_id: the new job, or the existing one with the same key.
        created: whether this call created it.
    """

    job_id: UUID
    created: bool


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


@cache
def record(kind: type[T]) -> Callable[[Cursor[Any] | AsyncCursor[Any]], Callable[[Row], T]]:
    """Return a row factory for a record class, by the names of columns."""
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]

    def of_cursor(cursor: Cursor[Any] | AsyncCursor[Any]) -> Callable[[Row], T]:
        columns = [column.name for column in cursor.description or ()]
        if columns == names:
            return lambda row: kind(*row)
        places = [columns.index(name) for name in names if name in columns]
        return lambda row: kind(*[row[place] for place in places])

    return of_cursor
