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
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from jobq.worker.held import Held

__all__ = ["HAS_PROMETHEUS", "Metrics"]

BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3600.0)


class Metrics:
    """Counts of one worker, kept as plain numbers and named when they are asked for."""

    def __init__(self) -> None:
        self._started: Counter[str] = Counter()
        self._ended: Counter[tuple[str, str]] = Counter()
        self._durations: defaultdict[tuple[str, str], Durations] = defaultdict(Durations)
        self._running = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def started(self, held: Held) -> None:
        """Count a job that starts."""
        self._started[held.kind] += 1

    def ended(self, held: Held, outcome: str) -> None:
        """Count a job that is settled."""
        key = held.kind, outcome
        self._ended[key] += 1
        if held.started_at:
            self._durations[key].add(time.monotonic() - held.started_at)

    def text(self, running: int) -> bytes:
        """Return everything in Prometheus's text format.

        Args:
            running: how many handlers run now.
        """
        self._running = running
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
        for key, count in self._ended.items():
            ended.add_metric(key, count)
        yield ended
        durations = HistogramMetricFamily(
            "worker_job_duration_seconds",
            "From an attempt's start to its settlement.",
            labels=labels,
        )
        for key, taken in self._durations.items():
            durations.add_metric(key, taken.buckets(), taken.sum)
        yield durations
        yield GaugeMetricFamily(
            "worker_jobs_running", "Jobs whose handlers run now.", value=self._running
        )


class Durations:
    """How many durations fell into each bucket, and their sum in seconds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, int]]:
        """Return the upper bound of each bucket, and how many were within it."""
        bounds = (*map(str, BUCKETS), "+Inf")
        return list(zip(bounds, accumulate(self._counts), strict=True))
