"""The message of one attempt: the endpoint's spec with resolved references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from jobq.registry.context import JobContext
from jobq_delivery.endpoint import Endpoint
from jobq_delivery.mask import Mask
from jobq_delivery.template import Rendering, as_text, exact

MAX_BYTES: Final = 4 * 1024 * 1024
# The field that contains the whole input if the spec does not set it.
BODIES: Final = {
    "HTTP": "body_template",
    "KAFKA": "value_template",
    "REDIS_STREAM": "fields_template",
}


@dataclass(frozen=True, slots=True)
class Message:
    """An attempt's message.

    Attributes:
        job_id: the same in every attempt, so that receivers can detect repeats.
        attempt: number of the attempt.
        spec: the endpoint's spec with values instead of references.
        secrets: the secrets in it, by name.
        mask: masks them.
    """

    job_id: UUID
    attempt: int
    spec: dict[str, Any]
    secrets: dict[str, str]
    mask: Mask

    @classmethod
    def of(
        cls,
        endpoint: Endpoint,
        secrets: dict[str, str],
        context: JobContext,
        limit: int = MAX_BYTES,
    ) -> Message:
        """Render an endpoint's spec for a job.

        Input, config and secrets may bring `limit` bytes. Errors are those of `Rendering`.
        """
        scope = {
            "input": exact(context.payload_text),
            "config": endpoint.config_entries or {},
            "secret": secrets,
            "job": job_of(context),
        }
        rendering = Rendering(scope, limit)
        spec = {BODIES[endpoint.type]: "{{input}}", **endpoint.spec}
        if endpoint.type == "HTTP" and spec.get("method") in {"GET", "DELETE"}:
            spec = endpoint.spec
        rendered = {
            name: rendering.url(value) if name == "url" else rendering.value(value)
            for name, value in spec.items()
        }
        return cls(context.job_id, context.attempt, rendered, secrets, Mask(secrets.values()))

    @property
    def place(self) -> str:
        """Its target, with masked secrets."""
        spec = self.spec
        if "url" in spec:
            text = f"{spec.get('method', 'POST')} {as_text(spec['url'])}"
        elif "stream" in spec:
            text = f"stream {as_text(spec['stream'])}"
        else:
            text = f"topic {as_text(spec['topic'])}"
        return self.mask.text(text)

    def seconds(self, default_ms: int) -> float:
        """Return its time limit."""
        return float(self.spec.get("timeout_ms", default_ms)) / 1000


def job_of(context: JobContext) -> dict[str, Any]:
    """Return what ``{{job.*}}`` refers to."""
    return {
        "id": str(context.job_id),
        "attempt": context.attempt,
        "created_at": context.created_at.isoformat(),
        "run_at": context.run_at.isoformat(),
        "endpoint": context.kind,
        "queue": context.queue,
        "idempotency_key": context.idempotency_key,
    }
