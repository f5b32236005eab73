"""Traces across the queue with OpenTelemetry, if installed (the extra ``otel``).

The enqueuer's trace is in the job's metadata as W3C ``traceparent``; each attempt is a span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

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


class Attempted(Protocol):
    """The properties of an attempt that its span has."""

    queue: str
    job_id: str
    kind: str
    attempt: int
    metadata: str


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
def attempt_span(held: Attempted, worker: str) -> Iterator[Span]:
    """Run an attempt in a span, a child of the enqueuer's span."""
    carrier = _carrier_of(held)
    attributes: dict[str, str | int] = {
        "messaging.system": "jobq",
        "messaging.operation.type": "process",
        "messaging.destination.name": held.queue,
        "messaging.message.id": held.job_id,
        "messaging.client.id": worker,
        "jobq.kind": held.kind,
        "jobq.attempt": held.attempt,
    }
    with trace.get_tracer("jobq").start_as_current_span(
        f"process {held.kind}",
        context=TraceContextTextMapPropagator().extract(carrier),
        kind=SpanKind.CONSUMER,
        attributes=attributes,
    ) as span:
        yield span


def _carrier_of(held: Attempted) -> dict[str, str]:
    """Return the trace in a job's metadata, if any."""
    try:
        metadata = msgspec.json.decode(held.metadata)
    except (ValueError, RecursionError):
        return {}
    return {
        name: value
        for name in ("traceparent", "tracestate")
        if isinstance(value := metadata.get(name), str)
    }


def note_failure(span: Span, code: str, error: str) -> None:
    """Record in its span that an attempt has failed."""
    span.set_attribute("error.type", code)
    span.set_status(Status(StatusCode.ERROR, error))
