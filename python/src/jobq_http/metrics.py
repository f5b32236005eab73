"""Metrics for Prometheus: of the queue, from the database, and of this server."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from starlette.responses import Response

from jobq.version import __version__
from jobq_http.call import Call
from jobq_http.operation import Answer, section

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
    "Requests to this server to create a job whose key already had one.",
    registry=REGISTRY,
)

BUILD: Final = Gauge(
    "jobq_build_info",
    "1, with the version of this server as a label.",
    ("version",),
    registry=REGISTRY,
)
BUILD.labels(__version__).set(1)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the database.

    Attributes:
        meaning: its description.
        total: combines the values of several queues; None if it is for all queues.
        is_counter: whether it only grows, also across restarts of this server.
    """

    meaning: str
    total: Callable[[Iterable[float]], float] | None = None
    is_counter: bool = False


FIGURES: Final = {
    "queue_backlog": Figure("Waiting jobs: queued, scheduled or retrying.", sum),
    "running_jobs": Figure("Running jobs.", sum),
    "blocked_jobs": Figure("Jobs that wait for other jobs.", sum),
    "expired_leases": Figure("Running jobs with an expired lease, not recovered yet.", sum),
    "oldest_runnable_seconds": Figure("How long the oldest runnable job has waited.", max),
    "waiting_keys": Figure("Concurrency keys with work, by priority.", sum),
    "closed_keys": Figure("Concurrency keys with work that cannot start a job now.", sum),
    "budget_amount": Figure("Amount of a queue's budget per period.", sum),
    "budget_spent": Figure("Spent and reserved part of the budget in the present period.", sum),
    "dlq_size": Figure("Dead jobs.", sum),
    "jobs_enqueued": Figure("Jobs that were created, up to a minute ago.", sum, is_counter=True),
    "jobs_succeeded": Figure("Jobs that have succeeded.", sum, is_counter=True),
    "jobs_dead": Figure("Jobs that have died.", sum, is_counter=True),
    "jobs_cancelled": Figure("Jobs that were cancelled.", sum, is_counter=True),
    "attempts_failed": Figure("Failed attempts of retried jobs.", sum, is_counter=True),
    "lost_attempts": Figure("Attempts of the last ten minutes whose lease has expired."),
    "enqueue_qps": Figure("Jobs enqueued per second, over the last minute."),
    "job_latency_p95_seconds": Figure("95th percentile of the time from creation to end."),
    "fail_rate": Figure("Share of recently finished jobs that are dead."),
}

# How long the database's figures are cached, in seconds, however many clients ask.
MEMORY: Final = 2.0
# How long the result of health() is cached; it costs the database some 50 ms.
HEALTH_MEMORY: Final = 30.0
# Producers choose the names of queues: the first so many have a label, the others share one.
MOST_QUEUES: Final = 500
OTHERS: Final = "(other)"


class Scrape:
    """The last figures and checks of the database, as a collector.

    Attributes:
        rows: name, queue and value of each figure.
        checks: subject, whether it is in order, finding, remedy and severity of each check.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.checks: list[tuple[Any, ...]] = []
        self._is_up = False
        self._queues: dict[str, None] = {}
        self._at = self._checked_at = -math.inf
        self._asking = asyncio.Lock()

    async def refresh(self, call: Call) -> None:
        """Ask the database, unless the last answers are recent.

        The figures may come from a standby; whether the primary answers, and its health, do not.
        """
        async with self._asking:
            await self._ask(call)

    async def _ask(self, call: Call) -> None:
        now, state = time.monotonic(), call.request.app.state
        try:
            if now - self._at > MEMORY:
                self._at, self._is_up, self.rows = now, False, []
                self.rows = await call.fetch("metrics")
                self._is_up = state.standby is None or (await state.database.ready())[1] == "ok"
                for _, queue, _ in self.rows:
                    if queue is not None and len(self._queues) < MOST_QUEUES:
                        self._queues.setdefault(queue)
            if self._is_up and now - self._checked_at > HEALTH_MEMORY:
                self._checked_at, self.checks = now, []
                for given in ({"client_time": datetime.now(UTC)}, {"part": "trial"}):
                    self.checks += await state.database.fetch(call.role, "health", None, **given)
        except psycopg.Error as error:
            logger.warning("metrics: %s", error)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yield each figure and check; no figure while the database does not answer."""
        yield GaugeMetricFamily("jobq_up", "Whether the database answers.", value=self._is_up)
        others = {queue for _, queue, _ in self.rows} - self._queues.keys() - {None}
        yield GaugeMetricFamily(
            "jobq_queues_without_label",
            f"Queues whose figures are those of the queue {OTHERS}.",
            value=len(others),
        )
        labels = [*self._queues, *([OTHERS] if others else [])]
        for name, figure in FIGURES.items() if self._is_up else ():
            yield self._family(name, figure, labels)
        # Also of checks that are in order, so that the end of a failure is seen.
        checks = GaugeMetricFamily(
            "jobq_check_failed",
            "Whether a check of jobq doctor has failed.",
            labels=["check", "severity"],
        )
        for subject, is_ok, _, _, severity in self.checks:
            checks.add_metric([subject, severity], float(not is_ok))
        yield checks

    def _family(
        self, name: str, figure: Figure, labels: Sequence[str]
    ) -> GaugeMetricFamily | CounterMetricFamily:
        """Return a figure: of each queue, or of all of them, NaN if there is none."""
        values: dict[str | None, list[float]] = {}
        for own, queue, value in self.rows:
            if own == name:
                label = queue if queue is None or queue in self._queues else OTHERS
                values.setdefault(label, []).append(value)
        if figure.total is None:
            value = values.get(None, [math.nan])[0]
            return GaugeMetricFamily(f"jobq_{name}", figure.meaning, value=value)
        made = CounterMetricFamily if figure.is_counter else GaugeMetricFamily
        family = made(f"jobq_{name}", figure.meaning, labels=["queue"])
        for label in labels:
            family.add_metric([label], figure.total(values.get(label, [0])))
        return family


async def show_metrics(call: Call) -> Response:
    """Return the metrics; with a server option, only to keys that may read."""
    state = call.request.app.state
    if not state.settings.is_metrics_open:
        call.request.scope["jobq.key"].role(("read", "operate"))
    await state.scrape.refresh(call)
    own = CollectorRegistry()
    own.register(state.scrape)
    if state.standby:
        text = "Lag of the read database; NaN while it does not respond."
        Gauge("jobq_read_lag_seconds", text, registry=own).set(state.standby.lag)
    body = generate_latest(own) + generate_latest(REGISTRY)
    return Response(body, media_type=CONTENT_TYPE_LATEST)


of = section("health")
# fmt: off
OPERATIONS = (
    of("GET /metrics", show_metrics, "Metrics for Prometheus", "",
       {200: Answer("Prometheus' text format.", str, "text/plain")}, may_lag=True),
)
# fmt: on
