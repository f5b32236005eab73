"""Who may run jobs: one dispatcher alone, or several that share slots."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Member", "Slots"]


class Member(Protocol):
    """A dispatcher, as those see it that share its slots."""

    @property
    def taken(self) -> int:
        """How many slots it has."""

    @property
    def wants(self) -> bool:
        """Whether it would take more: it holds jobs that wait, or is about to look for some."""

    @property
    def started_at(self) -> float:
        """When it last started a job, by time.monotonic."""

    def refill(self) -> None:
        """Start jobs, or look for some: there may be a slot."""


class Slots:
    """So many jobs at a time.

    A slot that falls free is for the member that has the fewest of those who want one; among
    equals, for the one that has waited longest. Nobody keeps a slot that others do not want.

    Args:
        total: how many there are.

    Attributes:
        is_shared: whether several dispatchers have them.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.is_shared = False
        self._members: list[Member] = []

    def join(self, member: Member) -> None:
        """Let a dispatcher have slots."""
        self._members.append(member)
        self.is_shared = len(self._members) > 1

    def limit(self, member: Member) -> int:
        """Return how many slots a member may have now, with those that it has."""
        if not self.is_shared:
            return self.total
        taken = member.taken
        free = self.total - sum(other.taken for other in self._members)
        wanting = [other for other in self._members if other is not member and other.wants]
        share = max(1, self.total // (len(wanting) + 1))
        place = taken, member.started_at
        first = [other for other in wanting if (other.taken, other.started_at) < place]
        return taken + max(0, free - sum(max(0, share - other.taken) for other in first))

    def pass_on(self, member: Member) -> None:
        """Tell the others that a member has less, or wants no more."""
        if not self.is_shared:
            return
        for other in self._members:
            if other is not member and other.wants:
                other.refill()
