"""Limits under faults: how many handlers ran at each moment, and how many have started.

A worker that was killed ran nothing from then on. A start that was claimed on time may begin
late, so rates are held against what began within times of some length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fault_history import EVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fault_history import Attempt, Journal, Trouble
    from rig import Rig

# Of the queue, and of what all producers together ask for more than.
RATE = 25
BURST = 2
# Seconds by which a start may begin late.
LATE = 2.0


def limit_of_one(rig: Rig) -> None:
    """SIGKILL for the worker that runs the only job that may run; another one starts."""
    rig.limits = "max_running => 1"
    rig.pause = 0.2
    rig.at_end = lambda: too_many(rig.read(), rig.troubles)
    rig.prepare()
    rig.start()
    rig.every(1.0, 3.0, rig.kill_worker)


def rate_under(fault: Callable[[Rig], None]) -> Callable[[Rig], None]:
    """Return a fault under which a rate must hold."""

    def run(rig: Rig) -> None:
        rig.limits = f"rate_limit => {RATE}, rate_burst => {BURST}"
        rig.pause = 0.05
        rig.at_end = lambda: too_fast(rig.read(), rig.faults)
        fault(rig)

    return run


def too_many(journal: Journal, troubles: Sequence[Trouble]) -> Iterator[str]:
    """Yield where two handlers ran at once."""
    killed = {t.pid: t.until for t in troubles if t.pid is not None}

    def end_of(attempt: Attempt) -> float:
        return attempt.ended_at if attempt.ended_at < EVER else killed.get(attempt.pid, EVER)

    busy_until, last = 0.0, ""
    for attempt in sorted(journal.attempts, key=lambda a: a.started_at):
        if attempt.started_at < busy_until:
            yield f"job {attempt.job} started while job {last} ran, at a limit of one"
        if end_of(attempt) > busy_until:
            busy_until, last = end_of(attempt), attempt.job


def too_fast(journal: Journal, steps: int) -> Iterator[str]:
    """Yield where more began than a rate allows, with a burst more at each step of the clock."""
    starts = sorted(attempt.started_at for attempt in journal.attempts)
    spare = BURST * (1 + steps)
    for first in range(0, len(starts), 10):
        for after in range(first + 1, len(starts)):
            allowed = spare + RATE * (starts[after] - starts[first] + LATE)
            if after - first + 1 > allowed:
                seconds = starts[after] - starts[first]
                yield f"{after - first + 1} jobs began within {seconds:.1f} s, at {RATE} a second"
                return
