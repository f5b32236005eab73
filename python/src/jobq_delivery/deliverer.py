"""The handler of every endpoint: from a claimed job to the target's answer."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import os
import time
import traceback
from collections import defaultdict
from contextlib import nullcontext, suppress
from typing import Any, Final, Protocol, Self

from jobq.client import AsyncClient
from jobq.errors import InvalidArgument, NotDeployed
from jobq.models import Json
from jobq.registry.context import JobContext
from jobq.registry.outcomes import Permanent, Retry, Snooze, Unable
from jobq_delivery.address import Guard
from jobq_delivery.endpoint import Endpoint, Endpoints, list_undeliverable
from jobq_delivery.keyring import Keyring, SecretKeyError, Vault
from jobq_delivery.limit import Limit
from jobq_delivery.message import MAX_BYTES, Message
from jobq_delivery.template import TemplateError, TooLargeError, as_json
from jobq_delivery.trust import trusting

logger = logging.getLogger("jobq.delivery")

POOL_SIZE: Final = 2
CONFIG_CACHE: Final = "JOBQ_CONFIG_CACHE_SECONDS"
SECRET_CACHE: Final = "JOBQ_SECRET_CACHE_SECONDS"  # noqa: S105 - a setting's name
MESSAGE_BYTES: Final = "JOBQ_DELIVERY_MAX_BODY_BYTES"
MAX_LOGGED: Final = 2048
DELIVERED: Final = "delivered"
# The package that each type requires, and what sends its messages.
DRIVERS: Final = {
    "HTTP": ("httpx", "jobq_delivery.http", "HttpSender"),
    "KAFKA": ("confluent_kafka", "jobq_delivery.kafka", "KafkaSender"),
    "REDIS_STREAM": ("redis", "jobq_delivery.redis_stream", "RedisStreamSender"),
}


class Sender(Protocol):
    """What sends messages of one type."""

    async def send(self, message: Message) -> dict[str, Json]:
        """Send a message and return the result."""

    async def close(self) -> None:
        """Close every connection."""


class Deliverer:
    """Delivers jobs of endpoints; its method `deliver` is a handler of any kind.

    Args:
        database_url: the database with the endpoints.
        keyring: the keys of secrets; by default those of the environment.
        guard: the allowed addresses; by default public addresses, and those of
            JOBQ_DELIVERY_ALLOW.
        is_pooled: whether the database is behind a pooler in transaction mode.

    Raises:
        SecretKeyError: the keys in the environment are invalid.
        InvalidArgument: JOBQ_DELIVERY_CA_FILE is not a file of certificates, or a lifetime
            or limit in the environment is not a number.
    """

    def __init__(
        self,
        database_url: str,
        *,
        keyring: Keyring | None = None,
        guard: Guard | None = None,
        is_pooled: bool = False,
    ) -> None:
        self._client = AsyncClient(database_url, pool_size=POOL_SIZE, is_pooled=is_pooled)
        self._endpoints = Endpoints(self._client, number(CONFIG_CACHE, 60.0))
        self._vault = Vault(keyring or Keyring.from_environment(), number(SECRET_CACHE, 300.0))
        self._guard = guard or Guard.from_environment()
        self._trust = trusting()
        self._limit_bytes = int(number(MESSAGE_BYTES, MAX_BYTES))
        self._limits: defaultdict[str, Limit] = defaultdict(Limit)
        self._senders: dict[str, Sender] = {}
        self._broken: set[str] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for sender in self._senders.values():
            await sender.close()
        await self._client.close()

    async def deliver(self, payload: object, context: JobContext) -> dict[str, Any]:
        """Deliver a job, and return the output and the versions that it ran with.

        The output is, for HTTP, ``status_code`` and ``body``, for Kafka ``partition`` and
        ``offset``, for Redis ``message_id`` and ``stream``.

        Raises:
            Retry: this attempt failed; the code names the cause.
            Permanent: every attempt would fail: INPUT_VALIDATION_FAILED,
                TEMPLATE_RESOLUTION_FAILED, MESSAGE_TOO_LARGE, REQUEST_INVALID,
                ADDRESS_REFUSED.
            Snooze: the limit of the endpoint is reached.
            Unable: this worker lacks a key or a driver, or cannot find the endpoint
                (UNKNOWN_KIND); nothing was sent.
        """
        endpoint = None
        with suppress(NotDeployed):  # only the core is installed
            endpoint = await self._endpoints.get(context)
        if endpoint is None:
            raise Unable("UNKNOWN_KIND", "no handler and no endpoint of this kind", in_=0)
        await self._check(endpoint, payload)
        secrets = self._secrets(endpoint)
        try:
            message = Message.of(endpoint, secrets, context, self._limit_bytes)
        except TemplateError as error:
            raise Permanent("TEMPLATE_RESOLUTION_FAILED", str(error)) from None
        except TooLargeError as error:
            raise Permanent("MESSAGE_TOO_LARGE", str(error)) from None
        started = time.monotonic()
        try:
            # The database enforces the limits that endpoints declare.
            is_limited = endpoint.max_concurrency is not None
            async with nullcontext() if is_limited else self._limits[context.kind].turn():
                output = await self._sender(endpoint.type).send(message)
        except (Snooze, Unable):
            raise
        except Exception as error:
            failure = message.mask.failure(error)
            if not isinstance(error, Retry | Permanent):
                logger.error("%s", message.mask.text(traceback.format_exc()))  # noqa: TRY400
            answer = getattr(error, "answer", None) or failure.message
            note(context, endpoint, message, in_time(failure.code, started), answer)
            raise failure from None
        masked: dict[str, Any] = message.mask.json(output)
        answer = masked.get("body", as_json(masked).decode())
        note(context, endpoint, message, in_time(DELIVERED, started), answer)
        return {**masked, **endpoint.versions}

    async def beyond(self) -> dict[str, tuple[str, str]]:
        """Return the endpoints that this worker cannot deliver, each with a code and the reason."""
        drivers = [kind for kind in DRIVERS if kind not in self._broken and has_driver(kind)]
        rows = await self._client.run(list_undeliverable(drivers, self._vault.key_ids))
        return {
            endpoint: ("NO_DRIVER", f"no driver for {kind}")
            if secret is None
            else (SecretKeyError.code, f"the key of secret {secret} is not there: {key_id}")
            for endpoint, kind, secret, key_id in rows
        }

    async def _check(self, endpoint: Endpoint, payload: object) -> None:
        """Validate input, outside the event loop."""
        schema = endpoint.input_schema
        if schema is None:
            return
        problem = await asyncio.to_thread(schema.violation, payload)
        if problem is not None:
            raise Permanent("INPUT_VALIDATION_FAILED", problem)

    def _secrets(self, endpoint: Endpoint) -> dict[str, str]:
        """Return the secrets that an endpoint refers to."""
        try:
            return self._vault.open(endpoint.secrets or {})
        except SecretKeyError as error:
            if error.code == SecretKeyError.code:
                raise Unable(error.code, str(error), in_=0) from None
            raise Retry(str(error), code=error.code) from None

    def _sender(self, kind: str) -> Sender:
        """Return the sender for messages of a type; drivers are imported when they are needed."""
        if kind not in self._senders:
            if kind not in DRIVERS:
                text = f"this version of the worker cannot deliver to {kind}"
                raise Unable("NO_DRIVER", text, in_=0)
            _, module, name = DRIVERS[kind]
            try:
                sender = getattr(importlib.import_module(module), name)
            except ImportError as error:
                self._broken.add(kind)
                raise Unable("NO_DRIVER", f"no driver for {kind}: {error}", in_=0) from error
            others = [self._trust] if kind == "HTTP" else []
            self._senders[kind] = sender(self._guard, *others)
        return self._senders[kind]


def has_driver(kind: str) -> bool:
    """Return whether the driver of a type is installed, without importing it."""
    try:
        return importlib.util.find_spec(DRIVERS[kind][0]) is not None
    except (ImportError, ValueError):
        return False


def in_time(outcome: str, started: float) -> str:
    """Return a result and the time that it took since a monotonic time."""
    return f"{outcome} in {round((time.monotonic() - started) * 1000)} ms"


def note(
    context: JobContext, endpoint: Endpoint, message: Message, outcome: str, answer: str
) -> None:
    """Log the target, the outcome, the duration and the response."""
    config = endpoint.config_version
    context.log(
        "INFO" if outcome.startswith(DELIVERED) else "WARN",
        f"{message.place}: {outcome}, attempt {context.attempt}, "
        f"version {endpoint.version} of the endpoint"
        + (f", version {config} of its config" if config is not None else "")
        + f"\n{message.mask.text(answer)[:MAX_LOGGED]}",
    )


def number(name: str, default: float) -> float:
    """Return a number from the environment, or its default."""
    text = os.environ.get(name) or str(default)
    if not text.replace(".", "", 1).isdecimal():
        raise InvalidArgument(
            "a lifetime or a limit must be a number from 0 on", detail=f"{name} {text}"
        )
    return float(text)
