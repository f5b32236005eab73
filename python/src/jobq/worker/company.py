"""How long the end of a job waits for others, to be settled with them: numbers in, numbers out.

An exchange costs the database about as much for one job as for ten. Where jobs come one by one,
but often, each would have two exchanges: one that brings it, and one that settles it and brings
nothing. So an end waits a moment, and goes with the claim of a later job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["LONGEST", "RIDE", "Company"]

# Seconds after which an end goes with the next claim: enough for two or three jobs.
RIDE: Final = 0.004
# Seconds after which it waits no longer for one.
LONGEST: Final = 0.01
# Seconds between claims that bring jobs, in the mean, for an end to wait for one at all.
OFTEN: Final = 0.005
# Share of a new pause between them in the mean.
SMOOTHING: Final = 0.1
# Ends that are company enough.
ENOUGH: Final = 10
# Settlements after one that has waited in vain that do not wait: doubled up to so many each time.
MOST_SKIPS: Final = 256


@dataclass(slots=True)
class Company:
    """What is known of the jobs that come.

    Attributes:
        pause: seconds between claims that have brought jobs, in the mean.
        came_at: when the last one was, on the clock of time.monotonic.
        skips: how many settlements are not to wait.
        penalty: how many more will not if the next one waits in vain.
    """

    pause: float = LONGEST
    came_at: float = 0.0
    skips: int = 0
    penalty: int = 1

    def came(self, now: float) -> None:
        """Learn that a claim has brought jobs."""
        self.pause += (min(now - self.came_at, LONGEST) - self.pause) * SMOOTHING
        self.came_at = now

    def patience(self, ended: int) -> float:
        """Return how many seconds so many ends wait for a claim; none where none is likely."""
        is_likely = self.pause < OFTEN and ended < ENOUGH and not self.skips
        return LONGEST if is_likely else 0.0

    def settled(self, ended: int, waited: float, has_come: bool) -> None:
        """Learn what ends have waited for.

        Args:
            ended: how many have been settled.
            waited: for how many seconds.
            has_come: whether the exchange that settled them has brought jobs.
        """
        if self.skips:
            self.skips -= 1
        elif has_come or ended >= ENOUGH:
            self.penalty = 1
        elif waited >= RIDE:
            # Who makes the jobs may himself wait for these ends.
            self.skips = self.penalty
            self.penalty = min(2 * self.penalty, MOST_SKIPS)
