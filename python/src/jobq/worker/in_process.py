"""How many jobs of a queue or of a kind run at a time in a worker process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["InProcess"]


class Job(Protocol):
    """The properties of a job that the limits depend on."""

    kind: str
    queue: str


J = TypeVar("J", bound=Job)


@dataclass(eq=False)
class InProcess:
    """The limits of one process.

    Attributes:
        queues: the maximum number of running jobs by queue.
        kinds: the same by kind.
        held: returns the jobs that count: those that run, and those that are claimed to run.

    Raises:
        ValueError: a maximum is below 1.
    """

    queues: Mapping[str, int]
    kinds: Mapping[str, int]
    held: Callable[[], Iterable[Job]] = field(default=lambda: ())

    def __post_init__(self) -> None:
        if not all(
            type(n) is int and n >= 1 for n in [*self.queues.values(), *self.kinds.values()]
        ):
            raise ValueError("max_in_process must be at least 1")

    def __bool__(self) -> bool:
        return bool(self.queues or self.kinds)

    def free(self, jobs: Iterable[Job]) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many more jobs of each limited queue and kind may run beside these."""
        jobs = list(jobs)
        queues, kinds = Counter(job.queue for job in jobs), Counter(job.kind for job in jobs)
        return (
            {queue: most - queues[queue] for queue, most in self.queues.items()},
            {kind: most - kinds[kind] for kind, most in self.kinds.items()},
        )

    def full(self) -> tuple[list[str], list[str]]:
        """Return the queues and the kinds of which no more jobs may run now."""
        queues, kinds = self.free(self.held())
        return [q for q, n in queues.items() if n <= 0], [k for k, n in kinds.items() if n <= 0]

    def startable(self, waiting: Iterable[J], running: Iterable[Job]) -> J | None:
        """Return the first waiting job that may run beside those that run."""
        queues, kinds = self.free(running)
        for job in waiting:
            if queues.get(job.queue, 1) > 0 and kinds.get(job.kind, 1) > 0:
                return job
        return None

    def claims(
        self, order: Sequence[str], claimed: Sequence[Job]
    ) -> Iterator[tuple[list[str], list[str], float]]:
        """Yield what to claim: queues in their order, the kinds to except, and the maximum.

        A claim cannot say how many jobs of each kind it wants. So the first claim of a queue asks
        for no more than may run of any kind that has a place, the second excepts all such kinds.

        Args:
            order: the queues.
            claimed: the jobs that the claims have brought so far; the caller adds to it.
        """
        groups: list[list[str]] = []
        for queue in order:
            is_limited = queue in self.queues
            if groups and not is_limited and groups[-1][0] not in self.queues:
                groups[-1].append(queue)
            else:
                groups.append([queue])
        for group in groups:
            for is_of_all_kinds in (True, False):
                queues, kinds = self.free([*self.held(), *claimed])
                most = queues.get(group[0], float("inf"))
                full = [kind for kind, free in kinds.items() if free <= 0]
                if not is_of_all_kinds:
                    yield group, list(kinds), most
                elif len(full) < len(kinds):
                    yield group, full, min(most, *(free for free in kinds.values() if free > 0))
