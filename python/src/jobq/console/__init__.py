"""The console: see the queue, and act on it, in a browser."""

# The console and the HTTP API need each other: this order lets either be imported first.
import jobq.http  # noqa: F401
