"""A client for a Flask application.

jobq = Jobq(app)                     # app.config["JOBQ_DATABASE_URL"]
jobq.client.enqueue("welcome", {"name": "Ada"})
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import current_app

from jobq.client import Client

if TYPE_CHECKING:
    from flask import Flask

    from jobq.registry import Registry

__all__ = ["Jobq"]


class Jobq:
    """The extension: one pooled client per application, shared by its threads.

    Args:
        app: the application, whose setting ``JOBQ_DATABASE_URL`` is a libpq URL; None if
            `init_app` is called later.
        registry: handlers whose kinds the clients declare, as for `Client`.
    """

    def __init__(self, app: Flask | None = None, registry: Registry | None = None) -> None:
        self._registry = registry
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Create the client of an application; it connects on first use.

        Raises:
            KeyError: ``JOBQ_DATABASE_URL`` is not set.
        """
        app.extensions["jobq"] = Client(app.config["JOBQ_DATABASE_URL"], registry=self._registry)

    @property
    def client(self) -> Client:
        """The client of the current application."""
        client: Client = current_app.extensions["jobq"]
        return client
