"""Endpoints: where jobs of a kind are delivered, and in what shape."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from jobq.http import examples
from jobq.http.definitions import DefinitionName, Named, Sort
from jobq.http.operation import text
from jobq.http.page import Next
from jobq.http.values import (
    Attempts,
    EndpointType,
    JsonMembers,
    JsonObject,
    Moment,
    Name,
    Request,
)

Text = {"type": "string", "minLength": 1}
Template = {"description": "JSON with {{input.*}}, {{job.*}}, {{config.*}} and {{secret.*}}."}
Texts = {"type": "object", "additionalProperties": {"type": "string"}}
Spec = Annotated[
    JsonMembers,
    Meta(
        description="Where to, and in what shape: of HTTP, KAFKA or REDIS_STREAM, by `type`.",
        extra_json_schema={
            "anyOf": [
                {
                    "title": "HTTP",
                    "required": ["url"],
                    "properties": {
                        "url": Text,
                        "method": Text,
                        "headers": Texts,
                        "body_template": Template,
                    },
                },
                {
                    "title": "KAFKA",
                    "required": ["bootstrap_servers", "topic"],
                    "properties": {
                        "bootstrap_servers": Text,
                        "topic": Text,
                        "key_template": Text,
                        "value_template": Template,
                        "headers": Texts,
                    },
                },
                {
                    "title": "REDIS_STREAM",
                    "required": ["redis_url", "stream"],
                    "properties": {
                        "redis_url": Text,
                        "stream": Text,
                        "fields_template": Template,
                    },
                },
            ]
        },
    ),
]
Delay = Annotated[float, Meta(ge=0, le=31_536_000_000, multiple_of=1)]


class GivenRetryPolicy(Request):
    """How often, and how far apart, a delivery is tried."""

    max_attempts: Attempts = 1
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    initial_delay_ms: Delay = 1000
    max_delay_ms: Delay = 60000


class EndpointChange(Named, kw_only=True):
    """Where jobs of a kind are delivered, and in what shape."""

    type: EndpointType
    spec: Spec
    payload_spec: DefinitionName | None = None
    config: DefinitionName | None = None
    retry_policy: GivenRetryPolicy = msgspec.field(default_factory=GivenRetryPolicy)
    queue: Name | None = None
    max_concurrency: Annotated[float, Meta(ge=1, le=10_000, multiple_of=1)] | None = None
    max_per_second: Annotated[float, Meta(ge=0.001, le=1_000_000)] | None = None

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_endpoint() takes."""
        policy = self.retry_policy
        return {
            "type": self.type,
            "spec": text(self.spec),
            "payload_spec": self.payload_spec,
            "config": self.config,
            "max_attempts": policy.max_attempts,
            "retry_strategy": policy.backoff,
            "retry_initial_delay": timedelta(milliseconds=policy.initial_delay_ms),
            "retry_max_delay": timedelta(milliseconds=policy.max_delay_ms),
            "queue": self.queue,
            "max_concurrency": self.max_concurrency,
            "max_per_second": self.max_per_second,
        }


class NewEndpoint(EndpointChange, kw_only=True):
    """Where jobs of a kind are delivered, and in what shape, with its name."""

    name: DefinitionName


class RetryPolicy(Struct):
    """How often, and how far apart, a delivery is tried."""

    max_attempts: int | None
    backoff: str | None
    initial_delay_ms: int | None
    max_delay_ms: int | None


class Endpoint(Struct):
    """Where jobs of a kind are delivered, and in what shape."""

    name: str
    type: EndpointType
    payload_spec: str | None
    config: str | None
    spec: JsonObject
    retry_policy: RetryPolicy
    queue: str | None
    max_concurrency: int | None
    max_per_second: float | None
    version: int
    created_at: Moment
    updated_at: Moment


class EndpointPage(Struct):
    """A page of endpoints, by name."""

    items: list[Endpoint]
    cursor: Next


OPERATIONS = Sort(
    "/endpoints",
    "endpoint",
    "an endpoint",
    NewEndpoint,
    EndpointChange,
    Endpoint,
    EndpointPage,
    examples.ENDPOINT,
    [
        "INVALID_PAYLOAD_SPEC_REF",
        "INVALID_CONFIG_REF",
        "TEMPLATE_RESOLUTION_FAILED",
        "INVALID_SCHEMA",
    ],
).operations()
