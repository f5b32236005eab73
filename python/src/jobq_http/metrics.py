"""Metrics for Prometheus: the queue's, from the database, and this server's own."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import psycopg
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from starlette.responses import Response

from jobq.version import __version__
from jobq_http.declared import section
from jobq_http.operation import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jobq_http.operation import Call

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

BUILD: Final = Gauge(
    "jobq_build_info",
    "1, with the version of this server as a label.",
    ("version",),
    registry=REGISTRY,
)
READ_LAG: Final = partial(
    Gauge,
    "jobq_read_lag_seconds",
    "How far the read database lies behind; NaN while it does not answer.",
)
BUILD.labels(__version__).set(1)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the database's.

    Attributes:
        meaning: of it, in a sentence.
        total: makes one figure of those of many queues; None where it is of all queues.
        is_counter: whether it only grows, from one start of this server to the next too.
    """

    meaning: str
    total: Callable[[Iterable[float]], float] | None = None
    is_counter: bool = False


FIGURES: Final = {
    "queue_backlog": Figure("Jobs that wait: queued, scheduled or retrying.", sum),
    "running_jobs": Figure("Jobs that are leased to workers.", sum),
    "blocked_jobs": Figure("Jobs that wait for other jobs.", sum),
    "expired_leases": Figure("Running jobs whose lease has expired, not taken back yet.", sum),
    "oldest_runnable_seconds": Figure("How long the first in line could have run already.", max),
    "lanes": Figure("Concurrency keys with work, by priority.", sum),
    "closed_lanes": Figure("Keys with work that may start no job now.", sum),
    "budget_amount": Figure("What the jobs of a queue may cost in its budget's period.", sum),
    "budget_spent": Figure("What is spent and reserved of it in the present period.", sum),
    "dlq_size": Figure("Dead jobs.", sum),
    "jobs_enqueued": Figure("Jobs that were made, up to a minute ago.", sum, is_counter=True),
    "jobs_succeeded": Figure("Jobs that have succeeded.", sum, is_counter=True),
    "jobs_dead": Figure("Jobs that have died.", sum, is_counter=True),
    "jobs_cancelled": Figure("Jobs that were cancelled.", sum, is_counter=True),
    "attempts_failed": Figure("Attempts after which a job was tried again.", sum, is_counter=True),
    "lost_attempts": Figure("Attempts of the last ten minutes whose lease has expired."),
    "enqueue_qps": Figure("Jobs enqueued a second, over the last minute."),
    "job_latency_p95_seconds": Figure("95th percentile of the time from created to ended."),
    "fail_rate": Figure("Share of the jobs that ended of late that are dead."),
}

# Seconds for which the database's figures are told again, however many ask.
MEMORY: Final = 2.0
# As many for what jobq.health() says: it costs the database some 50 ms.
HEALTH_MEMORY: Final = 30.0
# Whoever enqueues names queues as they like; so many have a label, the others share one.
MOST_QUEUES: Final = 500
OTHERS: Final = "(other)"


class Queues:
    """The queues that have a label: the first that were seen, for this server's life."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def see(self, queues: Iterable[str]) -> None:
        """Give labels to queues while there are few."""
        for queue in queues:
            if len(self._known) >= MOST_QUEUES:
                return
            self._known.setdefault(queue)

    def label(self, queue: str) -> str:
        """Return the label of a queue."""
        return queue if queue in self._known else OTHERS

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)


class Figures:
    """The database's figures, as a collector.

    Args:
        rows: name, queue and value of each.
        queues: those that have a label; each has every figure, if only 0.
        is_up: whether the database has answered.
    """

    def __init__(self, rows: Sequence[tuple[Any, ...]], queues: Queues, is_up: float) -> None:
        self.is_up = is_up
        self._queues = queues
        self._values: dict[str, dict[str | None, list[float]]] = {name: {} for name in FIGURES}
        unlabelled = set()
        for name, queue, value in rows:
            label = None if queue is None else queues.label(queue)
            if label == OTHERS:
                unlabelled.add(queue)
            if name in FIGURES:
                self._values[name].setdefault(label, []).append(value)
        self._unlabelled = len(unlabelled)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yield each figure; none of the database's while it does not answer."""
        yield GaugeMetricFamily("jobq_up", "Whether the database answers.", value=self.is_up)
        yield GaugeMetricFamily(
            "jobq_queues_without_label",
            f"Queues whose figures are those of the queue {OTHERS}.",
            value=self._unlabelled,
        )
        if self.is_up:
            for name, figure in FIGURES.items():
                yield self._family(name, figure)

    def _family(self, name: str, figure: Figure) -> GaugeMetricFamily | CounterMetricFamily:
        """Return a figure: of each queue, or of all of them, NaN where there is none."""
        values = self._values[name]
        if figure.total is None:
            value = values.get(None, [math.nan])[0]
            return GaugeMetricFamily(f"jobq_{name}", figure.meaning, value=value)
        made = CounterMetricFamily if figure.is_counter else GaugeMetricFamily
        family = made(f"jobq_{name}", figure.meaning, labels=["queue"])
        for queue in [*self._queues, *([OTHERS] if self._unlabelled else [])]:
            family.add_metric([queue], figure.total(values.get(queue, [0])))
        return family


class Health:
    """What jobq.health() has found, as a collector.

    Args:
        rows: subject, whether it is in order, finding, remedy and severity of each check.
    """

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._rows = rows

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield whether each check has failed, so that the end of a failure is seen too."""
        family = GaugeMetricFamily(
            "jobq_check_failed",
            "Whether a check of jobq doctor has failed.",
            labels=["check", "severity"],
        )
        for subject, is_ok, _, _, severity in self._rows:
            family.add_metric([subject, severity], float(not is_ok))
        yield family


class Scrape:
    """The last answers to /metrics' questions to the database."""

    def __init__(self) -> None:
        self.at = float("-inf")
        self.health_at = float("-inf")
        self.health = Health([])
        self.queues = Queues()
        self.figures = Figures([], self.queues, 0.0)


async def show_metrics(call: Call) -> Response:
    """Return the metrics; with a server option, only to keys that may read."""
    if not call.request.app.state.is_metrics_open:
        call.request.scope["jobq.key"].role(("read", "operate"))
    scrape: Scrape = call.request.app.state.scrape
    if time.monotonic() - scrape.at > MEMORY:
        scrape.at = time.monotonic()
        scrape.figures = await figures_of(call, scrape.queues)
    if scrape.figures.is_up and time.monotonic() - scrape.health_at > HEALTH_MEMORY:
        scrape.health_at = time.monotonic()
        scrape.health = await health_of(call)
    own = CollectorRegistry()
    own.register(scrape.figures)
    own.register(scrape.health)
    if standby := call.request.app.state.standby:
        READ_LAG(registry=own).set(standby.lag)
    body = generate_latest(own) + generate_latest(REGISTRY)
    return Response(body, media_type=CONTENT_TYPE_LATEST)


async def figures_of(call: Call, queues: Queues) -> Figures:
    """Ask the database for its figures."""
    try:
        rows = await call.fetch("metrics")
        is_up = 1.0 if call.request.app.state.standby is None else await is_primary_up(call)
    except psycopg.Error as error:
        logger.warning("metrics: %s", error)
        return Figures([], queues, 0.0)
    queues.see(queue for _, queue, _ in rows if queue is not None)
    return Figures(rows, queues, is_up)


async def health_of(call: Call) -> Health:
    """Ask the database itself, not a standby, what threatens the queue's promise."""
    database = call.request.app.state.database
    try:
        found = await database.fetch(call.role, "health", None, client_time=datetime.now(UTC))
        return Health(found + await database.fetch(call.role, "health", None, part="trial"))
    except psycopg.Error as error:
        logger.warning("metrics: %s", error)
        return Health([])


async def is_primary_up(call: Call) -> float:
    """Ask the database itself, where the figures may be a standby's."""
    _, repo = await call.request.app.state.database.ready()
    return float(repo == "ok")


of = section("health")
# fmt: off
OPERATIONS = (
    of("GET /metrics", show_metrics, "Metrics for Prometheus", "",
       {200: Answer("Prometheus' text format.", str, "text/plain")}, may_lag=True),
)
# fmt: on
