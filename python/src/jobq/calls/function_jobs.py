"""Jobs that are functions of the database: the call that runs them."""

from __future__ import annotations

from collections.abc import Sequence

from jobq.calls.arguments import as_names
from jobq.calls.call import Call
from jobq.models import Worked, record

__all__ = ["work"]


def work(queues: Sequence[str] = ("default",), max_jobs: int = 100) -> Call[list[Worked]]:
    """Run jobs whose kinds are functions of the database, in one transaction.

    They run with the rights of the client's log-in, and each is committed with its completion
    or not at all; one that fails undoes nothing of the others.

    Args:
        queues: whose jobs.
        max_jobs: at most so many, 0 to 10000.

    Raises:
        InvalidArgument: the queues are one str.
    """
    return Call("work", {"queues": as_names(queues), "max_jobs": max_jobs}, list, record(Worked))
