"""A worker's log lines and metrics, and its port for Prometheus and probes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import msgspec

from jobq.registry import Registry
from jobq.registry.settlement import Failed, Released
from jobq.worker import tuning
from jobq.worker.connections import Complaints
from jobq.worker.controller import SkippedKinds
from jobq.worker.queries import Job, current_job
from jobq.worker.signals import Stop

# A tenth of what `import jobq` would cost, so a worker imports it when it measures.
HAS_PROMETHEUS: Final = find_spec("prometheus_client") is not None

logger = logging.getLogger("jobq.worker")

# Seconds.
BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3600.0)

# The label of all kinds beyond the first hundred; no kind has this name.
OTHER: Final = "(other)"

_LEVELS: Final = {
    "succeeded": logging.INFO,
    "released": logging.INFO,
    "cancelled": logging.INFO,
    "unknown": logging.INFO,
    "retrying": logging.WARNING,
    "lost": logging.WARNING,
    "dead": logging.ERROR,
}


# Each metric: its type, name after ``worker_``, meaning and labels.
METRICS: Final[tuple[tuple[str, str, str, list[str]], ...]] = (
    ("Counter", "jobs_started", "Jobs started.", ["kind"]),
    ("Counter", "jobs_completed", "Jobs settled, by outcome of the attempt.", ["kind", "outcome"]),
    ("Histogram", "job_duration_seconds", "From start to settlement.", ["kind", "outcome"]),
    ("Gauge", "jobs_running", "Jobs whose handlers run now.", []),
    ("Gauge", "slots_stuck", "Slots occupied by hanging handlers.", []),
    ("Counter", "jobs_unable", "Jobs released because the worker lacks something.", ["code"]),
    ("Gauge", "kinds_left", "Kinds not claimed because the worker lacks something.", ["code"]),
    ("Counter", "jobs_unnamed", "Jobs counted under the kind (other).", []),
)


class Metrics:
    """Metrics of a process for Prometheus (the extra ``metrics``)."""

    def __init__(self, registry: Registry) -> None:
        import prometheus_client  # noqa: PLC0415

        self._write = prometheus_client.generate_latest
        self._handlers = registry
        self._kinds = {handler.kind for handler in registry}
        self._others: set[str] = set()
        self._codes: set[str] = set()
        self._registry = prometheus_client.CollectorRegistry()
        self._metrics = {
            name: getattr(prometheus_client, type_)(
                f"worker_{name}", text, labels, registry=self._registry,
                **({"buckets": BUCKETS} if type_ == "Histogram" else {}),
            )
            for type_, name, text, labels in METRICS
        }  # fmt: skip

    def started(self, kind: str) -> None:
        """Count a job that starts."""
        self._metrics["jobs_started"].labels(self._label(kind, is_served=True)).inc()

    def ended(self, kind: str, outcome: str, seconds: float | None) -> None:
        """Count a settled job, and its duration if it was started."""
        label = self._label(kind)
        self._metrics["jobs_completed"].labels(label, outcome).inc()
        if seconds is not None:
            self._metrics["job_duration_seconds"].labels(label, outcome).observe(seconds)

    def lacked(self, code: str) -> None:
        """Count a job that was released because this worker cannot run it."""
        self._metrics["jobs_unable"].labels(_named(code, self._codes)).inc()

    def left(self, kinds: Mapping[str, int]) -> None:
        """Set how many kinds are excluded, by reason."""
        self._metrics["kinds_left"].clear()
        for code, count in kinds.items():
            self._metrics["kinds_left"].labels(code).set(count)

    def text(self, running: int, stuck: int) -> bytes:
        """Return everything in Prometheus's text format."""
        self._metrics["jobs_running"].set(running)
        self._metrics["slots_stuck"].set(stuck)
        return self._write(self._registry)

    def _label(self, kind: str, *, is_served: bool = False) -> str:
        """Return a kind's label: its own if it is known, or one of the first few."""
        if kind in self._kinds or kind in self._others:
            return kind
        label = OTHER
        if is_served or self._handlers.get(kind) is not None:
            label = _named(kind, self._others)
        if label == OTHER:
            self._metrics["jobs_unnamed"].inc()
        return label


def _named(name: str, known: set[str]) -> str:
    """Return a name chosen by callers if it is one of the first few, else OTHER."""
    if name not in known and len(known) >= tuning.MOST_KINDS:
        return OTHER
    known.add(name)
    return name


@dataclass(eq=False)
class Report:
    """Logs and counts the outcomes of jobs, and kinds that the worker cannot run."""

    worker: str
    metrics: Metrics | None
    skipped: SkippedKinds
    stop: Stop

    def __post_init__(self) -> None:
        self._complaints = Complaints()

    def started(self, job: Job) -> None:
        """Report that a job starts."""
        if self.metrics is not None:
            self.metrics.started(job.kind)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("job started", extra={"job_fields": _job_fields(job, self.worker)})

    def succeeded(self, jobs: Sequence[Job]) -> None:
        """Report jobs that have succeeded."""
        if self.metrics is not None or logger.isEnabledFor(logging.INFO):
            for job in jobs:
                self._end(job, "succeeded")
        self.stop.count(len(jobs))

    def ended(self, job: Job, outcome: str) -> None:
        """Report the outcome of a job."""
        self._end(job, outcome)
        self.stop.count(1 if job.started_at else 0)
        if isinstance(job.settlement, Released) and job.settlement.reason is not None:
            self.unable(job.kind, *job.settlement.reason)

    def unable(self, kind: str, code: str, text: str) -> None:
        """Report why this worker cannot run a job of a kind."""
        if len(self.skipped.lacks) < tuning.MOST_KINDS:
            self.skipped.lacks[kind, code] = text
        if self.metrics is not None:
            self.metrics.lacked(code)
        self._complaints.warning(
            "this worker cannot run %s: %s (%s)", kind, text, code, level=logging.ERROR
        )

    def left_to_others(self) -> None:
        """Report the kinds that the worker excludes from the start."""
        if self.metrics is not None:
            self.metrics.left(Counter(code for code, _ in self.skipped.known.values()))
        for code, text in self.skipped.texts(only_known=True).items():
            message = f"this worker leaves kinds to others ({code}): %s"
            self._complaints.warning(message, text, level=logging.ERROR)

    def _end(self, job: Job, outcome: str) -> None:
        seconds = time.monotonic() - job.started_at if job.started_at else None
        if self.metrics is not None:
            self.metrics.ended(job.kind, outcome, seconds)
        level = _LEVELS.get(outcome, logging.WARNING)
        if not logger.isEnabledFor(level):
            return
        fields, trace = {**_job_fields(job, self.worker), "status": outcome}, ""
        if seconds is not None:
            fields["duration_ms"] = round(seconds * 1000, 1)
        if isinstance(job.settlement, Failed):
            fields["error_code"] = job.settlement.code
            fields["error"] = job.settlement.error
            trace = job.settlement.traceback
        elif isinstance(job.settlement, Released) and job.settlement.until:
            fields["run_at"] = job.settlement.until
        extra = {"job_fields": fields}
        record = logger.makeRecord(
            logger.name, level, __file__, 0, "job %s", (outcome,), None, extra=extra
        )
        record.exc_text = trace or None  # which every formatter shows below the line
        logger.handle(record)


def _job_fields(job: Job | str, worker: str) -> dict[str, Any]:
    """Return the fields of every log line about a job, or about a batch of a kind."""
    if isinstance(job, str):
        return {"kind": job, "worker": worker}
    return {
        "job_id": job.job_id,
        "kind": job.kind,
        "attempt": job.attempt,
        "queue": job.queue,
        "worker": worker,
        "idempotency_key": job.idempotency_key,
    }


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a log line about its job, for lines of the worker and of handlers."""
    given: dict[str, Any] | None = getattr(record, "job_fields", None)
    current = current_job.get()
    if given is None and current is not None:
        return _job_fields(*current)
    return given or {}


# ---- a port for Prometheus and probes


class Probe:
    """Serves only GET /healthz, /readyz (each 200 or 503) and /metrics.

    /healthz: the event loop runs, so the worker need not be restarted. /readyz: the database
    has also answered recently.
    """

    def __init__(
        self, health: Callable[[], Mapping[str, object]], metrics_text: Callable[[], bytes | None]
    ) -> None:
        self._health = health
        self._metrics_text = metrics_text
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> int | None:
        """Listen; return the port (a free one for 0), or None if it is taken."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port)
        except OSError as error:
            logger.warning("no metrics and no health at %s:%d: %s", host, port, error)
            return None
        found: int = self._server.sockets[0].getsockname()[1]
        logger.info("metrics at http://%s:%d/metrics", host, found)
        return found

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, EOFError, asyncio.LimitOverrunError):
            async with asyncio.timeout(1.0):
                request = await reader.readuntil(b"\r\n\r\n")
                words = request.split(b"\r\n", 1)[0].split()
                path = words[1].split(b"?")[0] if len(words) > 1 else b""
                status, kind, body = self._answer(path)
                head = (
                    f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                )
                writer.write(head.encode() + body)
                await writer.drain()
        writer.close()

    def _answer(self, path: bytes) -> tuple[str, str, bytes]:
        question = {b"/healthz": "alive", b"/readyz": "ok"}.get(path)
        if question is not None:
            health = self._health()
            status = "200 OK" if health[question] else "503 Service Unavailable"
            return status, "application/json", msgspec.json.encode(health)
        plain = "text/plain; version=0.0.4; charset=utf-8"
        metrics = self._metrics_text() if path == b"/metrics" else None
        if metrics is not None:
            return "200 OK", plain, metrics
        return "404 Not Found", plain, b"/healthz, /readyz and /metrics are here\n"
