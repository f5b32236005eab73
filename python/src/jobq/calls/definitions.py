"""Calls that define what deliveries are made of: payload specs, configs, secrets, endpoints.

client.put_config("mail", {"api_base_url": "https://api.example.org"})

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
    """Declare a payload spec, or replace it.

    Args:
        payload_spec: its name.
        schema: a JSON Schema of draft 2020-12.
        mode: ``create`` refuses one that is there, ``update`` one that is not.

    Raises:
        PayloadInvalid: it is no such schema.
        Conflict, NotFound: see ``mode``.
    """
    of_delivery("json_schema.input").check_schema(schema)
    arguments = {"payload_spec": payload_spec, "schema": as_jsonb(schema), "mode": mode}
    return Call("put_payload_spec", arguments, scalar)


def put_config(
    config: str, entries: Mapping[str, Json], mode: Mode = "put"
) -> Call[dict[str, Any]]:
    """Declare a config, or replace it.

    Args:
        config: its name.
        entries: what ``{{config.*}}`` refers to.
        mode: ``create`` refuses one that is there, ``update`` one that is not.

    Raises:
        NotFound: an endpoint refers to what would be gone, or see ``mode``.
        Conflict: see ``mode``.
    """
    return Call("put_config", {**locals(), "entries": as_jsonb(entries)}, scalar)


def put_secret(
    secret: str, value: str, mode: Mode = "put", *, keyring: Cipher | None = None
) -> Call[dict[str, Any]]:
    """Encrypt a secret and store it.

    Args:
        secret: its name.
        value: never leaves this process as it is.
        mode: ``create`` refuses one that is there, ``update`` one that is not.
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
    """Declare an endpoint, or replace it for jobs that are made from now on.

    Args:
        endpoint: its name, and the kind of its jobs.
        type: what it delivers to.
        spec: where to, and in what shape.
        payload_spec: what its input must be.
        config: what ``{{config.*}}`` refers to.
        max_attempts: how many attempts may fail; 1 by default.
        retry_strategy: ``exponential`` by default.
        retry_initial_delay: a second by default.
        retry_max_delay: a minute by default.
        retry_jitter: 0.25 by default.
        queue: where its jobs go.
        max_concurrency: deliveries of one worker at a time; 20 by default.
        max_per_second: deliveries of one worker in a second.
        mode: ``create`` refuses one that is there, ``update`` one that is not.

    Raises:
        NotFound: it refers to what is not there; the code says to what.
        InvalidArgument: the spec or a limit is not one.
        Conflict: see ``mode``.
    """
    return Call("put_endpoint", {**locals(), "spec": as_jsonb(spec)}, scalar)


def pause_endpoint(endpoint: str, reason: str | None = None) -> Call[None]:
    """Stop deliveries to an endpoint; running ones continue, and its jobs wait.

    Raises:
        NotFound: there is none.
    """
    return Call("pause_endpoint", locals(), nothing)


def resume_endpoint(endpoint: str) -> Call[int]:
    """Allow deliveries to a paused endpoint again, and return how many jobs were put aside.

    Raises:
        NotFound: there is none.
    """
    return Call("resume_endpoint", locals(), scalar)


def test_endpoint(endpoint: str, payload: Json = None) -> Call[UUID]:  # noqa: PT028 - no test
    """Have one job delivered to an endpoint at once, also while that is paused.

    Args:
        endpoint: its name.
        payload: its input; `{}` by default.

    Returns:
        The id of the job, whose result is what the target answered.

    Raises:
        NotFound: there is none.
        PayloadInvalid: the payload does not fit its payload spec.
    """
    given = {} if payload is None else payload
    arguments = {"endpoint": endpoint, "payload": as_jsonb(given)}
    return Call("test_endpoint", arguments, scalar, inputs=[(endpoint, given)])


def endpoint_stats(endpoint: str, period: timedelta | str | None = None) -> Call[EndpointStats]:
    """Return how the deliveries to an endpoint went of late.

    Args:
        endpoint: its name.
        period: how far to look back; an hour by default.

    Raises:
        NotFound: there is none.
    """
    return Call("endpoint_stats", locals(), first, record(EndpointStats))


def delete_definition(type: Sort, name: str) -> Call[None]:  # noqa: A002
    """Delete a payload spec, config, secret or endpoint.

    Raises:
        HasDependents: an endpoint refers to it, or it is one that has live jobs or schedules.
        NotFound: there is none.
    """
    return Call("delete_definition", locals(), nothing)


def get_definition(type: Sort, name: str) -> Call[dict[str, Any]]:  # noqa: A002
    """Return a payload spec, config, secret (without its value) or endpoint.

    Raises:
        NotFound: there is none.
    """
    return Call("show_definition", locals(), scalar)


def list_definitions(
    type: Sort,  # noqa: A002
    after: str | None = None,
    max_definitions: int = 50,
) -> Call[list[dict[str, Any]]]:
    """Return a page of payload specs, configs, secrets or endpoints, by name.

    Args:
        type: which of them.
        after: the last name of the page before.
        max_definitions: at most so many.
    """
    return Call("page_definitions", locals(), lambda rows: [item for item, _ in rows], may_lag=True)


def list_versions(type: Sort, name: str) -> Call[list[Version]]:  # noqa: A002
    """Return the versions of a payload spec, config, secret or endpoint, the newest first.

    Raises:
        NotFound: there has never been one.
    """
    return Call("list_versions", locals(), list, record(Version))
