"""Limits: how many jobs of single concurrency keys run at once and start, and holds."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobq.call import Call, nothing, scalar
from jobq.models import Limit, record

__all__ = ["delete_limit", "hold_key", "list_limits", "put_limit", "release_key"]


def put_limit(
    queue: str,
    concurrency_key: str,
    max_running: int | None = None,
    *,
    rate_limit: int | None = None,
    rate_period: timedelta | str | None = None,
    rate_burst: int | None = None,
) -> Call[None]:
    """Say what holds for one key in a queue, in place of what the queue says for each.

    Args:
        queue: its name.
        concurrency_key: the key.
        max_running: how many of its jobs run at once; None means what the queue says.
        rate_limit: how many of them start in each ``rate_period``; None as well.
        rate_period: a second by default.
        rate_burst: how many of them may start together; 1 by default.

    Raises:
        InvalidArgument: a value is out of range, none is given, or the key has not 1 to 1024
            bytes.
    """
    arguments = {
        "queue": queue,
        "concurrency_key": concurrency_key,
        "max_running": max_running,
        "rate_limit": rate_limit,
        "rate_period": rate_period,
        "rate_burst": rate_burst,
    }
    return Call("put_limit", arguments, nothing)


def hold_key(
    queue: str, concurrency_key: str, until: datetime | timedelta, reason: str | None = None
) -> Call[None]:
    """Start no job of one key until a time; what runs goes on.

    Args:
        queue: its name.
        concurrency_key: the key.
        until: when it may start jobs again; a timedelta counts from now by the database's clock.
        reason: why, for explain.

    Raises:
        InvalidArgument: the key has not 1 to 1024 bytes.
    """
    arguments = {
        "queue": queue,
        "concurrency_key": concurrency_key,
        "until": until,
        "reason": reason,
    }
    from_now = "until" if isinstance(until, timedelta) else None
    return Call("hold_key", arguments, nothing, from_now=from_now)


def release_key(queue: str, concurrency_key: str) -> Call[bool]:
    """Let the jobs of a held key start again; return whether it was held."""
    return Call("release_key", {"queue": queue, "concurrency_key": concurrency_key}, scalar)


def list_limits(queue: str | None = None) -> Call[list[Limit]]:
    """Return the limits of single keys, of one queue or of all."""
    return Call("list_limits", {"queue": queue}, list, record(Limit))


def delete_limit(queue: str, concurrency_key: str) -> Call[None]:
    """Have one key follow again what its queue says for each.

    Raises:
        NotFound: the key has no limit of its own.
    """
    return Call("delete_limit", {"queue": queue, "concurrency_key": concurrency_key}, nothing)
