"""The console: see the queue, and act on it, in a browser."""

from jobq_console.app import Site
from jobq_console.options import Options, Proxy

__all__ = ["Options", "Proxy", "Site"]
