"""Steering: what operators do to many jobs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from jobq.http import examples
from jobq.http.operation import Answer, Operation, encoded, text
from jobq.http.values import (
    Json,
    JsonMembers,
    Milliseconds,
    Moment,
    Name,
    Priority,
    Reason,
    Request,
)

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call

JobIds = Annotated[list[UUID], Meta(max_length=10_000)]


class Which(Request, kw_only=True):
    """Which jobs: those that fit everything given, the oldest first."""

    job_ids: JobIds | None = None
    queue: Name | None = None
    kind: Name | None = None
    metadata: JsonMembers | None = None
    max_jobs: Annotated[float, Meta(ge=1, le=10_000, multiple_of=1)] = 1000
    dry_run: Annotated[bool, Meta(description="Only say which jobs.")] = False
    reason: Reason | None = None

    def arguments(self) -> dict[str, object]:
        """Return what the functions of the database take."""
        return {
            "job_ids": self.job_ids,
            "queue": self.queue,
            "kind": self.kind,
            "metadata": None if self.metadata is None else text(self.metadata),
            "max_jobs": self.max_jobs,
            "dry_run": self.dry_run,
            "reason": self.reason,
        }


class Changes(Request, kw_only=True):
    """What changes of the jobs; at least one of these."""

    run_at: Moment | None = None
    run_now: Annotated[bool, Meta(description="Instead of `run_at`.")] = False
    priority: Priority | None = None
    queue: Name | None = None
    payload: Json | UnsetType = UNSET
    timeout_ms: Milliseconds | None = None
    expires_at: Moment | None = None

    def __post_init__(self) -> None:
        if self.run_now and self.run_at is not None:
            raise ValueError("give run_now or run_at, not both")


class Change(Which, kw_only=True):
    """Which waiting jobs to change, and what of them."""

    changes: Changes


class CancelMany(Which, kw_only=True):
    """Which jobs to cancel."""

    state: Literal["blocked", "queued", "retrying", "running"] | None = None


class Delete(Which, kw_only=True):
    """Which jobs to delete."""

    state: Literal["blocked", "queued", "retrying", "succeeded", "dead", "cancelled"] | None = None


class Chosen(Struct):
    """The jobs that were chosen."""

    job_ids: list[UUID]


class Cancelled(Struct):
    """A job, and what came of cancelling it; at a dry run its state."""

    job_id: UUID
    outcome: Literal[
        "cancelled",
        "cancel_requested",
        "already_finished",
        "blocked",
        "queued",
        "retrying",
        "running",
    ]


class CancelledMany(Struct):
    """What came of cancelling jobs."""

    jobs: list[Cancelled]


async def change_jobs(call: Call) -> Response:
    """Change when waiting jobs run, their priority, queue, timeout, payload, all or none.

    Ask for `job_ids`, a `queue`, a `kind` or `metadata`. The payload of a job that has run stays.
    """
    wanted = await call.body(Change)
    changes: dict[str, object] = {
        "run_at": "now" if wanted.changes.run_now else wanted.changes.run_at,
        "priority": None if wanted.changes.priority is None else int(wanted.changes.priority),
        "queue": wanted.changes.queue,
        "expires_at": wanted.changes.expires_at,
    }
    if wanted.changes.payload is not UNSET:
        changes["payload"] = wanted.changes.payload
    if wanted.changes.timeout_ms is not None:
        changes["timeout"] = f"{wanted.changes.timeout_ms} ms"
    given = text({name: value for name, value in changes.items() if value is not None})
    return _ids(await call.fetch("change_many", changes=given, **wanted.arguments()))


async def cancel_jobs(call: Call) -> Response:
    """Cancel waiting jobs at once, and ask the workers of running ones.

    Ask for `job_ids`, a `queue`, a `kind` or `metadata`.
    """
    wanted = await call.body(CancelMany)
    rows = await call.fetch_named("cancel_many", state=wanted.state, **wanted.arguments())
    return encoded({"jobs": rows})


async def delete_jobs(call: Call) -> Response:
    """Delete jobs that wait or have ended, with all that is known of them.

    Ask for `job_ids`, a `queue`, a `kind` or `metadata`. Without a `state` a filter takes those
    that wait.
    """
    wanted = await call.body(Delete)
    return _ids(await call.fetch("delete_many", state=wanted.state, **wanted.arguments()))


def _ids(rows: list[tuple[UUID]]) -> Response:
    return encoded({"job_ids": [job_id for (job_id,) in rows]})


OPERATIONS = (
    Operation(
        "POST",
        "/jobs:change",
        change_jobs,
        "Change waiting jobs: run now or later, priority, queue, payload",
        ("operate",),
        {200: Answer("The jobs that were changed.", Chosen)},
        {
            403: ["QUEUE_DENIED"],
            404: ["JOB_NOT_FOUND"],
            409: ["ILLEGAL_STATE", "IMMUTABLE"],
            413: ["MESSAGE_TOO_LARGE"],
            422: ["INPUT_VALIDATION_FAILED", "INVALID_MESSAGE"],
            429: ["QUEUE_FULL"],
        },
        tag="operators",
        body=Change,
        examples={"run now what waits in a queue": examples.CHANGE},
    ),
    Operation(
        "POST",
        "/jobs:cancel",
        cancel_jobs,
        "Cancel many jobs",
        ("operate",),
        {200: Answer("What came of each.", CancelledMany)},
        {404: ["JOB_NOT_FOUND"], 409: ["ILLEGAL_STATE"]},
        tag="operators",
        body=CancelMany,
        examples={"a kind": {"kind": "send_email", "reason": "sent twice"}},
    ),
    Operation(
        "POST",
        "/jobs:delete",
        delete_jobs,
        "Delete jobs that wait or have ended",
        ("operate",),
        {200: Answer("The jobs that were deleted.", Chosen)},
        {403: ["QUEUE_DENIED"], 404: ["JOB_NOT_FOUND"], 409: ["ILLEGAL_STATE"]},
        tag="operators",
        body=Delete,
        examples={"purge a queue": {"queue": "mail"}},
    ),
)
