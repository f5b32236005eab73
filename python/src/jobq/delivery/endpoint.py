"""Endpoints, as a worker delivers to them, and a cache of them."""

from __future__ import annotations

import time
from base64 import b64decode
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jobq.calls import Call
from jobq.models import record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from jobq.client import AsyncClient
    from jobq.delivery.secret import Keyring

__all__ = ["Endpoint", "Endpoints"]

LIFETIME: Final = 60.0
MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A version of an endpoint, with the config and the secrets that it refers to.

    Attributes:
        type: HTTP, KAFKA or REDIS_STREAM.
        spec: where to deliver to, and in what shape; its texts are templates.
        version: of the endpoint, as it was when the job was made.
        valid_from: since when jobs get this version.
        valid_until: jobs made from then on get another; None when there is none.
        schema: a JSON Schema of the input, or None.
        config_entries: the config's values, or None.
        config_version: the config's version, or None.
        secrets: of each the ciphertext, and the id of its key.
        max_concurrency: deliveries of one worker at a time; None is the default.
        max_per_second: deliveries of one worker in a second; None for any.
    """

    type: str
    spec: dict[str, Any]
    version: int
    valid_from: datetime
    valid_until: datetime | None
    schema: dict[str, Any] | None
    config_entries: dict[str, Any] | None
    config_version: int | None
    secrets: dict[str, dict[str, str]] | None
    max_concurrency: int | None
    max_per_second: float | None

    def holds_at(self, moment: datetime) -> bool:
        """Tell whether jobs made at a moment get this version."""
        return self.valid_from <= moment and (self.valid_until is None or moment < self.valid_until)

    def opened(self, keyring: Keyring) -> dict[str, str]:
        """Return its secrets.

        Raises:
            SecretKeyError: a key is missing or wrong.
        """
        return {
            name: keyring.decrypt(name, b64decode(sealed["ciphertext"]), sealed["key_id"])
            for name, sealed in (self.secrets or {}).items()
        }

    @property
    def versions(self) -> dict[str, int | None]:
        """The versions that an attempt ran with, for its record."""
        return {"endpoint_version": self.version, "config_version": self.config_version}


class Endpoints:
    """Endpoints by kind, each version kept for a minute.

    Args:
        client: asks the database.
        lifetime: seconds until an endpoint is asked for again, and so are its config and
            its secrets.
    """

    def __init__(self, client: AsyncClient, lifetime: float = LIFETIME) -> None:
        self._client = client
        self._lifetime = lifetime
        self._known: OrderedDict[tuple[str, int], tuple[float, Endpoint]] = OrderedDict()
        self._newest: dict[str, int] = {}

    async def get(self, kind: str, created_at: datetime) -> Endpoint | None:
        """Return the endpoint of a kind for a job made at a moment; None if it is none.

        Raises:
            JobqError: the database refuses, or does not answer.
        """
        now = time.monotonic()
        known = self._known.get((kind, self._newest.get(kind, 0)))
        if known and known[0] > now and known[1].holds_at(created_at):
            return known[1]
        endpoint: Endpoint | None = await self._client.run(get_delivery(kind, created_at))
        if endpoint is None:
            return None
        key = (kind, endpoint.version)
        self._newest[kind] = endpoint.version
        self._known[key] = (now + self._lifetime, endpoint)
        if len(self._known) > MOST:
            (dropped, _), _ = self._known.popitem(last=False)
            self._newest.pop(dropped, None)
        return endpoint


def get_delivery(kind: str, created_at: datetime) -> Call[Endpoint | None]:
    """Ask for all that a delivery of a job needs; None when its kind is no endpoint."""
    arguments: Mapping[str, object] = {"kind": kind, "created_at": created_at}
    return Call("get_delivery", arguments, lambda rows: rows[0] if rows else None, record(Endpoint))
