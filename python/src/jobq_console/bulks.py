"""Actions on many jobs that were counted, and wait for somebody to confirm them."""

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

# What can be done, the states of jobs that it is for, and the name of the button.
ACTIONS: Final = {
    "cancel": (("queued", "retrying", "running"), "Cancel"),
    "redrive": (("dead",), "Redrive"),
    "run": (("queued", "retrying"), "Run now"),
}


@dataclass(slots=True)
class Bulk:
    """An action, and the jobs that were counted for it.

    Attributes:
        action: its name.
        chosen: the filter that they fitted.
        counted: their ids in bytes, newest first.
        turn: how many of them have had their turn.
        done: for how many it was done.
        one_at_a_time: held while jobs have their turn.
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
        """What follows the id of the first that has not had its turn."""
        first = self.counted[16 * self.turn : 16 * self.turn + 16]
        return UUID(int=min(int.from_bytes(first, "big") + 1, 2**128 - 1))

    def waiting(self) -> dict[bytes, int]:
        """Return the ids of those that have not had their turn, each with its place."""
        places = range(self.turn, self.total)
        return {self.counted[16 * n : 16 * n + 16]: n for n in places}


class Bulks:
    """The previews of a server, by the word that their forms carry; the oldest are forgotten."""

    def __init__(self) -> None:
        self._bulks: dict[str, Bulk] = {}

    def keep(self, bulk: Bulk) -> str:
        """Return the word that leads back to a preview."""
        while len(self._bulks) >= KEPT:
            del self._bulks[next(iter(self._bulks))]
        word = secrets.token_urlsafe(16)
        self._bulks[word] = bulk
        return word

    def find(self, word: str) -> Bulk:
        """Return the preview that a form was made of.

        Raises:
            ApiError: it is not there any more.
        """
        if word not in self._bulks:
            raise ApiError(
                "INVALID_REQUEST",
                message="The selection has expired.",
                hint="Go back to the list and count the jobs again.",
            )
        return self._bulks[word]
