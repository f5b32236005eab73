"""What a request says of a job, as the database takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgspec import Struct


def given_of(job: Struct) -> dict[str, Any]:
    """Return what a request says of a job."""
    given = msgspec.structs.asdict(job)
    return {k: v for k, v in given.items() if v is not None and v is not UNSET}


def enqueued(job: Struct) -> dict[str, Any]:
    """Return what a request says of a job as the object that the database takes."""
    given = given_of(job)
    milliseconds = given.pop("timeout_ms", None)
    if milliseconds is not None:
        given["timeout"] = f"{milliseconds} ms"
    return given


def inputs_of(jobs: Iterable[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Return the kinds and payloads of what the database takes."""
    return [(job["kind"], job.get("payload")) for job in jobs]
