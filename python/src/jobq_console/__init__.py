"""The console: web pages to observe the queue and act on it."""

from jobq_console.app import Site
from jobq_console.options import Options, Proxy

__all__ = ["Options", "Proxy", "Site"]
