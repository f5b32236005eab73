"""Endpoints: where jobs of a kind are delivered, and in what shape; pause, resume and test."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from jobq.calls.arguments import RetryStrategy
from jobq.models import EndpointStats
from jobq_http import examples
from jobq_http.call import Call, encoded
from jobq_http.definitions import SHOWN, Definition, DefinitionName, Named, definition
from jobq_http.operation import section
from jobq_http.queues import Pause
from jobq_http.values import (
    Attempts,
    Delay,
    EndpointType,
    Json,
    JsonMembers,
    Moment,
    Name,
    Request,
    RequestPart,
    Share,
    answer,
    answer_of,
    argument,
    request,
    text,
)

Text = {"type": "string", "minLength": 1}
Template = {"description": "JSON with {{input.*}}, {{job.*}}, {{config.*}} and {{secret.*}}."}
Texts = {"type": "object", "additionalProperties": {"type": "string"}}
TimeLimit = {"type": "integer", "minimum": 1, "maximum": 3_600_000}
Flag = {"type": "boolean"}
FIELDS = {
    "HTTP": {
        "url": {**Text, "maxLength": 8192, "description": "Input is allowed after the host."},
        "method": {"enum": ["GET", "POST", "PUT", "PATCH", "DELETE"], "default": "POST"},
        "headers": Texts,
        "body_template": Template,
        "timeout_ms": {**TimeLimit, "default": 10_000},
        "expected_status_codes": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "integer", "minimum": 200, "maximum": 599},
            "default": [200, 201, 202, 204],
        },
        "sign_with": {**Text, "description": "The name of a secret."},
    },
    "KAFKA": {
        "bootstrap_servers": {**Text, "description": "Hosts with ports, separated by commas."},
        "topic": Text,
        "key_template": Text,
        "value_template": Template,
        "headers": Texts,
        "acks": {"enum": ["all", "1", "0"], "default": "all"},
        "timeout_ms": {**TimeLimit, "default": 10_000},
        "options": {**Texts, "description": "The librdkafka settings that endpoints can set."},
    },
    "REDIS_STREAM": {
        "redis_url": Text,
        "stream": Text,
        "fields_template": Template,
        "max_len": {"type": ["integer", "string"], "description": "A number, or a template."},
        "approximate_trimming": {**Flag, "default": True},
        "deliver_once": {**Flag, "description": "A repeated attempt adds no second entry."},
        "timeout_ms": {**TimeLimit, "default": 3000},
    },
}
NEEDED = {
    "HTTP": ["url"],
    "KAFKA": ["bootstrap_servers", "topic"],
    "REDIS_STREAM": ["redis_url", "stream"],
}
Spec = Annotated[
    JsonMembers,
    Meta(
        description="Target and message format for HTTP, KAFKA or REDIS_STREAM, by `type`.",
        extra_json_schema={
            "anyOf": [
                {"title": kind, "required": NEEDED[kind], "properties": fields}
                for kind, fields in FIELDS.items()
            ]
        },
    ),
]


class GivenRetryPolicy(Request):
    """Retries of a delivery; null means the queue's."""

    max_attempts: Attempts | None = 1
    backoff: RetryStrategy | None = "exponential"
    initial_delay_ms: Delay | None = 1000
    max_delay_ms: Delay | None = 60000
    jitter: Annotated[float, Meta(ge=0, le=1)] | None = 0.25


class EndpointChange(Named, kw_only=True):
    """The target and message format for jobs of a kind."""

    type: EndpointType
    spec: Spec
    payload_spec: DefinitionName | None = None
    config: DefinitionName | None = None
    retry_policy: GivenRetryPolicy = msgspec.field(default_factory=GivenRetryPolicy)
    queue: Name | None = None
    max_concurrency: Annotated[float, Meta(ge=1, le=10_000, multiple_of=1)] | None = None
    max_per_second: Annotated[float, Meta(ge=0.001, le=1_000_000)] | None = None
    paused_at: Annotated[Moment | None, SHOWN] = None
    pause_reason: Annotated[str | None, SHOWN] = None

    def arguments(self) -> dict[str, Any]:
        """Return what it declares; null in the retry policy is passed on."""
        given = super().arguments()
        del given["retry_policy"]
        policy = msgspec.structs.asdict(self.retry_policy)
        given["max_attempts"] = policy.pop("max_attempts")
        policy["strategy"] = policy.pop("backoff")
        return given | dict(argument(f"retry_{name}", value) for name, value in policy.items())


RetryPolicy = answer(
    "RetryPolicy",
    "Retries of a delivery.",
    "max_attempts? backoff? initial_delay_ms? max_delay_ms? jitter?",
)
Endpoint = answer(
    "Endpoint",
    "The target and message format for jobs of a kind.",
    "type payload_spec? config? spec retry_policy queue? max_concurrency? max_per_second?"
    " paused_at? pause_reason?",
    Definition,
    type=EndpointType,
    retry_policy=RetryPolicy,
)
EndpointPausing = answer("EndpointPausing", "Whether an endpoint is paused.", "endpoint is_paused")
Resumed = answer(
    "Resumed",
    "A resumed endpoint, and how many jobs had been postponed.",
    "jobs",
    EndpointPausing,
)
Period = request(
    "Period",
    "How far to look back.",
    "period_ms",
    RequestPart,
    period_ms=Annotated[int, Meta(ge=1000, le=2_592_000_000)],
    defaults={"period_ms": 3_600_000},
)
Stats = answer_of(EndpointStats, "Stats", success_rate=Share | None)
EndpointPreview = answer(
    "EndpointPreview",
    "A message, secrets masked: a request, a record or a command, by its type.",
    "type method~ url~ headers~ body~ bootstrap_servers~ topic~ key?~ value?~ redis_url~ command*~",
    type=EndpointType,
    headers=dict[str, str],
    command=str,
)
Test = answer("Test", "The test job.", "job_id")


class Sample(Request):
    """The input of a test delivery."""

    input: Json | UnsetType = UNSET

    def arguments(self) -> dict[str, Any]:
        """Return what jobq_internal.test_endpoint() takes."""
        return {"payload": "{}" if self.input is UNSET else text(self.input)}


async def preview_endpoint(call: Call) -> Response:
    """Preview a delivery, with masked secrets."""
    name = call.text("name")
    payload = (await call.body(Sample)).arguments()["payload"]
    rows = await call.fetch("get_delivery", kind=name)
    from jobq_delivery.endpoint import Endpoint as Delivery  # noqa: PLC0415 - an extra
    from jobq_delivery.preview import preview  # noqa: PLC0415 - an extra

    found = Delivery.read(**decoded(rows[0]._asdict())) if rows else None
    return encoded(await asyncio.to_thread(preview, name, found, payload))


def decoded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of get_delivery() with its JSON read, as the client has it."""
    json = {name: row[name] and msgspec.json.decode(row[name]) for name in ("schema", "secrets")}
    return {**row, **json}


NAME = {"name": "endpoint"}
MISSING = "ENDPOINT_NOT_FOUND"
of = section("definitions")
# fmt: off
OPERATIONS = (
    *definition(
        "/endpoints", "endpoint", "an endpoint", EndpointChange, Endpoint, examples.ENDPOINT,
        "INVALID_PAYLOAD_SPEC_REF INVALID_CONFIG_REF TEMPLATE_RESOLUTION_FAILED INVALID_SCHEMA"
        " KIND_EXISTS"),
    of("GET /endpoints/{name}/stats", "endpoint_stats",
       "Show recent deliveries to an endpoint: success rate, latency, failures",
       "read operate", Stats, query=Period, names=NAME, errors=MISSING),
    of("POST /endpoints/{name}/pause", "pause_endpoint",
       "Stop deliveries to an endpoint; running ones continue, and its jobs wait",
       "operate", EndpointPausing, body=Pause, names=NAME, errors=MISSING,
       always={"is_paused": True},
       examples={"why": {"reason": "the mail provider is down"}}),
    of("POST /endpoints/{name}/resume", "resume_endpoint", "Resume deliveries to an endpoint",
       "operate", Resumed, names=NAME, value="jobs", always={"is_paused": False}, errors=MISSING),
    of("POST /endpoints/{name}/preview", preview_endpoint,
       "Preview a delivery with masked secrets, without sending it",
       "operate", EndpointPreview, body=Sample,
       errors=f"{MISSING} INPUT_VALIDATION_FAILED TEMPLATE_RESOLUTION_FAILED REQUEST_INVALID"
              " DELIVERY_MISSING",
       examples={"one": {"input": {"user_id": "u1"}}}),
    of("POST /endpoints/{name}/test", "test_endpoint",
       "Deliver one test job at once, even if the endpoint is paused",
       "operate", Test, status=201, body=Sample, names=NAME, value="job_id",
       errors=f"{MISSING} INPUT_VALIDATION_FAILED QUEUE_FULL",
       examples={"one": {"input": {"user_id": "u1"}}}),
)
# fmt: on
