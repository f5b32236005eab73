"""Events: each job that has ended, once and in order. See docs/recipes.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from jobq.calls.call import Call
from jobq.models import Json


@dataclass(frozen=True, slots=True)
class Event:
    """The end of a job.

    Attributes:
        cursor: a cursor after this event.
        attempts: number of counted attempts.
        error_code: of the last error.
        metadata: as given at enqueue.
        batch_id: its batch, if any.
    """

    cursor: str
    job_id: UUID
    kind: str
    queue: str
    state: Literal["succeeded", "dead", "cancelled"]
    attempts: int
    created_at: datetime
    finished_at: datetime
    error_code: str | None = None
    metadata: dict[str, Any] | None = None
    batch_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events and the next cursor.

    Attributes:
        events: in the order of their ends.
        cursor: the next cursor, even if this page is empty.
        is_behind: whether more can be read at once.
        is_settled: False while an open transaction that has ended jobs holds back later events.
    """

    events: list[Event]
    cursor: str
    is_behind: bool
    is_settled: bool


def page_events(
    after: str | None = None,
    *,
    queues: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    since: datetime | None = None,
    max_events: int = 100,
) -> Call[EventPage]:
    """Return a page of jobs that have ended, in the order of their ends.

    Args:
        after: the cursor of the previous page, or of an event; None begins at ``since``.
        queues: only jobs of these queues.
        kinds: only jobs of these kinds.
        since: without ``after``: only jobs that ended at or after this time; None is now.
        max_events: maximum number, 1 to 1000.

    Raises:
        InvalidArgument: the cursor is invalid; both ``after`` and ``since`` are given; a list is
            given as one name; the database is a standby; or the transaction has a stricter
            isolation level than read committed.
    """
    return Call("listen_events", locals(), _page)


def _page(rows: list[tuple[Json, str, bool, bool]]) -> EventPage:
    [(events, cursor, is_behind, is_settled)] = rows
    return EventPage(msgspec.convert(events, list[Event]), cursor, is_behind, is_settled)
