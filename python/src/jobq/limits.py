"""Limits: how many jobs of single concurrency keys run at once."""

from __future__ import annotations

from jobq.call import Call, nothing
from jobq.models import Limit, record

__all__ = ["delete_limit", "list_limits", "put_limit"]


def put_limit(queue: str, concurrency_key: str, max_running: int) -> Call[None]:
    """Say how many jobs of one key run at once in a queue, in place of what the queue says.

    Raises:
        InvalidArgument: it is not from 1 to 32767, or the key has not 1 to 1024 bytes.
    """
    arguments = {"queue": queue, "concurrency_key": concurrency_key, "max_running": max_running}
    return Call("put_limit", arguments, nothing)


def list_limits(queue: str | None = None) -> Call[list[Limit]]:
    """Return the limits of single keys, of one queue or of all."""
    return Call("list_limits", {"queue": queue}, list, record(Limit))


def delete_limit(queue: str, concurrency_key: str) -> Call[None]:
    """Have one key follow again what its queue says for each.

    Raises:
        NotFound: the key has no limit of its own.
    """
    return Call("delete_limit", {"queue": queue, "concurrency_key": concurrency_key}, nothing)
