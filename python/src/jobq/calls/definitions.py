"""Calls that define payload specs, configs, secrets and endpoints.

Payload specs and secrets need the extra ``delivery``, which checks and encrypts them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol
from uuid import UUID

from jobq.calls.arguments import as_jsonb
from jobq.calls.call import Call, first, nothing, scalar
from jobq.models import EndpointStats, Json, record

Mode = Literal["put", "create", "update"]
Sort = Literal["payload_spec", "config", "secret", "endpoint"]


class Cipher(Protocol):
    """What encrypts secrets, such as a `jobq_delivery.Keyring`."""

    def encrypt(self, name: str, value: str) -> tuple[bytes, str]:
        """Return the ciphertext of a secret's value, and the id of its key."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a definition; for a secret only its date."""

    version: int
    document: dict[str, Any]
    created_at: datetime


def of_delivery(module: str) -> Any:  # noqa: ANN401 - a module
    """Return a module of the extra ``delivery``, which is built on jobq and not imported by it.

    Raises:
        ModuleNotFoundError: the extra is not installed.
    """
    return importlib.import_module(f"jobq_delivery.{module}")


def put_payload_spec(
    payload_spec: str, schema: Mapping[str, Json], mode: Mode = "put"
) -> Call[dict[str, Any]]:
    """Declare or replace a payload spec.

    Args:
        payload_spec: its name.
        schema: a JSON Schema of draft 2020-12.
        mode: ``create`` fails if it exists, ``update`` if it does not.

    Raises:
        PayloadInvalid: the schema is invalid.
        Conflict, NotFound: see ``mode``.
    """
    arguments = {"payload_spec": payload_spec, "schema": as_jsonb(schema), "mode": mode}
    return Call("put_payload_spec", arguments, scalar)


def put_config(
    config: str, entries: Mapping[str, Json], mode: Mode = "put"
) -> Call[dict[str, Any]]:
    """Declare or replace a config.

    Args:
        config: its name.
        entries: the values for ``{{config.*}}``.
        mode: as for `put_payload_spec`.

    Raises:
        NotFound: an endpoint refers to an entry that would be removed, or see ``mode``.
        Conflict: see ``mode``.
    """
    return Call("put_config", {**locals(), "entries": as_jsonb(entries)}, scalar)


def put_secret(
    secret: str, value: str, mode: Mode = "put", *, keyring: Cipher | None = None
) -> Call[dict[str, Any]]:
    """Encrypt a secret and store it.

    Args:
        secret: its name.
        value: leaves this process only encrypted.
        mode: as for `put_payload_spec`.
        keyring: its first key encrypts; by default the environment's.

    Raises:
        SecretKeyError: there is no key.
        Conflict, NotFound: see ``mode``.
    """
    if keyring is None:
        keyring = of_delivery("keyring").Keyring.from_environment()
    ciphertext, key_id = keyring.encrypt(secret, value)
    arguments = {"secret": secret, "ciphertext": ciphertext, "key_id": key_id, "mode": mode}
    return Call("put_secret", arguments, scalar)


def put_endpoint(
    endpoint: str,
    type: Literal["HTTP", "KAFKA", "REDIS_STREAM"],  # noqa: A002 - its name everywhere
    spec: Mapping[str, Json],
    *,
    payload_spec: str | None = None,
    config: str | None = None,
    max_attempts: int | None = None,
    retry_strategy: str | None = None,
    retry_initial_delay: timedelta | str | None = None,
    retry_max_delay: timedelta | str | None = None,
    retry_jitter: float | None = None,
    queue: str | None = None,
    max_concurrency: int | None = None,
    max_per_second: float | None = None,
    mode: Mode = "put",
) -> Call[dict[str, Any]]:
    """Declare an endpoint, or replace it for jobs enqueued from now on.

    Args:
        endpoint: its name, and the kind of its jobs.
        type: type of its target.
        spec: the target and the message; see docs/delivery.md.
        payload_spec: payload spec for its input.
        config: config for ``{{config.*}}``.
        max_attempts: maximum number of failed attempts; 1 by default.
        retry_strategy: ``exponential`` by default.
        retry_initial_delay: one second by default.
        retry_max_delay: one minute by default.
        retry_jitter: 0.25 by default.
        queue: queue of its jobs.
        max_concurrency: maximum number of simultaneous deliveries per worker; 20 by default.
        max_per_second: maximum number of deliveries per worker and second.
        mode: as for `put_payload_spec`.

    Raises:
        NotFound: it refers to a definition that does not exist; the code says which.
        InvalidArgument: the spec or a limit is invalid.
        Conflict: see ``mode``.
    """
    return Call("put_endpoint", {**locals(), "spec": as_jsonb(spec)}, scalar)


def pause_endpoint(endpoint: str, reason: str | None = None) -> Call[None]:
    """Stop deliveries to an endpoint. Running ones continue, other jobs wait."""
    return Call("pause_endpoint", locals(), nothing)


def resume_endpoint(endpoint: str) -> Call[int]:
    """Allow deliveries to a paused endpoint again; return how many jobs had been waiting."""
    return Call("resume_endpoint", locals(), scalar)


def test_endpoint(endpoint: str, payload: Json = None) -> Call[UUID]:  # noqa: PT028 - no test
    """Deliver one test job to an endpoint, even if it is paused, and return the job's id.

    The job's result is the target's answer.

    Args:
        endpoint: its name.
        payload: its input; `{}` by default.

    Raises:
        PayloadInvalid: the payload does not match the payload spec.
    """
    given = {} if payload is None else payload
    arguments = {"endpoint": endpoint, "payload": as_jsonb(given)}
    return Call("test_endpoint", arguments, scalar, inputs=[(endpoint, given)])


def endpoint_stats(endpoint: str, period: timedelta | str | None = None) -> Call[EndpointStats]:
    """Return statistics of recent deliveries to an endpoint.

    Args:
        endpoint: its name.
        period: how far to look back; one hour by default.
    """
    return Call("endpoint_stats", locals(), first, record(EndpointStats))


def delete_definition(type: Sort, name: str) -> Call[None]:  # noqa: A002
    """Delete a payload spec, config, secret or endpoint.

    Raises:
        HasDependents: an endpoint refers to it, or it is an endpoint with live jobs or schedules.
    """
    return Call("delete_definition", locals(), nothing)


def get_definition(type: Sort, name: str) -> Call[dict[str, Any]]:  # noqa: A002
    """Return a payload spec, config, secret (without its value) or endpoint."""
    return Call("show_definition", locals(), scalar)


def list_definitions(
    type: Sort,  # noqa: A002
    after: str | None = None,
    max_definitions: int = 50,
) -> Call[list[dict[str, Any]]]:
    """Return a page of payload specs, configs, secrets or endpoints, by name.

    Args:
        type: which of them.
        after: the last name of the previous page.
        max_definitions: maximum number.
    """
    return Call("page_definitions", locals(), lambda rows: [item for item, _ in rows], may_lag=True)


def list_versions(type: Sort, name: str) -> Call[list[Version]]:  # noqa: A002
    """Return the versions of a payload spec, config, secret or endpoint, the newest first."""
    return Call("list_versions", locals(), list, record(Version))
