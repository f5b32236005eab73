"""What a request says of a job, as the database takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from jobq_http.values import (
    Attempts,
    ConcurrencyKey,
    Json,
    JsonMembers,
    Milliseconds,
    Name,
    Priority,
    Request,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


class JobOptions(Request, kw_only=True):
    """What every job may say."""

    queue: Name | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    timeout_ms: Milliseconds | None = None
    metadata: JsonMembers | None = None


class JobOfKind(JobOptions, kw_only=True):
    """What every job of a kind may say."""

    kind: Name
    payload: Json | UnsetType = UNSET
    concurrency_key: ConcurrencyKey | None = None


def inputs_of(jobs: Iterable[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Return the kinds and payloads of what the database takes."""
    return [(job["kind"], job.get("payload")) for job in jobs]
