"""Bulk actions whose jobs were counted and that wait for confirmation."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from jobq_console.filters import Filter
from jobq_http.errors import ApiError

KEPT: Final = 50  # previews, of 10,000 ids at most

# Each action with the states that it applies to and the name of its button.
ACTIONS: Final = {
    "cancel": (("queued", "retrying", "running"), "Cancel"),
    "redrive": (("dead",), "Redrive"),
    "run": (("queued", "retrying"), "Run now"),
}


@dataclass(slots=True)
class Bulk:
    """An action and the jobs counted for it.

    Attributes:
        waiting: the ids of those that were not processed yet, newest first.
        total: how many were counted.
        done: for how many the action succeeded.
        one_at_a_time: held while jobs are processed.
    """

    action: str
    chosen: Filter
    waiting: list[str]
    total: int
    done: int = 0
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def label(self) -> str:
        """The name of its button."""
        return ACTIONS[self.action][1]

    @property
    def turn(self) -> int:
        """How many were processed."""
        return self.total - len(self.waiting)

    @property
    def next_one(self) -> UUID:
        """The cursor before the first unprocessed job; of none if all are processed."""
        return UUID(int=(UUID(self.waiting[0]).int if self.waiting else 0) + 1)

    def among(self, job_ids: Iterable[str]) -> list[str]:
        """Return those of these jobs that were counted and not processed yet."""
        waiting = set(self.waiting)
        return [job_id for job_id in job_ids if job_id in waiting]


class Bulks:
    """The previews of a server, by the token in their forms; the oldest are evicted."""

    def __init__(self) -> None:
        self._bulks: dict[str, Bulk] = {}

    def keep(self, bulk: Bulk) -> str:
        """Store a preview, and return its token."""
        while len(self._bulks) >= KEPT:
            del self._bulks[next(iter(self._bulks))]
        word = secrets.token_urlsafe(16)
        self._bulks[word] = bulk
        return word

    def find(self, word: str) -> Bulk:
        """Return the preview of a form; refuse one that was evicted."""
        if word not in self._bulks:
            raise ApiError(
                "INVALID_REQUEST",
                message="The selection has expired.",
                hint="Go back to the list and count the jobs again.",
            )
        return self._bulks[word]
