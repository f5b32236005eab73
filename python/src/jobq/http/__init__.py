"""The HTTP API: routes that each call one function of the database."""

from jobq.http.app import Settings, create_app, serve, server
from jobq.http.keys import create_key

__all__ = ["Settings", "create_app", "create_key", "serve", "server"]
