"""Operations for operators: explain, redrive, change, cancel and delete jobs."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from jobq import models
from jobq_http.errors import ApiError
from jobq_http.operation import section
from jobq_http.values import (
    Attempts,
    JobIds,
    Json,
    JsonMembers,
    Milliseconds,
    Moment,
    Name,
    Priority,
    Request,
    answer,
    answer_of,
    list_of,
    request,
)
from jobq_http.values import Reason as Why


def same(kind: str | None, endpoint: str | None) -> str | None:
    """Return a filter that has two names; refuse two values."""
    if kind and endpoint and kind != endpoint:
        raise ApiError("INVALID_REQUEST", "kind and endpoint are the same filter")
    return kind or endpoint


FILTERS: Final = frozenset({"job_ids", "queue", "since", "error_code"})


class Which(Request, kw_only=True):
    """Which jobs: those that fit everything given, the oldest first."""

    job_ids: JobIds | None = None
    queue: Name | None = None
    kind: Name | None = None
    metadata: JsonMembers | None = None
    max_jobs: Annotated[float, Meta(ge=1, le=10_000, multiple_of=1)] = 1000
    dry_run: Annotated[bool, Meta(description="Only return the jobs.")] = False
    reason: Why | None = None


class Changes(Request, kw_only=True):
    """The changes; at least one is required."""

    run_at: Moment | None = None
    run_now: Annotated[bool, Meta(description="Instead of `run_at`.")] = False
    priority: Priority | None = None
    queue: Name | None = None
    payload: Json | UnsetType = UNSET
    timeout_ms: Milliseconds | None = None
    expires_at: Moment | None = None
    max_attempts: Attempts | None = None

    def __post_init__(self) -> None:
        """Refuse contradicting changes."""
        super().__post_init__()
        if self.run_now and self.run_at is not None:
            raise ValueError("give run_now or run_at, not both")

    def declared(self) -> dict[str, Any]:
        """Return the object for the database."""
        declared = super().declared()
        return declared | ({"run_at": "now"} if declared.pop("run_now") else {})


Change = request(
    "Change",
    "The waiting jobs to change, and the changes; the payload of a job that has run cannot change.",
    "changes",
    Which,
    changes=Changes,
)
CancelMany = request(
    "CancelMany",
    "Which jobs to cancel.",
    "state?",
    Which,
    state=Literal["blocked", "queued", "retrying", "running"],
)
Delete = request(
    "Delete",
    "Which jobs to delete.",
    "state?",
    Which,
    state=Literal["blocked", "queued", "retrying", "succeeded", "dead", "cancelled"],
)
Chosen = list_of("Chosen", "The selected jobs.", UUID, "job_ids")
Cancelled = answer(
    "Cancelled",
    "A job and the outcome of its cancellation; in a dry run its state.",
    "job_id outcome",
    outcome=Literal[
        "cancelled",
        "cancel_requested",
        "already_finished",
        "blocked",
        "queued",
        "retrying",
        "running",
    ],
)
CancelledMany = list_of("CancelledMany", "The outcome of cancelling jobs.", Cancelled, "jobs")
Latest = Annotated[bool, Meta(description="Use the endpoint's present version, not the job's.")]


RedriveOne = request(
    "RedriveOne",
    "How to run a job again.",
    "latest max_attempts?",
    latest=Latest,
    max_attempts=Attempts,
    defaults={"latest": False},
)


class Redrive(Request, kw_only=True):
    """The dead jobs to redrive: those that match all given filters, or all.

    Of `job_ids`, only the dead ones are redriven.
    """

    all: Annotated[bool, Meta(description="Required without another filter.")] = False
    job_ids: JobIds | None = None
    queue: Name | None = None
    kind: Name | None = None
    endpoint: Annotated[Name | None, Meta(description="The same as kind.")] = None
    since: Moment | None = None
    error_code: Annotated[str, Meta(max_length=128)] | None = None
    max_jobs: Annotated[float, Meta(ge=1, le=10_000, multiple_of=1)] = 1000
    latest: Latest = False
    dry_run: Annotated[bool, Meta(description="Only return the jobs.")] = False

    def arguments(self) -> dict[str, Any]:
        """Return the filters; refuse a request without any, unless it says ``all``."""
        given = super().arguments()
        is_for_all = given.pop("all")
        given["kind"] = same(self.kind, given.pop("endpoint", None))
        if not (is_for_all or given["kind"] or FILTERS & given.keys()):
            raise ApiError(
                "INVALID_REQUEST",
                "give job_ids, queue, kind, endpoint, since or error_code, or all: true",
            )
        return given


Reason = answer_of(models.Explanation, "Reason")
Explanation = list_of("Explanation", "Why a job is not running.", Reason, "reasons")


Redriven = answer(
    "Redriven",
    "A job that will run again, and its new state.",
    "job_id state",
    state=Literal["queued", "blocked"],
)
Rerun = answer("Rerun", "The new job, a copy of the finished one.", "job_id")
RedrivenMany = list_of("RedrivenMany", "The jobs that will run again.", UUID, "job_ids")
of = section("operators")
REDRIVE = {"queue": "mail", "since": "2026-03-15T12:00:00Z", "max_jobs": 500}
# fmt: off
OPERATIONS = (
    of("GET /jobs/{job_id}/explain", "explain", "Why a job is not running",
       "read produce operate", Explanation, errors="JOB_IS_RECURRING"),
    of("POST /jobs/{job_id}/redrive", "redrive", "Run a dead or cancelled job again",
       "operate", Redriven, body=RedriveOne, value="state",
       errors="JOB_IS_RECURRING ILLEGAL_STATE DEDUP_CONFLICT IDEMPOTENCY_CONFLICT",
       examples={"by the endpoint as it is now": {"latest": True}}),
    of("POST /jobs/{job_id}/rerun", "rerun", "Create a copy of a finished job",
       "operate", Rerun, status=201, value="job_id",
       errors="JOB_IS_RECURRING ILLEGAL_STATE INPUT_VALIDATION_FAILED QUEUE_FULL"),
    of("POST /jobs:redrive", "redrive_many", "Run many dead jobs again",
       "operate", RedrivenMany, body=Redrive, name="redrive_jobs",
       examples={"a queue, since noon": REDRIVE}),
    of("POST /jobs:change", "change_many",
       "Change waiting jobs: run now or later, priority, queue, payload",
       "operate", Chosen, body=Change, name="change_jobs",
       errors="QUEUE_DENIED JOB_NOT_FOUND ILLEGAL_STATE IMMUTABLE INPUT_VALIDATION_FAILED"
              " QUEUE_FULL",
       examples={"run now what waits in a queue": {"queue": "mail", "changes": {"run_now": True}}}),
    of("POST /jobs:cancel", "cancel_many",
       "Cancel many jobs: waiting ones at once, running ones by asking their workers",
       "operate", CancelledMany, body=CancelMany, errors="JOB_NOT_FOUND ILLEGAL_STATE",
       examples={"a kind": {"kind": "send_email", "reason": "sent twice"}}),
    of("POST /jobs:delete", "delete_many",
       "Delete waiting or finished jobs with their records",
       "operate", Chosen, body=Delete, errors="QUEUE_DENIED JOB_NOT_FOUND ILLEGAL_STATE",
       examples={"purge a queue": {"queue": "mail"}}),
)
# fmt: on
