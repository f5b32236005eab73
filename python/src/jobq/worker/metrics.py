"""What a worker counts, for Prometheus (the extra ``metrics``)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
except ImportError:
    HAS_PROMETHEUS = False
else:
    HAS_PROMETHEUS = True

if TYPE_CHECKING:
    from jobq.worker.held import Held

__all__ = ["HAS_PROMETHEUS", "Metrics"]

BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3600.0)


class Metrics:
    """Counters of one worker."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._started = Counter(
            "worker_jobs_started", "Jobs started.", ["kind"], registry=self._registry
        )
        self._completed = Counter(
            "worker_jobs_completed",
            "Jobs settled, by what came of the attempt.",
            ["kind", "outcome"],
            registry=self._registry,
        )
        self._duration = Histogram(
            "worker_job_duration_seconds",
            "From an attempt's start to its settlement.",
            ["kind", "outcome"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._running = Gauge(
            "worker_jobs_running", "Jobs whose handlers run now.", registry=self._registry
        )
        self._starts: dict[str, Counter] = {}
        self._ends: dict[tuple[str, str], tuple[Counter, Histogram]] = {}

    def started(self, held: Held) -> None:
        """Count a job that starts."""
        counter = self._starts.get(held.kind)
        if counter is None:
            counter = self._starts[held.kind] = self._started.labels(held.kind)
        counter.inc()

    def ended(self, held: Held, outcome: str) -> None:
        """Count a job that is settled."""
        key = held.kind, outcome
        found = self._ends.get(key)
        if found is None:
            found = self._ends[key] = (
                self._completed.labels(*key),
                self._duration.labels(*key),
            )
        found[0].inc()
        if held.started_at:
            found[1].observe(time.monotonic() - held.started_at)

    def text(self, running: int) -> bytes:
        """Return everything in Prometheus's text format.

        Args:
            running: how many handlers run now.
        """
        self._running.set(running)
        return generate_latest(self._registry)
