"""The console as an ASGI application, to be mounted at /console."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from jobq.console import (
    audit,
    bulk,
    dead,
    endpoints,
    entrance,
    job,
    jobs,
    overview,
    queues,
    schedules,
    workers,
)
from jobq.console.bulk import Bulks
from jobq.console.guard import Guard
from jobq.console.memory import Memory
from jobq.console.pulse import Pulse, stream
from jobq.console.sessions import PATH, Sessions
from jobq.console.visit import refuse, routes
from jobq.console.visitor import Visitor
from jobq.http.database import LOG_IN
from jobq.http.limits import Rates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from jobq.console.options import Options
    from jobq.http.auth import Keys
    from jobq.http.database import Database
    from jobq.http.standby import Standby

GUESSES_PER_SECOND = 1
PAGES = (
    *entrance.PAGES,
    *overview.PAGES,
    *queues.PAGES,
    *jobs.PAGES,
    *bulk.PAGES,
    *job.PAGES,
    *dead.PAGES,
    *schedules.PAGES,
    *workers.PAGES,
    *endpoints.PAGES,
    *audit.PAGES,
)


class Console:
    """What all requests to a console share.

    Args:
        url: the database, whose user's log-in is what `ticket` lets in.
        database: its connections.
        options: how the console behaves.
        keys: the API keys that let in, or None.
        ticket: a word that lets its bearer in once as the log-in of the URL, or None.
        standby: what answers lists while it is fit, or None.
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
        self.pulse = Pulse(self.look, self.memory.forget)
        self.guesses = Rates(GUESSES_PER_SECOND)
        self._ticket = ticket
        self._standby = standby

    def app(self) -> Starlette:
        """Return the application."""
        app = Starlette(
            routes=[
                *routes(PAGES),
                Route("/stream", stream),
                Mount("/static", StaticFiles(packages=[("jobq.console", "static")])),
            ],
            middleware=[Middleware(Guard, console=self, refuse=refuse)],
            exception_handlers={Exception: refuse, 404: refuse, 405: refuse},
        )
        app.state.console = self
        return app

    def visitor(self, name: str, scopes: frozenset[str]) -> Visitor:
        """Return somebody who asks by the server's own connections."""
        return Visitor(
            name, scopes, self.database, self.memory, is_log_in=False, standby=self._standby
        )

    def takes(self, ticket: str) -> bool:
        """Whether this is the ticket; it is torn at that."""
        if self._ticket is None or not hmac.compare_digest(self._ticket.encode(), ticket.encode()):
            return False
        self._ticket = None
        return True

    async def look(self) -> object:
        """Return what is another whenever something has changed, by one light call.

        Raises:
            psycopg.Error: the database does not answer.
        """
        role = "jobq_reader" if self.keys else LOG_IN
        [(now,)] = await self.database.fetch(role, "jobq_http.show_pulse")
        return now

    async def open(self) -> None:
        """Start connecting."""
        await self.database.open()

    async def close(self) -> None:
        """End streams and sessions, and close every connection."""
        await self.pulse.close()
        await self.sessions.close()
        await self.database.close()


async def to_console(_request: Request) -> Response:
    """Lead from / and /console to the console."""
    return RedirectResponse(f"{PATH}/", 303)


def mounted(console: Console) -> list[Route | Mount]:
    """Return the routes of a console in a server."""
    return [Route("/", to_console), Route(PATH, to_console), Mount(PATH, console.app())]
