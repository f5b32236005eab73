"""Calls that declare kinds and queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from jobq.calls.arguments import as_jsonb, as_text, refuse_unknown
from jobq.calls.call import Call, column, nothing
from jobq.calls.options import KindOptions, QueueOptions, in_time
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
