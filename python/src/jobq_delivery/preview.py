"""The preview of a delivery, with masked secrets, without sending it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from math import inf
from typing import Any, Final
from uuid import UUID

from jobq.errors import NotFound, PayloadInvalid
from jobq.registry.context import JobContext
from jobq.registry.outcomes import Permanent
from jobq_delivery.endpoint import Endpoint
from jobq_delivery.mask import MASK
from jobq_delivery.message import Message
from jobq_delivery.template import TemplateError, TooLargeError, as_text

NOBODY: Final = UUID(int=0)
NOWHERE: Final[Any] = None


def sample(kind: str, payload: str) -> JobContext:
    """Return the first attempt of a sample job, created now."""
    now = datetime.now(UTC)
    return JobContext(
        job_id=NOBODY,
        attempt=1,
        kind=kind,
        queue="default",
        metadata={},
        max_attempts=1,
        idempotency_key=None,
        run_at=now,
        created_at=now,
        deadline=inf,
        recorder=NOWHERE,
        payload_text=payload,
    )


def preview(name: str, endpoint: Endpoint | None, payload: str) -> dict[str, Any]:
    """Return what a delivery would send.

    Args:
        name: of the endpoint.
        endpoint: the version for a new job; None if the endpoint does not exist.
        payload: the input, as JSON.

    Returns:
        ``type``, and for HTTP ``method``, ``url``, ``headers`` and ``body``, for Kafka
        ``bootstrap_servers``, ``topic``, ``key``, ``value`` and ``headers``, for Redis
        ``redis_url`` and ``command``.

    Raises:
        NotFound: the endpoint does not exist.
        PayloadInvalid: a delivery would fail permanently; the code names the cause.
    """
    if endpoint is None:
        raise NotFound("endpoint not found", code="ENDPOINT_NOT_FOUND", detail=f"endpoint {name}")
    schema = endpoint.input_schema
    problem = schema.violation(json.loads(payload)) if schema is not None else None
    if problem is not None:
        raise refusal("INPUT_VALIDATION_FAILED", problem)
    secrets = dict.fromkeys(endpoint.secrets or {}, MASK)
    try:
        message = Message.of(endpoint, secrets, sample(name, payload))
        shown = SHOWN[endpoint.type](message)
    except TemplateError as error:
        raise refusal("TEMPLATE_RESOLUTION_FAILED", str(error)) from None
    except TooLargeError as error:
        raise refusal("MESSAGE_TOO_LARGE", str(error)) from None
    except Permanent as error:
        raise refusal(error.code, error.message) from None
    return {"type": endpoint.type, **shown}


def refusal(code: str, detail: str) -> PayloadInvalid:
    """Return the error of a delivery that would fail permanently."""
    return PayloadInvalid("a delivery would fail", code=code, detail=detail)


def http(message: Message) -> dict[str, Any]:
    """Show a request."""
    from jobq_delivery.http import head_of  # noqa: PLC0415 - a driver

    headers, content = head_of(message)
    if "sign_with" in message.spec:
        headers["webhook-signature"] = MASK
    return {
        "method": message.spec.get("method", "POST"),
        "url": sent(as_text(message.spec["url"])),
        "headers": headers,
        "body": content.decode(),
    }


def sent(url: str) -> str:
    """Return a URL as it is sent; unchanged before the path if a secret contains the host."""
    from jobq_delivery.http import target_of  # noqa: PLC0415 - a driver

    start = re.match(r"([^/?#]*//)?[^/?#]*", url)[0]  # type: ignore[index]
    if MASK not in start:
        place, host = target_of(url)
        return f"{place.scheme.decode()}://{host}{place.target.decode()}"
    rest = url.removeprefix(start)
    target = target_of(f"http://host{rest}")[0].target.decode()
    # A secret that is a whole address may include a path.
    return start + (target if rest.startswith("/") else target.removeprefix("/"))


def kafka(message: Message) -> dict[str, Any]:
    """Show a record."""
    from jobq_delivery.kafka import record_of  # noqa: PLC0415 - a driver

    record = record_of(message)
    return {
        "bootstrap_servers": as_text(message.spec["bootstrap_servers"]),
        "topic": record["topic"],
        "key": record["key"].decode() if "key" in record else None,
        "value": record["value"].decode() if "value" in record else None,
        "headers": {name: value.decode() for name, value in record["headers"]},
    }


def redis(message: Message) -> dict[str, Any]:
    """Show a command."""
    from jobq_delivery.redis_stream import entry  # noqa: PLC0415 - a driver

    return {
        "redis_url": as_text(message.spec["redis_url"]),
        "command": ["XADD", as_text(message.spec["stream"]), *entry(message)],
    }


SHOWN = {"HTTP": http, "KAFKA": kafka, "REDIS_STREAM": redis}
