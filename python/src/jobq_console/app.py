"""The console as an ASGI application, to be mounted at /console."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from jobq_console import (
    approvals,
    bulk,
    endpoints,
    entrance,
    job,
    jobs,
    lists,
    overview,
    queues,
    schedules,
)
from jobq_console.console import Console
from jobq_console.guard import Guard
from jobq_console.options import PATH, PATIENCE, Options
from jobq_console.visit import refuse, routes
from jobq_http.auth import Keys
from jobq_http.database import Database
from jobq_http.standby import Standby

DEFAULTS: Final = Options()
SECTIONS: Final = (
    entrance, overview, queues, jobs, bulk, job, approvals, schedules, endpoints, lists,
)  # fmt: skip
PAGES: Final = tuple(page for section in SECTIONS for page in section.PAGES)


class Site(Console):
    """A console with its pages, for a server to mount."""

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes at which a server mounts it."""
        return [Route("/", self._lead), Route(PATH, self._lead), Mount(PATH, self.app())]

    async def _lead(self, _request: Request) -> Response:
        """Redirect / and /console to the console."""
        return RedirectResponse(f"{self.options.base}/", 303)

    def app(self) -> Starlette:
        """Return the application."""
        app = Starlette(
            routes=[
                *routes(PAGES),
                Mount("/static", StaticFiles(packages=[("jobq_console", "static")])),
            ],
            middleware=[Middleware(Guard, console=self)],
            exception_handlers={Exception: refuse, 404: refuse, 405: refuse},
        )
        app.state.console = self
        return app

    @classmethod
    def maker(cls, options: Options = DEFAULTS) -> Callable[[str, Keys, Standby | None], Site]:
        """Return a factory for the console of an HTTP API, with few connections."""

        def make(url: str, keys: Keys, standby: Standby | None) -> Site:
            roles = ("jobq_operator", "jobq_reader")
            database = Database(url, options.pool_size, PATIENCE, roles)
            return cls(url, database, options, keys, standby=standby)

        return make
