"""Converts Python values to arguments for PostgreSQL; raises InvalidArgument if it cannot."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

import msgspec
from psycopg.types.json import Jsonb

from jobq.errors import InvalidArgument

Span: TypeAlias = timedelta | float | str
"""A duration: a timedelta, seconds, or the text of an interval such as ``30 s``."""

Dedup = Literal["skip", "enqueue", "replace", "debounce", "throttle"]
ScheduleDedup = Literal["enqueue", "skip", "replace"]
RetryStrategy = Literal["fixed", "linear", "exponential", "decorrelated"]
OnDead = Literal["continue", "hold"]
Gap = Literal["auto", "run", "skip"]
Fold = Literal["auto", "once", "both"]
Missed = Literal["all", "latest", "none"]
Mode = Literal["put", "create", "update"]
DefinitionType = Literal["payload_spec", "config", "secret", "endpoint"]
EndpointType = Literal["HTTP", "KAFKA", "REDIS_STREAM"]

# Arguments that are a single text in every function.
TEXTS: Final = frozenset(
    {
        "dedup",
        "dedup_key",
        "endpoint",
        "event",
        "idempotency_key",
        "kind",
        "name",
        "queue",
        "schedule",
        "state",
    }
)
JOB_TEXTS: Final = TEXTS | {"concurrency_key"}
# The escape of a NUL in JSON, after which no odd number of backslashes has made it text.
NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
MANY: Final = (list, tuple, set, frozenset, dict, bytes, bytearray)


def encode(value: object) -> str:
    """Return a value as JSON text."""
    try:
        return as_json(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument("a value cannot be written as JSON", detail=str(error)) from error


def as_json(value: object) -> bytes:
    """Return JSON that PostgreSQL can store.

    Raises:
        TypeError, ValueError, RecursionError: the value is not JSON, or contains the character
            NUL. NaN and infinities are not JSON; msgspec would write them as null.
    """
    text = msgspec.json.encode(value, enc_hook=plain)
    if b"null" in text and not is_finite(msgspec.to_builtins(value, enc_hook=plain)):
        raise ValueError("NaN and infinite numbers are not JSON")
    if b"\\u0000" in text and NUL.search(text):
        raise ValueError("PostgreSQL cannot store the character NUL")
    return text


def is_finite(value: object) -> bool:
    """Whether all numbers in a value are finite."""
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(is_finite(item) for item in value.values())
        case list() | tuple():
            return all(is_finite(item) for item in value)
        case _:
            return True


def plain(value: object) -> object:
    """Return the content of a pydantic model; msgspec can encode all other types."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return dump(mode="json")


def as_jsonb(value: object) -> Jsonb | None:
    """Return a parameter of type jsonb; None stays None."""
    return None if value is None else Jsonb(value, dumps=encode)


def as_text(value: object) -> str:
    """Return a string, number, time or duration as a text that PostgreSQL can parse."""
    if value is None:
        raise InvalidArgument("an argument that is needed is None")
    text = encode(value)
    return value if isinstance(value, str) else text.strip('"')


def as_number(value: float | Decimal | None) -> str | None:
    """Return a number for a parameter of type numeric, which takes no float; None stays None."""
    return None if value is None else as_text(value)


def refuse_lists(arguments: Mapping[str, object], texts: AbstractSet[str] = TEXTS) -> None:
    """Refuse lists, objects and bytes for texts; the database would accept them as text."""
    for name, value in arguments.items():
        # Most are strings, and this runs for every job.
        if type(value) is not str and name in texts and isinstance(value, MANY):
            raise InvalidArgument(f"{name} must be one text", detail=f"{value!r:.128}")


def refuse_unknown(options: Iterable[str], known: type) -> None:
    """Raise TypeError if an option is unknown."""
    for name in sorted(set(options) - known.__annotations__.keys()):
        raise TypeError(f"there is no option {name!r}")


def as_timedelta(value: timedelta | float | str | None) -> timedelta | str | None:
    """Convert seconds to a timedelta; other values are unchanged."""
    return timedelta(seconds=value) if isinstance(value, int | float) else value


def as_uuid(job_id: UUID | str) -> UUID:
    """Return an id as a UUID."""
    if isinstance(job_id, UUID):
        return job_id
    try:
        return UUID(job_id)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgument("a job id must be a UUID", detail=str(job_id)) from error


def as_uuids(job_ids: Iterable[UUID | str]) -> list[UUID]:
    """Return a list of ids."""
    if isinstance(job_ids, str | UUID):
        raise InvalidArgument("ids of jobs are given as a list", detail=str(job_ids))
    return [as_uuid(job_id) for job_id in job_ids]


def as_names(names: Iterable[str]) -> list[str]:
    """Return a list of names."""
    if isinstance(names, str):
        raise InvalidArgument("names are given as a list", detail=names)
    return list(names)


def as_given(arguments: Mapping[str, Any], texts: AbstractSet[str] = TEXTS) -> dict[str, Any]:
    """Return the arguments that are not None, converted according to their names."""
    refuse_lists(arguments, texts)
    return {
        name: FORMS[name](value) if name in FORMS else value
        for name, value in arguments.items()
        if value is not None
    }


def as_object(name: str, value: object) -> dict[str, Any]:
    """Return the members of a JSON object."""
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"{name} must be an object", detail=f"{str(value)[:128]!r}")
    return dict(value)


FORMS: Final[dict[str, Callable[[Any], Any]]] = {
    "batch_id": as_uuid,
    "before": as_uuid,
    "graph_of": as_uuid,
    "job_id": as_uuid,
    "job_ids": as_uuids,
    "kinds": as_names,
    "queues": as_names,
    "schedule": str,
}
"""Conversions by the name of the argument, for all functions."""
