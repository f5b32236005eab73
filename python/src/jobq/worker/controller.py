"""Decides how many jobs to claim, which kinds to exclude, and when to settle."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from jobq.registry.settlement import Released
from jobq.worker import tuning

NO_HANDLER: Final = ("UNKNOWN_KIND", "no handler of this kind")


@dataclass(slots=True)
class Controller:
    """Statistics of a worker's recent jobs, and the decisions based on them."""

    slots: int
    duration: float = 0.1  # mean seconds per job; an estimate until the first one has ended
    ended: int = 0  # durations in the mean
    payload: float = 1.0  # bytes of a payload
    limit: int = tuning.MAX_BATCH  # jobs that one exchange claims or settles
    interval: float = 1.0  # mean seconds between claims that brought jobs
    claimed_at: float = 0.0  # when the last one was, by time.monotonic

    # ---- observations

    def claimed(self, payloads: Iterable[int], now: float) -> None:
        """Record a claim of jobs with payloads of these lengths."""
        lengths = list(payloads)
        mean = sum(lengths) / len(lengths)
        self.payload = max(1.0, mean, (self.payload + mean) / 2)  # a rise counts at once
        self.interval += (min(now - self.claimed_at, 1.0) - self.interval) / 8
        self.claimed_at = now

    def answered(self, jobs: int) -> None:
        """Record an exchange that claimed or settled this many jobs."""
        if jobs >= self.limit:
            self.limit = min(tuning.MAX_BATCH, self.limit * 2)

    def not_answered(self, jobs: int) -> None:
        """Record that an exchange, to claim or settle this many jobs, had no answer in time."""
        if jobs:
            self.limit = max(1, min(self.limit, jobs) // 8)

    def took(self, seconds: float) -> None:
        """Record the duration of a job: the mean of the last 50."""
        self.ended = min(50, self.ended + 1)
        self.duration += (seconds - self.duration) / (self.ended + 1)

    # ---- decisions

    def prefetch(self, stalled: float) -> int:
        """Return how many jobs to hold ahead of the slots, freed last so many seconds ago."""
        ahead = tuning.PREFETCH_SECONDS * self.slots / max(self.duration, stalled, 1e-6)
        return int(min(3 * tuning.MAX_BATCH, ahead, tuning.PREFETCH_BYTES / self.payload))

    def claim(self, held: int, prefetch: int) -> int:
        """Return how many jobs to claim, given how many are held or being claimed."""
        most = max(1, min(self.limit, int(tuning.PREFETCH_BYTES / self.payload)))
        return max(0, min(self.slots + prefetch - held, most))

    def settle_delay(self, ended: int, *, is_waiting: bool) -> float:
        """Return how many seconds finished jobs may wait, to be settled with others.

        While claimed jobs wait for slots, more ends will follow.
        """
        is_frequent = self.interval < tuning.SETTLE_DELAY and ended < tuning.MAX_BATCH // 50
        return tuning.SETTLE_DELAY if is_waiting or is_frequent else 0.0


class Slots:
    """The slots for running jobs. Workers of one process can share them: see `jobq_sharding`."""

    is_shared = False

    def __init__(self, total: int) -> None:
        self.total = total

    def join(self, member: Any) -> None:  # noqa: ANN401 - a producer
        """Register a producer that uses the slots."""

    def limit(self, member: Any) -> int:  # noqa: ANN401, ARG002 - a producer
        """Return how many slots a producer may use now, including those it uses."""
        return self.total

    def pass_on(self, member: object) -> None:
        """Notify the other producers that one uses fewer slots, or needs no more."""


@dataclass(eq=False)
class InProcess:
    """How many jobs of a queue or of a kind may run at a time in a worker process.

    ``held`` returns the jobs that count: those that run, and those that are claimed to run.
    """

    queues: Mapping[str, int]
    kinds: Mapping[str, int]
    held: Callable[[], Iterable[Any]] = field(default=lambda: ())

    def __post_init__(self) -> None:
        self.is_half_claimed = False
        if not all(
            type(n) is int and n >= 1 for n in [*self.queues.values(), *self.kinds.values()]
        ):
            raise ValueError("max_in_process must be at least 1")

    def __bool__(self) -> bool:
        return bool(self.queues or self.kinds)

    def free(self, jobs: Iterable[Any]) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many more jobs of each limited queue and kind may run beside these."""
        jobs = list(jobs)
        queues, kinds = Counter(job.queue for job in jobs), Counter(job.kind for job in jobs)
        return (
            {queue: most - queues[queue] for queue, most in self.queues.items()},
            {kind: most - kinds[kind] for kind, most in self.kinds.items()},
        )

    def startable(self, waiting: Iterable[Any], running: Iterable[Any]) -> Any:  # noqa: ANN401
        """Return the first waiting job that may run beside those that run."""
        queues, kinds = self.free(running)
        for job in waiting:
            if queues.get(job.queue, 1) > 0 and kinds.get(job.kind, 1) > 0:
                return job
        return None

    def claim(self, order: Sequence[str]) -> tuple[list[str], list[str], float]:
        """Return what to claim now: queues in their order, kinds to exclude, and the maximum.

        A claim cannot say how many jobs of each kind it wants. So two claims take turns: one asks
        for no more than may run of any limited queue and kind, the other excludes all of these.
        """
        queues, kinds = self.free(self.held())
        limits = [n for n in (*queues.values(), *kinds.values()) if n > 0]
        unlimited = [queue for queue in order if queue not in queues]
        if limits and not self.is_half_claimed:
            self.is_half_claimed = True
            free = [queue for queue in order if queues.get(queue, 1) > 0]
            return free, [kind for kind, n in kinds.items() if n <= 0], min(limits)
        self.is_half_claimed = False
        return unlimited, list(kinds), math.inf if unlimited else 0


class SkippedKinds:
    """The kinds that a worker does not run, each with a code and a text for the reason."""

    def __init__(self) -> None:
        self._met: dict[str, tuple[float, tuple[str, str] | None]] = {}
        self.known: Mapping[str, tuple[str, str]] = {}  # excluded before any job was claimed
        self.lacks: dict[tuple[str, str], str] = {}  # why jobs were released, for `health`

    def kinds(self) -> list[str] | None:
        """Return the kinds to exclude from claims; None without any."""
        if not self._met and not self.known:
            return None
        now = time.monotonic()
        self._met = {kind: met for kind, met in self._met.items() if met[0] > now}
        return list({**self._met, **self.known}) or None

    def met(
        self, kind: str, reason: tuple[str, str] | None, *, is_lasting: bool = False
    ) -> Released:
        """Exclude a kind for a while, or for good, and return how to release its job."""
        until = math.inf if is_lasting else time.monotonic() + tuning.UNKNOWN_KIND_SECONDS
        self._met.setdefault(kind, (until, reason))
        return Released(reason=reason)

    def put_off(self, kind: str) -> Released:
        """Return how to release a job of an excluded kind, claimed through its concurrency key."""
        wait = timedelta(seconds=tuning.UNKNOWN_KIND_SECONDS / 2)
        _, reason = self._met.get(kind, (0.0, NO_HANDLER))
        return Released(wait, self.known.get(kind, reason))

    def texts(self, *, only_known: bool = False) -> dict[str, str]:
        """Return, by code, a text of the kinds and the reasons."""
        found: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for (kind, code), text in self.lacks.items() if not only_known else ():
            found[code][kind] = text
        for kind, (code, text) in self.known.items():
            found[code][kind] = text
        return {code: _in_words(kinds) for code, kinds in found.items()}


def _in_words(kinds: Mapping[str, str]) -> str:
    """Return kinds and reasons as text, grouped by reason, at most twenty kinds."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for kind in sorted(kinds)[:20]:
        groups[kinds[kind]].append(kind)
    said = [f"{', '.join(group)}: {text}" for text, group in groups.items()]
    if len(kinds) > 20:
        said.append(f"and {len(kinds) - 20} more")
    return "; ".join(said)
