"""Handlers by kind, their context and their outcomes."""

from jobq.registry.context import JobContext
from jobq.registry.handler import Handler
from jobq.registry.outcomes import Cancelled, Permanent, RateLimited, Retry, Snooze, Unable
from jobq.registry.registry import Registry

__all__ = [
    "Cancelled",
    "Handler",
    "JobContext",
    "Permanent",
    "RateLimited",
    "Registry",
    "Retry",
    "Snooze",
    "Unable",
]
