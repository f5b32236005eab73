"""Events: what has ended, each job once and in order, by queue or kind.

`Client.listen_events` and `AsyncClient.listen_events` go on for ever, or until they have
caught up; `page_events` of both is one look. docs/events.md is the guide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import msgspec

from jobq.calls.call import Call

if TYPE_CHECKING:
    from jobq.models import Json


@dataclass(frozen=True, slots=True)
class Event:
    """The end of a job.

    Attributes:
        cursor: a cursor after this event.
        attempts: how many attempts counted.
        error_code: of its last error; None for none.
        metadata: as it was given at enqueue.
        batch_id: the batch that it was a member of.
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
        is_settled: False while an open transaction that has ended jobs keeps back what has
            ended after them.
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
    """Return a page of the jobs that have ended, in the order of their ends.

    Args:
        after: the cursor of the page before, or of an event; None begins at ``since``.
        queues: only jobs of these queues.
        kinds: only jobs of these kinds.
        since: without ``after``: only what ended at or after this moment; None is now.
        max_events: at most so many, 1 to 1000.

    Raises:
        InvalidArgument: the cursor is none, ``after`` comes with ``since``, one name is given for
            a list, or the database is a standby or has the transaction at a stricter level than
            read committed.
    """
    return Call("listen_events", locals(), _page)


def _page(rows: list[tuple[Json, str, bool, bool]]) -> EventPage:
    [(events, cursor, is_behind, is_settled)] = rows
    return EventPage(msgspec.convert(events, list[Event]), cursor, is_behind, is_settled)
