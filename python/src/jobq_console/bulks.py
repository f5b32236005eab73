"""Bulk actions whose jobs were counted and that wait for confirmation."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import UUID

from jobq_http.errors import ApiError

if TYPE_CHECKING:
    from jobq_console.filters import Filter

KEPT: Final = 100  # previews, of 160 KB at most

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
        action: its name.
        chosen: their filter.
        counted: their ids in bytes, newest first.
        turn: how many of them were processed.
        done: for how many the action succeeded.
        one_at_a_time: held while jobs are processed.
    """

    action: str
    chosen: Filter
    counted: bytes
    turn: int = 0
    done: int = 0
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def label(self) -> str:
        """The name of its button."""
        return ACTIONS[self.action][1]

    @property
    def total(self) -> int:
        """How many were counted."""
        return len(self.counted) // 16

    @property
    def next_one(self) -> UUID:
        """The cursor before the first unprocessed job."""
        first = self.counted[16 * self.turn : 16 * self.turn + 16]
        return UUID(int=min(int.from_bytes(first, "big") + 1, 2**128 - 1))

    def waiting(self) -> dict[bytes, int]:
        """Return the ids of unprocessed jobs, each with its position."""
        places = range(self.turn, self.total)
        return {self.counted[16 * n : 16 * n + 16]: n for n in places}


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
        """Return the preview of a form.

        Raises:
            ApiError: it was evicted.
        """
        if word not in self._bulks:
            raise ApiError(
                "INVALID_REQUEST",
                message="The selection has expired.",
                hint="Go back to the list and count the jobs again.",
            )
        return self._bulks[word]
