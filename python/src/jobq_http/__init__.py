"""The HTTP API: routes that each call one function of the database."""

from jobq_http.app import Settings, create_app, serve, server
from jobq_http.auth import create_key

__all__ = ["Settings", "create_app", "create_key", "serve", "server"]
