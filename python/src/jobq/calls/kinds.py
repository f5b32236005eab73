"""Kinds of job: the calls that declare them and show their schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from jobq.calls.arguments import as_jsonb, as_text, refuse_unknown
from jobq.calls.call import Call, column, nothing
from jobq.calls.options import KindOptions, in_time
from jobq.models import DeclaredKind, Json, record


def put_kind(kind: str, **options: Unpack[KindOptions]) -> Call[None]:
    """Declare a kind of job in place of what was declared of it.

    Args:
        kind: its name.
        options: see `jobq.calls.options.KindOptions`.

    Raises:
        TypeError: there is no such option.
        NotFound: there is no such function of one jsonb that returns jsonb.
        PayloadInvalid: the schema uses a keyword that the database does not enforce.
        InvalidArgument: a value is out of range.
    """
    refuse_unknown(options, KindOptions)
    arguments: dict[str, Any] = in_time({"kind": kind, **options})
    for name in ("concurrency_key", "cost", "retry_on"):
        value = arguments.get(name)
        arguments[name] = [value] if isinstance(value, str) else value and list(value)
    arguments["payload_schema"] = as_jsonb(arguments.get("payload_schema"))
    return Call("put_kind", arguments, nothing)


def list_payload_schemas(kinds: Sequence[str]) -> Call[dict[str, Json]]:
    """Return the schemas of kinds that clients check payloads against.

    Raises:
        InvalidArgument: a kind is no text.
    """
    return Call("list_payload_schemas", {"kinds": [as_text(kind) for kind in kinds]}, dict)


def list_undeclared_kinds(kinds: Sequence[str], version: int | None = None) -> Call[list[str]]:
    """Return which of these kinds nobody has declared, or only an older version of the program.

    Args:
        kinds: their names.
        version: of the program, as `put_kind` has it; None counts only what nobody has declared.
    """
    return Call("list_undeclared_kinds", locals(), column)


def list_kinds() -> Call[list[DeclaredKind]]:
    """Return what is declared of each kind, by name."""
    return Call("list_kinds", {}, list, record(DeclaredKind))


def delete_kind(kind: str) -> Call[None]:
    """Forget what was declared of a kind.

    Raises:
        NotFound: nothing was.
        Conflict: live jobs or schedules of it exist, or it is an endpoint.
    """
    return Call("delete_kind", locals(), nothing)
