"""What is to be sent for one attempt: the endpoint's spec, its references resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from jobq_delivery.mask import Mask
from jobq_delivery.template import Rendering, as_text, exact

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from jobq_delivery.endpoint import Endpoint

__all__ = ["MAX_BYTES", "Message"]

MAX_BYTES: Final = 4 * 1024 * 1024
# What takes the whole input where the spec does not say what is sent.
BODIES: Final = {
    "HTTP": "body_template",
    "KAFKA": "value_template",
    "REDIS_STREAM": "fields_template",
}


class Attempt(Protocol):
    """What a message tells of a job: of a `JobContext`, or of one that is made up."""

    @property
    def job_id(self) -> UUID: ...
    @property
    def attempt(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def idempotency_key(self) -> str | None: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def run_at(self) -> datetime: ...
    @property
    def payload_text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Message:
    """An attempt's message.

    Attributes:
        job_id: the same for every attempt: receivers drop repeats by it.
        attempt: which attempt of the job this is.
        spec: as the endpoint's, with values in place of references.
        secrets: the secrets that it holds, by their names.
        mask: hides them.
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
        context: Attempt,
        limit: int = MAX_BYTES,
    ) -> Message:
        """Render an endpoint's spec for a job.

        Args:
            endpoint: its version that the job is delivered by.
            secrets: what it refers to, decrypted.
            context: the attempt.
            limit: how many bytes input, config and secrets may bring.

        Raises:
            TemplateError: something that a reference names is not there.
            TooLargeError: they bring more.
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
        """Where it goes, secrets masked."""
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


def job_of(context: Attempt) -> dict[str, Any]:
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
