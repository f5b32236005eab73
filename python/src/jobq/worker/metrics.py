"""What a worker counts, for Prometheus (the extra ``metrics``)."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Final

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )
except ImportError:
    HAS_PROMETHEUS = False
else:
    HAS_PROMETHEUS = True

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client.core import Metric

    from jobq.registry import Registry
    from jobq.worker.held import Held

__all__ = ["HAS_PROMETHEUS", "Metrics"]

# Seconds.
BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3600.0)


# Kinds of a fallback handler, such as endpoints, that have a label of their own: 100 of them
# make a page of half a megabyte.
MOST_NAMES: Final = 100
# The label of all others; no kind is called so.
OTHER: Final = "(other)"


class Metrics:
    """Counts of one worker, kept as plain numbers and named when they are asked for.

    Args:
        registry: the handlers; kinds without one have a label of their own only while there
            are few, since whoever enqueues may name them as they like.

    Attributes:
        left: how many kinds this worker leaves to others, by what it lacks for them.
    """

    def __init__(self, registry: Registry) -> None:
        self._handlers = registry
        self._kinds = {handler.kind for handler in registry}
        self._others: set[str] = set()
        self._unnamed = 0
        self._lacks: Counter[str] = Counter()
        self.left: Mapping[str, int] = {}
        self._stuck = 0
        self._started: dict[str, int] = {}
        self._ended: defaultdict[tuple[str, str], Ended] = defaultdict(Ended)
        self._running = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def started(self, held: Held) -> None:
        """Count a job that starts."""
        kind = held.kind
        label = kind if kind in self._kinds else self._label(kind)
        self._started[label] = self._started.get(label, 0) + 1

    def ended(self, jobs: Iterable[Held], outcome: str) -> None:
        """Count jobs that are settled."""
        now = time.monotonic()
        for held in jobs:
            kind = held.kind
            ended = self._ended[kind if kind in self._kinds else self._label(kind), outcome]
            ended.count += 1
            if held.started_at:
                ended.took(now - held.started_at)

    def called(self, kind: str, state: str) -> None:
        """Count a job that is a function of the database, and has ended."""
        label = self._label(kind, is_served=True)
        self._started[label] = self._started.get(label, 0) + 1
        self._ended[label, state].count += 1

    def lacked(self, code: str) -> None:
        """Count a job that was given back because this worker cannot do it."""
        self._lacks[code if code in self._lacks or len(self._lacks) < MOST_NAMES else OTHER] += 1

    def text(self, running: int, stuck: int) -> bytes:
        """Return everything in Prometheus's text format.

        Args:
            running: how many handlers run now.
            stuck: how many run on long after their jobs were settled.
        """
        self._running, self._stuck = running, stuck
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, as prometheus_client asks its collectors to."""
        started = CounterMetricFamily("worker_jobs_started", "Jobs started.", labels=["kind"])
        for kind, count in self._started.items():
            started.add_metric([kind], count)
        yield started
        labels = ["kind", "outcome"]
        ended = CounterMetricFamily(
            "worker_jobs_completed", "Jobs settled, by what came of the attempt.", labels=labels
        )
        for key, known in self._ended.items():
            ended.add_metric(key, known.count)
        yield ended
        durations = HistogramMetricFamily(
            "worker_job_duration_seconds",
            "From an attempt's start to its settlement.",
            labels=labels,
        )
        for key, known in self._ended.items():
            if known.has_durations:
                durations.add_metric(key, known.buckets(), known.sum)
        yield durations
        yield GaugeMetricFamily(
            "worker_jobs_running", "Jobs whose handlers run now.", value=self._running
        )
        yield GaugeMetricFamily(
            "worker_slots_stuck", "Slots lost to handlers that hang.", value=self._stuck
        )
        unable = CounterMetricFamily(
            "worker_jobs_unable", "Jobs given back for want of something.", labels=["code"]
        )
        for code, count in self._lacks.items():
            unable.add_metric([code], count)
        yield unable
        left = GaugeMetricFamily(
            "worker_kinds_left",
            "Kinds left to other workers for want of something.",
            labels=["code"],
        )
        for code, kinds in self.left.items():
            left.add_metric([code], kinds)
        yield left
        yield CounterMetricFamily(
            "worker_jobs_unnamed", f"Jobs counted under the kind {OTHER}.", value=self._unnamed
        )

    def _label(self, kind: str, *, is_served: bool = False) -> str:
        """Return a kind's label: its own if it is known, or one of the first few."""
        if kind in self._kinds or kind in self._others:
            return kind
        is_served = is_served or self._handlers.get(kind) is not None
        if is_served and len(self._others) < MOST_NAMES:
            self._others.add(kind)
            return kind
        self._unnamed += 1
        return OTHER


class Ended:
    """How many jobs came to one end, how many took how long, and the sum of that in seconds."""

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self._counts = [0] * (len(BUCKETS) + 1)

    @property
    def has_durations(self) -> bool:
        """Whether any of them had been started."""
        return any(self._counts)

    def took(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, int]]:
        """Return the upper bound of each bucket, and how many were within it."""
        bounds = (*map(str, BUCKETS), "+Inf")
        return list(zip(bounds, accumulate(self._counts), strict=True))
