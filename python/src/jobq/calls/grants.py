"""Calls of the owner that grant logins the use of single queues."""

from __future__ import annotations

from jobq.calls.call import Call, nothing
from jobq.models import Privilege, QueueGrant, record


def grant_queue(grantee: str, queue: str, privilege: Privilege) -> Call[None]:
    """Grant a role the use of a queue, for when grants by queue are enforced.

    Args:
        grantee: the role.
        queue: a queue, or ``*`` for all.
        privilege: ``enqueue`` to add, see and cancel jobs; ``work`` for everything else.

    Raises:
        InvalidArgument: the role, queue or privilege does not exist.
    """
    return Call("grant_queue", locals(), nothing)


def revoke_queue(grantee: str, queue: str, privilege: Privilege) -> Call[None]:
    """Revoke a grant of `grant_queue`, effective with the next call of every session.

    Raises:
        NotPermitted, InvalidArgument: as for `grant_queue`.
    """
    return Call("revoke_queue", locals(), nothing)


def enforce_queue_grants(*, enforced: bool = True) -> Call[None]:
    """Restrict every login to the queues granted to it, or end this restriction.

    Raises:
        JobqError: another transaction has locked a table for 5 s (55P03); call again.
    """
    return Call("enforce_queue_grants", locals(), nothing)


def list_queue_grants() -> Call[list[QueueGrant]]:
    """Return the grants by queue: all of them for the owner, their own for others."""
    return Call("list_queue_grants", {}, list, record(QueueGrant))
