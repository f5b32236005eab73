"""Grants by queue: the calls, for the owner, that say which log-ins may use which queues."""

from __future__ import annotations

from jobq.calls.call import Call, nothing
from jobq.models import Privilege, QueueGrant, record


def grant_queue(grantee: str, queue: str, privilege: Privilege) -> Call[None]:
    """Let a role use a queue once grants by queue are enforced; again changes nothing.

    Args:
        grantee: the role.
        queue: its name, or ``*`` for all.
        privilege: ``enqueue`` to add, see and cancel its jobs; ``work`` for all else.

    Raises:
        NotPermitted: this user may not act as jobq_owner.
        InvalidArgument: there is no such role, queue or privilege.
    """
    return Call("grant_queue", locals(), nothing)


def revoke_queue(grantee: str, queue: str, privilege: Privilege) -> Call[None]:
    """Take back what `grant_queue` gave, for the next call of every session.

    Raises:
        NotPermitted, InvalidArgument: as for `grant_queue`.
    """
    return Call("revoke_queue", locals(), nothing)


def enforce_queue_grants(*, enforced: bool = True) -> Call[None]:
    """Have every log-in see and touch only the queues that it holds; False ends that.

    Raises:
        NotPermitted: this user may not act as jobq_owner.
        JobqError: a transaction has held a table for 5 s (55P03); call again.
    """
    return Call("enforce_queue_grants", locals(), nothing)


def list_queue_grants() -> Call[list[QueueGrant]]:
    """Return the grants by queue: the owner all of them, others their own."""
    return Call("list_queue_grants", {}, list, record(QueueGrant))
