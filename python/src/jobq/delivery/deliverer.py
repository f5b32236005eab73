"""The handler of every endpoint: from a claimed job to what its target answered."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from jobq.client import AsyncClient
from jobq.delivery.address import Guard
from jobq.delivery.connections import trusting
from jobq.delivery.endpoint import Endpoint, Endpoints
from jobq.delivery.limit import Limit
from jobq.delivery.message import Message
from jobq.delivery.secret import Keyring, SecretKeyError, Vault
from jobq.delivery.template import TemplateError
from jobq.errors import InvalidArgument
from jobq.outcomes import Permanent, Retry, Unable

if TYPE_CHECKING:
    from jobq.context import JobContext
    from jobq.models import Json

__all__ = ["Deliverer"]

POOL_SIZE: Final = 2
CONFIG_CACHE: Final = "JOBQ_CONFIG_CACHE_SECONDS"
SECRET_CACHE: Final = "JOBQ_SECRET_CACHE_SECONDS"  # noqa: S105 - a setting's name


class Sender(Protocol):
    """What sends messages of one type."""

    async def send(self, message: Message) -> dict[str, Json]:
        """Send a message and return what came of it."""

    async def close(self) -> None:
        """Close every connection."""


class Deliverer:
    """Delivers jobs of endpoints; its method `deliver` is a handler of any kind.

    Args:
        database_url: where the endpoints are.
        keyring: the keys of secrets; by default those of the environment.
        guard: what HTTP deliveries may connect to; by default public addresses, and what
            JOBQ_DELIVERY_ALLOW allows.
        is_pooled: whether a pooler in transaction mode is before the database.

    Raises:
        SecretKeyError: the keys of the environment are none.
        InvalidArgument: JOBQ_DELIVERY_CA_FILE names no file of certificates, or a lifetime
            of the environment is no number.
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
        self._endpoints = Endpoints(self._client, seconds(CONFIG_CACHE, 60.0))
        self._vault = Vault(keyring or Keyring.from_environment(), seconds(SECRET_CACHE, 300.0))
        self._guard = guard or Guard.from_environment()
        self._trust = trusting()
        self._limits: dict[str, tuple[int, Limit]] = {}
        self._senders: dict[str, Sender] = {}

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
            Retry: this attempt failed; its code says how.
            Permanent: every attempt would: UNKNOWN_KIND, INPUT_VALIDATION_FAILED,
                TEMPLATE_RESOLUTION_FAILED, REQUEST_INVALID, ADDRESS_REFUSED.
            Snooze: it is not this endpoint's turn.
            Unable: this worker lacks a key or a driver; nothing was sent.
        """
        endpoint = await self._endpoints.get(context)
        if endpoint is None:
            raise Permanent("UNKNOWN_KIND", f"no handler and no endpoint of kind {context.kind}")
        await self._check(endpoint, payload)
        message = self._message(endpoint, payload, context)
        try:
            async with self._limit(context.kind, endpoint).turn():
                output = await self._sender(endpoint.type).send(message)
        except Retry as failure:
            await self._note(context, endpoint, failure.code)
            failure.message = message.masked(failure.message)
            raise
        except Permanent as failure:
            await self._note(context, endpoint, failure.code)
            raise
        masked: dict[str, Any] = message.masked(output)
        return {**masked, **endpoint.versions}

    async def _check(self, endpoint: Endpoint, payload: object) -> None:
        """Refuse input that does not fit, beside the event loop.

        Raises:
            Permanent: it does not fit.
        """
        schema = endpoint.input_schema
        if schema is None:
            return
        problem = await asyncio.to_thread(schema.violation, payload)
        if problem is not None:
            raise Permanent("INPUT_VALIDATION_FAILED", problem)

    def _message(self, endpoint: Endpoint, payload: object, context: JobContext) -> Message:
        """Render the message of a job.

        Raises:
            Permanent: a reference cannot be resolved.
            Unable: this worker does not have the key of a secret.
            Retry: a secret cannot be decrypted with its key.
        """
        try:
            secrets = self._vault.open(endpoint.secrets or {})
            return Message.of(endpoint, secrets, context.job_id, payload)
        except TemplateError as error:
            raise Permanent("TEMPLATE_RESOLUTION_FAILED", str(error)) from None
        except SecretKeyError as error:
            if error.code == SecretKeyError.code:
                raise Unable(error.code, str(error)) from None
            raise Retry(str(error), code=error.code) from None

    async def _note(self, context: JobContext, endpoint: Endpoint, code: str) -> None:
        """Log which versions a failed attempt ran with."""
        config = endpoint.config_version
        await context.log(
            "WARN",
            f"{code} with version {endpoint.version} of the endpoint"
            + (f" and version {config} of its config" if config is not None else ""),
        )

    def _limit(self, kind: str, endpoint: Endpoint) -> Limit:
        """Return the limit of an endpoint, as the newest version that came by says."""
        version, limit = self._limits.get(kind, (0, None))
        if limit is None or version < endpoint.version:
            rule = (endpoint.max_concurrency, endpoint.max_per_second)
            limit = limit if limit is not None and limit.rule == rule else Limit(*rule)
            self._limits[kind] = endpoint.version, limit
        return limit

    def _sender(self, kind: str) -> Sender:
        """Return what sends messages of a type.

        Raises:
            Unable: this worker has no driver for it.
        """
        if kind not in self._senders:
            try:
                self._senders[kind] = self._make_sender(kind)
            except ImportError as error:
                raise Unable("NO_DRIVER", f"no driver for {kind}: {error}") from error
        return self._senders[kind]

    def _make_sender(self, kind: str) -> Sender:
        """Make what sends messages of a type; drivers are imported when they are needed.

        Raises:
            ImportError: it is not installed.
            Unable: this version knows no such type.
        """
        if kind == "HTTP":
            from jobq.delivery.http import HttpSender  # noqa: PLC0415 - a driver

            return HttpSender(self._guard, self._trust)
        if kind == "KAFKA":
            from jobq.delivery.kafka import KafkaSender  # noqa: PLC0415 - a driver

            return KafkaSender()
        if kind == "REDIS_STREAM":
            from jobq.delivery.redis_stream import RedisStreamSender  # noqa: PLC0415 - a driver

            return RedisStreamSender()
        raise Unable("NO_DRIVER", f"this version of the worker cannot deliver to {kind}")


def seconds(name: str, default: float) -> float:
    """Return a lifetime that the environment may set.

    Raises:
        InvalidArgument: it is set to what is no number of seconds.
    """
    text = os.environ.get(name) or str(default)
    if not text.replace(".", "", 1).isdecimal():
        raise InvalidArgument("a lifetime must be a number of seconds", detail=f"{name} {text}")
    return float(text)
