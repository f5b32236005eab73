"""The users of the console and their queries."""

from __future__ import annotations

import math
import time
from typing import Any, Final

import msgspec

from jobq_console.memory import Memory
from jobq_http.database import LOG_IN, Database
from jobq_http.standby import Standby

# Functions that a standby can answer.
LISTS: Final = {
    "jobq_http.page_audit", "jobq_http.show_dead_jobs", "jobq_http.show_history",
    "jobq_http.show_jobs", "jobq_http.show_queues", "jobq_http.show_totals",
    "jobq_http.show_workers",
}  # fmt: skip
# Seconds, plus the standby's lag, for which a user sees current data after an action.
CURRENT: Final = 10.0


class Visitor:
    """A signed-in user.

    Attributes:
        name: the name in the audit and on pages.
        scopes: read, and operate if actions are allowed.
    """

    def __init__(
        self,
        name: str,
        scopes: frozenset[str],
        database: Database,
        memory: Memory,
        *,
        is_log_in: bool,
        standby: Standby | None = None,
    ) -> None:
        self.name = name
        self.scopes = scopes
        self._database = database
        self._memory = memory
        self._is_log_in = is_log_in
        self._standby = standby
        self._acts_at = -math.inf

    @property
    def may_operate(self) -> bool:
        """Whether actions are allowed."""
        return "operate" in self.scopes

    @property
    def _role(self) -> str:
        if self._is_log_in:
            return LOG_IN
        return "jobq_operator" if self.may_operate else "jobq_reader"

    async def rows(self, function: str, **arguments: object) -> list[tuple[Any, ...]]:
        """Return the result of a function that only reads."""
        database = self._source(function)
        key = (database, self._role, function, msgspec.json.encode(arguments))
        return await self._memory.get(
            key, lambda: database.fetch(self._role, function, None, **arguments)
        )

    @property
    def lag(self) -> float | None:
        """The maximum lag of lists in seconds; None if they are current."""
        if self._standby is None or not self._standby.is_fit:
            return None
        behind = self._standby.lag
        return None if time.monotonic() - self._acts_at < CURRENT + behind else behind

    def stay_current(self) -> None:
        """Use current data for a while, during and after an action."""
        self._acts_at = time.monotonic()
        self._memory.forget()

    def _source(self, function: str) -> Database:
        if function in LISTS and self._standby is not None and self.lag is not None:
            return self._standby.database
        return self._database

    async def fresh(self, function: str, **arguments: object) -> list[Any]:
        """Return the result of a function that only reads, as it is now."""
        return await self._database.fetch(self._role, function, None, **arguments)

    async def document(self, function: str, **arguments: object) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON document that a function returns."""
        [(document,)] = await self.rows(function, **arguments)
        return msgspec.json.decode(document) if isinstance(document, bytes) else document

    async def page(self, function: str, **arguments: object) -> tuple[list[Any], Any]:
        """Return the documents of a page, and the next cursor or None."""
        rows = await self.rows(function, **arguments)
        return [msgspec.json.decode(item) for item, _ in rows], rows[-1][1] if rows else None

    async def act(self, function: str, **arguments: object) -> list[tuple[Any, ...]]:
        """Call a function on behalf of the user."""
        self._memory.forget()
        acting_for = None if self._is_log_in else self.name
        try:
            return await self._database.fetch(self._role, function, acting_for, **arguments)
        finally:
            self.stay_current()

    async def close(self) -> None:
        """Close the user's own connections."""
        if self._is_log_in:
            await self._database.close()
