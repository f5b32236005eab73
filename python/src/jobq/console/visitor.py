"""Who looks at the console, and what they may ask the database for."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from jobq.http.database import LOG_IN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Hashable, Sequence

    from jobq.http.database import Database

# Seconds for which an answer serves every tab that asks for the same.
MEMORY: Final = 1.0


class Answers:
    """What the database has just answered: many tabs that look at one thing cost one call."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}

    def forget(self) -> None:
        """Ask anew from here on: something has been done."""
        self._tasks.clear()

    async def get(self, key: Hashable, database: Database, role: str, call: Call) -> list[Any]:
        """Return the rows of a call, of one that is under way or just over where there is one."""
        now = time.monotonic()
        for old in [k for k, (until, _) in self._tasks.items() if until < now]:
            del self._tasks[old]
        if key not in self._tasks:
            function, arguments = call
            fetched = database.fetch(role, function, None, **arguments)
            task = asyncio.create_task(_list(fetched))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._tasks[key] = (now + MEMORY, task)
        return await asyncio.shield(self._tasks[key][1])


Call = tuple[str, dict[str, object]]


async def _list(rows: Awaitable[Sequence[Any]]) -> list[Any]:
    return list(await rows)


class Visitor:
    """Somebody who has come in.

    Attributes:
        name: who, as the audit and the page call them.
        scopes: read, and operate where they may act.
    """

    def __init__(
        self,
        name: str,
        scopes: frozenset[str],
        database: Database,
        answers: Answers,
        *,
        is_log_in: bool,
    ) -> None:
        self.name = name
        self.scopes = scopes
        self._database = database
        self._answers = answers
        self._is_log_in = is_log_in

    @property
    def may_operate(self) -> bool:
        """Whether they may act."""
        return "operate" in self.scopes

    @property
    def _role(self) -> str:
        if self._is_log_in:
            return LOG_IN
        return "jobq_operator" if self.may_operate else "jobq_reader"

    async def rows(self, function: str, **arguments: object) -> list[tuple[Any, ...]]:
        """Return what a function that only reads answers."""
        given = msgspec.json.encode(arguments)
        key = (id(self._database), self._role, function, given)
        return await self._answers.get(key, self._database, self._role, (function, arguments))

    async def document(self, function: str, **arguments: object) -> Any:  # noqa: ANN401 - JSON
        """Return the one JSON document that a function answers."""
        [(document,)] = await self.rows(function, **arguments)
        return msgspec.json.decode(document) if isinstance(document, bytes) else document

    async def page(self, function: str, **arguments: object) -> tuple[list[Any], Any]:
        """Return the documents of a page, and the cursor that leads on, or None."""
        rows = await self.rows(function, **arguments)
        return [msgspec.json.decode(item) for item, _ in rows], rows[-1][1] if rows else None

    async def act(self, function: str, **arguments: object) -> list[tuple[Any, ...]]:
        """Do something, in the visitor's name."""
        self._answers.forget()
        acting_for = None if self._is_log_in else self.name
        rows = await self._database.fetch(self._role, function, acting_for, **arguments)
        self._answers.forget()
        return rows

    async def close(self) -> None:
        """Close what is the visitor's own."""
        if self._is_log_in:
            await self._database.close()
