"""Traces across the queue with OpenTelemetry, if installed (the extra ``otel``).

The enqueuer's trace is in the job's metadata as W3C ``traceparent``; each attempt is a span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

try:
    from opentelemetry import trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    HAS_OPENTELEMETRY = False
else:
    HAS_OPENTELEMETRY = True

if TYPE_CHECKING:
    from opentelemetry.trace import Span


def with_trace(metadata: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return metadata with the current trace, unless they already contain one."""
    if not HAS_OPENTELEMETRY or (metadata is not None and "traceparent" in metadata):
        return metadata
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return {**(metadata or {}), **carrier} if carrier else metadata


def is_on() -> bool:
    """Whether OpenTelemetry is set up in this process, so that spans are exported."""
    if not HAS_OPENTELEMETRY:
        return False
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@contextmanager
def attempt_span(job: Any, worker: str) -> Iterator[Span]:  # noqa: ANN401 - jobq.worker.queries.Job
    """Run an attempt in a span, a child of the span of the enqueuer, if its metadata name one."""
    carrier: dict[str, str] = {}
    with suppress(ValueError, RecursionError):
        metadata = msgspec.json.decode(job.metadata)
        given = {name: metadata.get(name) for name in ("traceparent", "tracestate")}
        carrier = {name: value for name, value in given.items() if isinstance(value, str)}
    attributes: dict[str, str | int] = {
        "messaging.system": "jobq",
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.job_id,
        "messaging.client.id": worker,
        "jobq.kind": job.kind,
        "jobq.attempt": job.attempt,
    }
    with trace.get_tracer("jobq").start_as_current_span(
        f"process {job.kind}",
        context=TraceContextTextMapPropagator().extract(carrier),
        kind=SpanKind.CONSUMER,
        attributes=attributes,
    ) as span:
        yield span


def note_failure(span: Span, code: str, error: str) -> None:
    """Record in its span that an attempt has failed."""
    span.set_attribute("error.type", code)
    span.set_status(Status(StatusCode.ERROR, error))
