"""The queues that a worker serves, and the order in which it looks at them."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Queues", "check_queues"]


def check_queues(queues: Sequence[str] | Mapping[str, float]) -> None:
    """See that queues can be served.

    Raises:
        ValueError: there is none, one has no name or is ``*``, or a weight is no positive number.
    """
    if not queues or isinstance(queues, str):
        raise ValueError("queues must name at least one queue")
    names: list[object] = list(queues)
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError("each queue must have a name, one text")
    if "*" in names:
        raise ValueError("* is no queue: each must be named")
    weights = queues.values() if hasattr(queues, "values") else ()
    if not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise ValueError("a queue's weight must be a number above 0")


class Queues:
    """The queues of a worker, in the order in which to look at them.

    Args:
        queues: their names; or with weights, in which case the order is drawn for each look.
    """

    def __init__(self, queues: Sequence[str] | Mapping[str, float]) -> None:
        self._weights = dict(queues.items()) if hasattr(queues, "items") else {}
        self.names = list(queues)

    def order(self) -> list[str]:
        """Return the queues in the order of this look."""
        if not self._weights:
            return self.names
        # Efraimidis and Spirakis, 2006: sampling by weight without replacement.
        return sorted(
            self.names,
            key=lambda q: -(random.random() ** (1 / max(self._weights[q], 1e-9))),  # noqa: S311
        )
