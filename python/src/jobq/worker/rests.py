"""How long an idle worker rests before it asks for work, and before it looks again."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["REST", "Rests"]

# Seconds without jobs before a worker says that it sleeps: between two jobs of a steady load.
REST: Final = 0.02
# Seconds where claims have passed keyed jobs over, as others held their limits for a moment.
NAP: Final = 0.003
# Rests that are naps after the last in which work was passed over or became due; and at first.
NAPS: Final = 100
# Seconds until it looks again, doubled up to a rest.
SHORTEST: Final = 0.002
# Work that a claim has passed over is due since the dawn of time.
PASSED_OVER: Final = -1e9


class Rests:
    """The rests of one dispatcher: short while limits that others hold make it miss work."""

    def __init__(self) -> None:
        self._naps = NAPS
        self._retry = SHORTEST

    @property
    def seconds(self) -> float:
        """How long to rest before asking when work is due."""
        return NAP if self._naps else REST

    def came(self) -> None:
        """Note that jobs have come."""
        self._retry = SHORTEST

    def before(self, due: float | None) -> float:
        """Return how many seconds to sleep before a look.

        Args:
            due: in how many seconds work is due, None when none waits; zero or less when a look
                should find some now.
        """
        is_passed_over = due is not None and due <= PASSED_OVER
        if is_passed_over or (due is not None and 0 < due < REST):
            self._naps = NAPS
        elif self._naps:
            self._naps -= 1
        if is_passed_over:
            pause, self._retry = self._retry, min(self._retry * 2, REST)
            return pause
        if due is None or due > 0:
            self._retry = SHORTEST
            return math.inf if due is None else due
        return REST
