"""What the workers of one process share."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from jobq.worker.processes import Processes
from jobq.worker.threads import Threads

if TYPE_CHECKING:
    from jobq.worker.metrics import Metrics
    from jobq.worker.slots import Slots
    from jobq.worker.stop import Stop

__all__ = ["Crew", "leave_soon"]

# Seconds for the process to end where handlers hang that nothing can stop; then it is ended.
LEAVE: Final = 5.0


@dataclass
class Crew:
    """The workers of one process: a lone one, or one for each database.

    Attributes:
        slots: in which their jobs run.
        stop: what tells them to stop.
        metrics: what counts, if anything does.
    """

    slots: Slots
    stop: Stop
    metrics: Metrics | None
    _rooms: tuple[Threads, Processes] | None = field(default=None, init=False)

    def rooms(self, processes: int | None) -> tuple[Threads, Processes]:
        """Return the threads and processes that they share; made by the first who asks.

        Args:
            processes: how many there are; None is one for each core.
        """
        if self._rooms is None:
            threads = Threads()
            self._rooms = threads, Processes(processes or os.cpu_count() or 1, threads)
        return self._rooms

    def close(self) -> None:
        """Kill the processes, when all have stopped."""
        if self._rooms is not None:
            self._rooms[1].close()


def leave_soon(exit_code: int) -> None:
    """End the process in a moment, should handlers that hang keep it from ending by itself."""
    last_resort = threading.Timer(LEAVE, os._exit, [exit_code])
    last_resort.daemon = True
    last_resort.start()
