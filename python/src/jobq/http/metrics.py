"""Figures for Prometheus: the queue's, from the database, and this server's own."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

import psycopg
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from starlette.responses import Response

from jobq.http.operation import Answer, Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jobq.http.operation import Call

logger = logging.getLogger("jobq.http")

REGISTRY: Final = CollectorRegistry()
REQUESTS: Final = Histogram(
    "jobq_http_request_duration_seconds",
    "Time to answer requests, by operation and status.",
    ("method", "path", "status"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30),
    registry=REGISTRY,
)
CONFLICTS: Final = Counter(
    "jobq_idempotency_conflicts",
    "Requests to create a job whose key had a job already, at this server.",
    registry=REGISTRY,
)

# The database's figures: name, help.
FIGURES: Final = {
    "queue_backlog": "Jobs that wait: queued, scheduled or retrying.",
    "running_jobs": "Jobs that are leased to workers.",
    "expired_leases": "Running jobs whose lease has expired and is not taken back yet.",
    "oldest_runnable_seconds": "How long the first in line could have run already.",
    "dlq_size": "Dead jobs.",
    "enqueue_qps": "Jobs enqueued a second, over the last minute.",
    "job_latency_p95_seconds": "95th percentile of the time from created to ended.",
    "fail_rate": "Share of the jobs that ended of late that are dead.",
}

# Seconds for which the database's figures are told again, however many ask.
MEMORY: Final = 2.0


class Figures:
    """The database's figures, as a collector."""

    def __init__(self, rows: Sequence[tuple[Any, ...]], is_up: float) -> None:
        self._rows = rows
        self._is_up = is_up

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield each figure with its queues."""
        yield GaugeMetricFamily("jobq_up", "Whether the database answers.", value=self._is_up)
        of_queues = {name for name, queue, _ in self._rows if queue is not None}
        for figure, meaning in FIGURES.items():
            labels = ["queue"] if figure in of_queues else []
            family = GaugeMetricFamily(f"jobq_{figure}", meaning, labels=labels)
            for name, queue, value in self._rows:
                if name == figure:
                    family.add_metric([queue] if labels else [], value)
            if family.samples:
                yield family


class Scrape:
    """The last answer to /metrics' question to the database."""

    at = float("-inf")
    figures = Figures([], 0.0)


async def show_metrics(call: Call) -> Response:
    """Answer a scrape."""
    scrape: Scrape = call.request.app.state.scrape
    if time.monotonic() - scrape.at > MEMORY:
        scrape.at = time.monotonic()
        try:
            scrape.figures = Figures(await call.fetch("metrics"), 1.0)
        except psycopg.Error as error:
            logger.warning("metrics: %s", error)
            scrape.figures = Figures([], 0.0)
    own = CollectorRegistry()
    own.register(scrape.figures)
    body = generate_latest(own) + generate_latest(REGISTRY)
    return Response(body, media_type=CONTENT_TYPE_LATEST)


OPERATIONS = (
    Operation(
        "GET",
        "/metrics",
        show_metrics,
        "Figures for Prometheus",
        (),
        {200: Answer("Prometheus' text format.", str, "text/plain")},
        tag="health",
    ),
)
