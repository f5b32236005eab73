"""Calls that declare kinds, queues, schedules and what deliveries need, if they need more than SQL.

Payload specs and secrets need the extra ``delivery``, which checks and encrypts them.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol, Unpack
from uuid import UUID

from jobq.calls.arguments import (
    DefinitionType,
    Mode,
    Span,
    as_jsonb,
    as_text,
    as_timedelta,
    refuse_unknown,
)
from jobq.calls.call import Call, column, nothing, scalar
from jobq.calls.graph import as_document, payloads_of
from jobq.calls.options import KindOptions, QueueOptions, ScheduleOptions, in_time
from jobq.models import Json


def put_kind(kind: str, **options: Unpack[KindOptions]) -> Call[None]:
    """Declare a kind, or replace its declaration.

    Args:
        kind: its name.
        options: see `jobq.calls.options.KindOptions`.

    Raises:
        NotFound: the function of ``run`` does not exist.
        PayloadInvalid: the schema uses a keyword that the database does not enforce.
    """
    refuse_unknown(options, KindOptions)
    arguments: dict[str, Any] = in_time({"kind": kind, **options})
    for name in ("concurrency_key", "cost", "dedup_key", "retry_on"):
        value = arguments.get(name)
        if value is not None:
            arguments[name] = [value] if isinstance(value, str) else list(value)
    arguments["payload_schema"] = as_jsonb(arguments.get("payload_schema"))
    return Call("put_kind", arguments, nothing)


def list_payload_schemas(kinds: Sequence[str]) -> Call[dict[str, Json]]:
    """Return the schemas of kinds that clients check payloads against."""
    return Call("list_payload_schemas", {"kinds": [as_text(kind) for kind in kinds]}, dict)


def list_undeclared_kinds(kinds: Sequence[str], version: int | None = None) -> Call[list[str]]:
    """Return which of these kinds are not declared, or only by an older program version.

    Args:
        kinds: their names.
        version: the program's version, as for `put_kind`; None ignores versions.
    """
    return Call("list_undeclared_kinds", locals(), column)


def put_queue(queue: str, **options: Unpack[QueueOptions]) -> Call[None]:
    """Declare a queue, or replace its declaration.

    Args:
        queue: its name.
        options: see `jobq.calls.options.QueueOptions`.
    """
    refuse_unknown(options, QueueOptions)
    return Call("put_queue", in_time({"queue": queue, **options}), nothing)


def create_schedule(
    name: str,
    kind: str,
    cron: str | None = None,
    *,
    every: Span | None = None,
    **options: Unpack[ScheduleOptions],
) -> Call[UUID]:
    """Declare a schedule, and return the id of the current version.

    Declaring it again is harmless. The same definition changes nothing. Another definition creates
    a new version, which continues where the old one is. Options that are None take their defaults.

    Args:
        name: 1 to 128 characters, not a UUID.
        kind: kind of the jobs.
        cron: an expression with 5, 6 (seconds) or 7 fields (years), or a word such as ``@daily``.
        every: an interval instead, 1 s to 3660 days.
        options: see `jobq.calls.options.ScheduleOptions`.

    Raises:
        InvalidSchedule: the expression or the time zone is invalid; the detail names the field.
        PayloadInvalid: the payload does not match the schema of its kind.
        PayloadTooLarge: payload and metadata have too many bytes.
    """
    refuse_unknown(options, ScheduleOptions)
    given: dict[str, Any] = {"name": name, "kind": kind, "cron": cron, **in_time(options)}
    given["every"] = as_timedelta(every)
    graph, payload = given.get("graph"), given.get("payload")
    after = None if graph is None else as_document(graph)
    given |= {
        "payload": as_jsonb(payload),
        "metadata": as_jsonb(given.get("metadata")),
        "graph": as_jsonb(after),
    }
    inputs = [(kind, payload), *payloads_of(after or {})]
    return Call("create_schedule", given, scalar, inputs=inputs)


def update_schedule(schedule: UUID | str, **changes: Json) -> Call[UUID]:
    """Change a schedule by creating a new version, and return its id.

    Args:
        schedule: its name, or the id of its current version.
        **changes: arguments of ``create_schedule``; None means the default. Others are unchanged.

    Raises:
        IllegalState: it is retired.
        JobqError: as ``create_schedule``.
    """
    return Call("update_schedule", {**locals(), "changes": as_jsonb(changes)}, scalar)


class Cipher(Protocol):
    """What encrypts secrets, such as a `jobq_delivery.Keyring`."""

    def encrypt(self, name: str, value: str) -> tuple[bytes, str]:
        """Return the ciphertext of a secret's value, and the id of its key."""


def of_delivery(module: str) -> Any:  # noqa: ANN401 - a module
    """Return a module of the extra ``delivery``, which is built on jobq and not imported by it.

    Raises:
        ModuleNotFoundError: the extra is not installed.
    """
    return importlib.import_module(f"jobq_delivery.{module}")


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


def list_definitions(
    type: DefinitionType,  # noqa: A002
    after: str | None = None,
    max_definitions: int = 50,
) -> Call[list[dict[str, Any]]]:
    """Return a page of payload specs, configs, secrets or endpoints, by name.

    Args:
        type: which of them.
        after: the last name of the previous page.
        max_definitions: maximum number, 1 to 100000.
    """
    return Call("page_definitions", locals(), lambda rows: [item for item, _ in rows], may_lag=True)
