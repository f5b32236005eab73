"""What is to be sent for one attempt: the endpoint's spec, its references resolved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from jobq.delivery.template import render

if TYPE_CHECKING:
    from uuid import UUID

    from jobq.delivery.endpoint import Endpoint
    from jobq.models import Json

__all__ = ["Message"]

MASK: Final = "***"


@dataclass(frozen=True, slots=True)
class Message:
    """An attempt's message.

    Attributes:
        job_id: the same for every attempt: receivers drop repeats by it.
        spec: as the endpoint's, with values in place of references.
        secrets: the secrets that it holds, by their names.
    """

    job_id: UUID
    spec: dict[str, Any]
    secrets: dict[str, str]

    @classmethod
    def of(
        cls, endpoint: Endpoint, secrets: dict[str, str], job_id: UUID, payload: Json
    ) -> Message:
        """Render an endpoint's spec for a job.

        Raises:
            TemplateError: something that a reference names is not there.
        """
        scope = {"input": payload, "config": endpoint.config_entries or {}, "secret": secrets}
        return cls(job_id, render(endpoint.spec, scope), secrets)

    def seconds(self, default_ms: int) -> float:
        """Return its time limit."""
        return float(self.spec.get("timeout_ms", default_ms)) / 1000

    def masked(self, value: Json) -> Json:
        """Return what may be stored: a value without the message's secrets.

        They are found as they are, and as JSON and URLs write them.
        """
        match value:
            case str():
                for secret in self.secrets.values():
                    for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe="")):
                        if form:
                            value = value.replace(form, MASK)
                return value
            case dict():
                return {name: self.masked(item) for name, item in value.items()}
            case list():
                return [self.masked(item) for item in value]
            case _:
                return value
