"""Endpoints in the form that a worker needs, and a cache of them.

An attempt uses the endpoint, config and secrets as of its start; all attempts of an execution
use the same config.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from psycopg.rows import dict_row

from jobq.calls.call import Call
from jobq.client import AsyncClient
from jobq.registry.context import JobContext
from jobq_delivery.template import exact

if TYPE_CHECKING:
    from jobq_delivery.json_schema.input import InputSchema

MOST: Final = 10_000


@dataclass(frozen=True)
class Endpoint:
    """A version of an endpoint, with the config and the secrets that it refers to.

    Attributes:
        type: HTTP, KAFKA or REDIS_STREAM.
        spec: the target and the format; its texts are templates.
        version: version of the endpoint when the job was created.
        schema: a JSON Schema of the input, or None.
        config_entries: the config's values, or None.
        config_version: the config's version, or None.
        config_valid_from: when that version of the config was stored, or None.
        secrets: ciphertext and key id of each secret.
        max_concurrency: concurrent deliveries of one worker; None means the default.
        max_per_second: deliveries of one worker per second; None means no limit.
    """

    type: str
    spec: dict[str, Any]
    version: int
    schema: dict[str, Any] | None
    config_entries: dict[str, Any] | None
    config_version: int | None
    config_valid_from: datetime | None
    secrets: dict[str, dict[str, str]] | None
    max_concurrency: int | None
    max_per_second: float | None

    def serves(self, context: JobContext) -> bool:
        """Return whether an attempt uses this config.

        A later attempt uses the config of the first; this is certainly the same if it was
        stored before the job.
        """
        config_from = self.config_valid_from
        return context.attempt == 1 or config_from is None or config_from <= context.created_at

    @classmethod
    def read(cls, **columns: Any) -> Endpoint:  # noqa: ANN401 - of get_delivery()
        """Create one from the database's answer; spec and config keep all digits."""
        entries = columns["config_entries"]
        columns["spec"] = exact(columns["spec"])
        columns["config_entries"] = None if entries is None else exact(entries)
        return cls(**columns)

    @cached_property
    def input_schema(self) -> InputSchema | None:
        """The validator of input, or None."""
        if self.schema is None:
            return None
        from jobq_delivery.json_schema.input import InputSchema  # noqa: PLC0415 - memory

        return InputSchema(self.schema)

    @property
    def versions(self) -> dict[str, int | None]:
        """The versions that an attempt used, for its record."""
        return {"endpoint_version": self.version, "config_version": self.config_version}


class Endpoints:
    """Endpoints by kind and version; a version never changes, its config and secrets do."""

    def __init__(self, client: AsyncClient, lifetime: float) -> None:
        self._client = client
        self._lifetime = lifetime
        self._known: OrderedDict[tuple[str, int], tuple[float, Endpoint]] = OrderedDict()
        self._asking = asyncio.Lock()

    async def get(self, context: JobContext) -> Endpoint | None:
        """Return the endpoint for an attempt; None if its kind is not an endpoint."""
        known = self._find(context)
        if known is not None:
            return known
        async with self._asking:
            return self._find(context) or await self._ask(context)

    def _find(self, context: JobContext) -> Endpoint | None:
        if context.delivery_version is None:
            return None
        until, endpoint = self._known.get((context.kind, context.delivery_version), (0.0, None))
        if endpoint is None or time.monotonic() >= until or not endpoint.serves(context):
            return None
        return endpoint

    async def _ask(self, context: JobContext) -> Endpoint | None:
        """Query the database; does not cache a config that belongs to one execution."""
        is_later = context.attempt > 1
        version = context.delivery_version
        call = get_delivery(context.kind, version, context.job_id if is_later else None)
        endpoint: Endpoint | None = await self._client.run(call)
        if endpoint is not None and version is not None and not is_later:
            self._known[context.kind, version] = (time.monotonic() + self._lifetime, endpoint)
            self._known.move_to_end((context.kind, version))
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return endpoint


def get_delivery(kind: str, version: int | None, job_id: UUID | None) -> Call[Endpoint | None]:
    """Query everything that a delivery of a job needs; None if its kind is not an endpoint.

    Args:
        kind: the job's.
        version: the version of the job; None for a job that was created before its kind
            became an endpoint, which uses the present version.
        job_id: of a job in a later attempt, for the config of its first.
    """
    arguments = {"kind": kind, "delivery_version": version, "job_id": job_id}
    return Call(
        "get_delivery",
        arguments,
        lambda rows: Endpoint.read(**rows[0]) if rows else None,
        dict_row,
    )


def list_undeliverable(
    drivers: Sequence[str], key_ids: Sequence[str]
) -> Call[list[tuple[str, str, str | None, str | None]]]:
    """Query the endpoints that a worker cannot deliver with these drivers and keys.

    Returns:
        name and type of each, and if a key is missing, the secret and the key's id.
    """
    return Call("list_undeliverable", {"drivers": drivers, "key_ids": key_ids}, list)
