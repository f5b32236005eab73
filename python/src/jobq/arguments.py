"""Values of Python's as PostgreSQL takes them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import msgspec
from psycopg.types.json import Jsonb

from jobq.errors import InvalidArgument

__all__ = ["as_jsonb", "as_text", "as_timedelta", "as_uuid", "encode", "plain"]


def encode(value: object) -> str:
    """Return JSON text.

    Raises:
        InvalidArgument: the value is not JSON.
    """
    try:
        return msgspec.json.encode(value, enc_hook=plain).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument("a value cannot be written as JSON", detail=str(error)) from error


def plain(value: object) -> object:
    """Return what a pydantic model holds; msgspec knows everything else by itself."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return dump(mode="json")


def as_jsonb(value: object) -> Jsonb | None:
    """Return a parameter of type jsonb; None stays None."""
    return None if value is None else Jsonb(value, dumps=encode)


def as_text(value: object) -> str:
    """Return a string, number, time or duration as PostgreSQL reads any of its types.

    Raises:
        InvalidArgument: the value is None, or has no such form.
    """
    if value is None:
        raise InvalidArgument("an argument that is needed is None")
    text = encode(value)
    return value if isinstance(value, str) else text.strip('"')


def as_timedelta(value: timedelta | float | None) -> timedelta | None:
    """Return a duration that is given as such or in seconds."""
    return timedelta(seconds=value) if isinstance(value, int | float) else value


def as_uuid(job_id: UUID | str) -> UUID:
    """Return a job's id.

    Raises:
        InvalidArgument: it is not a UUID.
    """
    if isinstance(job_id, UUID):
        return job_id
    try:
        return UUID(job_id)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgument("a job id must be a UUID", detail=str(job_id)) from error
