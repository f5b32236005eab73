"""Who calls a tool: an API key of the HTTP server, or a login of the database."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from jobq_http.auth import Key
from jobq_http.database import LOG_IN, Database

LOOK: Final = ("read", "operate")
ACT: Final = ("operate",)
RUN: Final = ("produce",)
STOP: Final = ("produce", "operate")
FOLLOW: Final = ("produce", "read", "operate")


class Caller:
    """A caller, whose calls run with the rights of a scope. All but looks are audited.

    Args:
        database: the database.
        key: the API key; None for the login of the database's URL.
    """

    def __init__(self, database: Database, key: Key | None) -> None:
        self._database = database
        self._key = key

    async def rows(
        self, scopes: tuple[str, ...], function: str, **arguments: object
    ) -> list[dict[str, Any]]:
        """Call a function as the role of the first of these scopes; JSON is unchanged.

        Raises:
            ApiError: the key has none of them.
            psycopg.Error: the function raised an error.
        """
        role = LOG_IN if self._key is None else self._key.role(scopes)
        acting_for = "MCP" if self._key is None else f"API key {self._key.name} by MCP"
        rows = await self._database.fetch(
            role, function, None if scopes in {LOOK, FOLLOW} else acting_for, **arguments
        )
        found = [row._asdict() for row in rows]
        return [{n: Raw(v) if isinstance(v, bytes) else v for n, v in r.items()} for r in found]

    async def check(self, scopes: tuple[str, ...], kind: str, payload: object) -> None:
        """Check a payload of a kind whose schema the database cannot enforce.

        Raises:
            ApiError: the key has none of these scopes.
            PayloadInvalid: it does not match.
        """
        role = LOG_IN if self._key is None else self._key.role(scopes)
        await self._database.check(role, [(kind, payload)])

    async def value(self, scopes: tuple[str, ...], function: str, **arguments: object) -> Any:  # noqa: ANN401 - any column's
        """Return the single value of a function."""
        [row] = await self.rows(scopes, function, **arguments)
        return next(iter(row.values()))
