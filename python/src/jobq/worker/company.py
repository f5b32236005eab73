"""How long the end of a job waits for others, to be settled with them: numbers in, numbers out.

An exchange costs the database about as much for one job as for ten. Where jobs come one by one,
but often, each would have two exchanges: one that brings it, and one that settles it and brings
nothing. So an end waits for the next claims, and goes with one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["LINGER", "Company"]

# Seconds that a settlement waits at the most: not noticed by whoever waits for the job, and
# enough to make batches of quick jobs.
LINGER: Final = 0.02
# Seconds after which an end goes with the next claim; and between claims that bring jobs, in the
# mean, for an end to wait for one at all.
RIDE: Final = 0.005
# Ends that are company enough.
ENOUGH: Final = 10
# Share of a new pause in the mean.
SMOOTHING: Final = 0.1
# Settlements after waits in vain that do not wait: doubled up to so many with each such wait.
MOST_SKIPS: Final = 256


@dataclass(slots=True)
class Company:
    """What is known of the jobs that come.

    Attributes:
        pause: seconds between claims that have brought jobs, in the mean.
        came_at: when the last one was, on the clock of time.monotonic.
        skips: how many settlements are not to wait.
        penalty: how many more will not if the next wait is in vain.
    """

    pause: float = LINGER
    came_at: float = 0.0
    skips: int = 0
    penalty: int = 1

    def came(self, now: float) -> None:
        """Learn that a claim has brought jobs."""
        self.pause += (min(now - self.came_at, LINGER) - self.pause) * SMOOTHING
        self.came_at = now

    def patience(self, ended: int) -> float:
        """Return how many seconds so many ends wait for others: none where none are to come."""
        is_expected = self.pause < RIDE and ended < ENOUGH and not self.skips
        return LINGER if is_expected else 0.0

    def settled(self, waited: float) -> None:
        """Learn for how long ends have waited that are settled now."""
        if self.skips:
            self.skips -= 1
        elif waited < LINGER:
            self.penalty = 1
        else:
            # Those who make jobs may themselves be waiting for these ends.
            self.skips = self.penalty
            self.penalty = min(2 * self.penalty, MOST_SKIPS)
