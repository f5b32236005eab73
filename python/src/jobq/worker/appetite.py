"""How many jobs to ask for, of what is known of those before: numbers in, numbers out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BATCH", "Appetite"]

# Jobs in one exchange: beyond it a larger batch saves next to nothing a job, and the database
# holds its locks for longer.
BATCH: Final = 500
# Jobs waiting for a slot: three exchanges' worth keeps slots full while one is under way.
PREFETCH: Final = 3 * BATCH
# Bytes of payloads in a worker's hands: so that a queue of large ones costs no more memory.
LOAD: Final = 16 * 1024 * 1024
# Seconds: what is claimed ahead starts within it, so that other workers need not wait for it.
HORIZON: Final = 0.05
# Share of a new duration in the mean: about a hundred jobs, which is a moment for quick ones.
# The first hundred count alike, so that the guess is forgotten after the first answer.
SMOOTHING: Final = 0.01
# Seconds that a job takes, until any has ended.
FIRST_GUESS: Final = 0.1
# An answer that did not come in time is asked for by an eighth: 500, 62, 7, 1.
SHRINK: Final = 8


@dataclass(slots=True)
class Appetite:
    """What a worker can take.

    Attributes:
        slots: how many jobs run at a time.
        prefetch: how many more it holds, to have them when a slot falls free.
        mean: seconds that a job takes.
        weight: bytes of a payload.
        most: jobs that one answer has been able to bring.
        known: how many durations are in the mean.
    """

    slots: int
    prefetch: int = 0
    mean: float = FIRST_GUESS
    weight: float = 1.0
    most: int = BATCH
    known: int = 1

    def room(self, held: int) -> int:
        """Return how many jobs to ask for, when so many are held or asked for already."""
        most = max(1, min(self.most, int(LOAD / self.weight)))
        return max(0, min(self.slots + self.prefetch - held, most))

    def look_ahead(self, stalled: float = 0.0) -> None:
        """Decide how many jobs to hold ahead.

        Args:
            stalled: seconds for which no job could start, every slot being taken.
        """
        soon = HORIZON * self.slots / max(self.mean, stalled, 1e-6)
        self.prefetch = int(min(PREFETCH, soon, LOAD / self.weight))

    def took(self, seconds: float) -> None:
        """Learn how long a job took."""
        self.known += 1
        self.mean += (seconds - self.mean) * max(SMOOTHING, 1 / self.known)

    def came(self, payloads: Iterable[int]) -> None:
        """Learn how long the payloads of claimed jobs are; a rise counts at once."""
        lengths = list(payloads)
        mean = sum(lengths) / len(lengths)
        self.weight = max(1.0, mean, (self.weight + mean) / 2)
        if self.most < BATCH and len(lengths) >= self.most:
            self.most = min(BATCH, self.most * 2)

    def did_not_come(self, asked: int) -> None:
        """Learn that there was no answer in time to a call that asked for so many."""
        if asked:
            self.most = max(1, min(self.most, asked) // SHRINK)
