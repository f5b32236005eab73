"""What all requests to a console share."""

from __future__ import annotations

import hmac

from jobq.client.notifications import STREAMS, Endings
from jobq_console.bulks import Bulks
from jobq_console.memory import Memory
from jobq_console.options import PATIENCE, Options
from jobq_console.sessions import Sessions
from jobq_console.visitor import Visitor
from jobq_http.auth import Keys
from jobq_http.database import LOG_IN, Database, conninfo_for
from jobq_http.limits import Rates
from jobq_http.standby import Standby

GUESSES_PER_SECOND = 1


class Console:
    """What all requests to a console share.

    Args:
        url: the database; `ticket` signs in, once, as the login of this URL.
        database: its connections.
        options: settings of the console.
        keys: the API keys that can sign in, if any.
        ticket: the token, if any.
        standby: the standby for lists, if any.
    """

    def __init__(
        self,
        url: str,
        database: Database,
        options: Options,
        keys: Keys | None = None,
        ticket: str | None = None,
        *,
        standby: Standby | None = None,
    ) -> None:
        self.url = url
        self.database = database
        self.options = options
        self.keys = keys
        self.sessions = Sessions(options)
        self.memory = Memory()
        self.bulks = Bulks()
        self.guesses = Rates(GUESSES_PER_SECOND)
        self._role = "jobq_reader" if keys else LOG_IN
        self.appends = Endings(conninfo_for(url, self._role, PATIENCE), STREAMS)
        self._ticket = ticket
        self._standby = standby

    def visitor(self, name: str, scopes: frozenset[str]) -> Visitor:
        """Return a visitor that uses the server's own connections."""
        return Visitor(
            name, scopes, self.database, self.memory, is_log_in=False, standby=self._standby
        )

    def takes(self, ticket: str) -> bool:
        """Whether this is the ticket, which is then invalidated."""
        if self._ticket is None or not hmac.compare_digest(self._ticket.encode(), ticket.encode()):
            return False
        self._ticket = None
        return True

    async def look(self) -> None:
        """Check that the database answers."""
        await self.database.fetch(self._role, "jobq_http.show_pulse")

    async def open(self) -> None:
        """Start connecting."""
        await self.database.open()

    async def close(self) -> None:
        """End sessions, and close every connection."""
        await self.appends.close()
        await self.sessions.close()
        await self.database.close()
