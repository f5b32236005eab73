"""Workers over HTTP, for languages without a PostgreSQL driver."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response

from jobq import models
from jobq_http.call import Call, encoded
from jobq_http.examples import ID
from jobq_http.operation import picked, section
from jobq_http.page import Paging
from jobq_http.values import (
    JsonMembers,
    Name,
    Request,
    answer,
    answer_of,
    list_of,
    page_of,
    request,
)

QueueNames = Annotated[list[Name], Meta(min_length=1, max_length=100)]
UnknownKinds = Annotated[
    list[Name],
    Meta(max_length=1000, description="Kinds that the worker has no handler for."),
]
AttemptNumber = Annotated[float, Meta(ge=1, le=2**31 - 1, multiple_of=1)]

FIRST_LOOK: Final = 0.05
LOOK: Final = 0.25


class Claim(Request, kw_only=True):
    """A worker's claim."""

    queues: QueueNames = msgspec.field(default_factory=lambda: ["default"])
    max_jobs: Annotated[float, Meta(ge=1, le=1000, multiple_of=1)] = 1
    except_kinds: UnknownKinds | None = None
    wait_ms: Annotated[
        float, Meta(ge=0, le=25_000, multiple_of=1, description="How long to wait for a job.")
    ] = 0


class Held(Request):
    """A job that a worker holds."""

    job_id: UUID
    attempt: AttemptNumber


class Heartbeat(Request, kw_only=True):
    """A worker's heartbeat with its jobs."""

    queues: QueueNames | None = None
    jobs: Annotated[list[Held], Meta(max_length=10_000)] = msgspec.field(default_factory=list)
    except_kinds: UnknownKinds | None = None
    release: (
        Annotated[str, Meta(min_length=1, max_length=200, description="Of what the worker runs.")]
        | None
    ) = None
    stuck: (
        Annotated[int, Meta(ge=0, le=1_000_000, description="Slots occupied by hanging handlers.")]
        | None
    ) = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of jobq.heartbeat()."""
        held = {"job_ids": [job.job_id for job in self.jobs]}
        attempts = [job.attempt for job in self.jobs]
        others = {name: value for name, value in super().arguments().items() if name != "jobs"}
        return {**others, **held, "attempts": attempts}


Completion = request("Completion", "The outcome for a job.", "result~")
Failure = request(
    "Failure",
    "Why an attempt failed; the text is cut at 512 characters.\n\n"
    "The members of ``details`` are shown with the attempt's error.",
    "error error_code retryable retry_in_ms? details?",
    error_code=Annotated[str, Meta(min_length=1, max_length=128)],
    details=(JsonMembers, "Other information."),
    defaults={"error_code": "ERROR", "retryable": True},
)
Release = request("Release", "When a released job can run again; at once by default.", "run_at?")
JobHold = request("JobHold", "How long a key is held, and why.", "retry_in_ms reason?")
Progress = request("Progress", "Progress of a handler.", "progress")
Spending = request("Spending", "The actual cost of an attempt.", "cost")
Line = request("Line", "A line for a job's log.", "message level", defaults={"level": "INFO"})
ClaimedJob = answer_of(
    models.ClaimedJob,
    "ClaimedJob",
    lease=Annotated[int, Meta(description="Send a heartbeat well within this.")],
    delivery_version=None,
    is_awaited=None,
)
Claimed = list_of("Claimed", "The claimed jobs.", ClaimedJob, "jobs")


Beat = answer(
    "Beat",
    "The outcome of a heartbeat for a job.",
    "job_id attempt outcome",
    outcome=(
        Literal["extended", "cancel_requested", "held", "lost"],
        "held: another transaction holds the row, and the lease was not extended; send the next"
        " heartbeat soon.",
    ),
)
Beats = list_of("Beats", "The outcomes of a heartbeat.", Beat, "jobs")
Settled = answer("Settled", "A job after its attempt.", "job_id attempt state")
Logged = answer("Logged", "The attempt that a line was logged for.", "job_id attempt")
OldestJob = answer("OldestJob", "A job that is running.", "job_id kind started_at")
Worker = answer_of(
    models.LiveWorker,
    "Worker",
    kinds=Annotated[dict[str, int], Meta(description="How many of each kind it runs.")],
    oldest=Annotated[OldestJob | None, Meta(description="The job that it has run the longest.")],
)
Workers = page_of(
    "Workers",
    "A page of recently seen workers, live ones first, by name, at most 500.",
    Worker,
)


async def claim_jobs(call: Call) -> Response:
    """Claim jobs for a worker, and wait for one if there is none."""
    wanted = await call.body(Claim)
    given = wanted.arguments() | call.given()
    del given["wait"]
    server = call.request.app.state
    until = time.monotonic() + min(wanted.wait_ms / 1000, server.settings.longest_wait)
    pause = FIRST_LOOK
    while True:
        rows = await call.fetch("claim", **given)
        left = until - time.monotonic()
        if rows or left <= 0 or server.is_stopping:
            break
        if await call.request.is_disconnected():
            break
        await asyncio.sleep(min(left, pause * random.uniform(0.8, 1.2)))  # noqa: S311
        pause = min(LOOK, 2 * pause)
        await call.stay_admitted()
    return encoded({"jobs": [picked(ClaimedJob, row._asdict()) for row in rows]})


ATTEMPT = "POST /jobs/{job_id}/attempts/{attempt}"
LOST = "LEASE_LOST"
of = section("workers")
# fmt: off
OPERATIONS = (
    of("GET /workers", "jobq_http.show_workers", "List workers and their jobs",
       "read operate", Workers, query=Paging, tag="queues", name="list_workers",
       order=lambda row: [not row["is_live"], row["worker"]]),
    of("POST /workers/{worker}/claim", claim_jobs, "Claim jobs, and wait for one if there is none",
       "work", Claimed, body=Claim, is_long=True,
       examples={"ten, within 20 s": {"queues": ["mail"], "max_jobs": 10, "wait_ms": 20000}}),
    of("POST /workers/{worker}/heartbeat", "heartbeat",
       "Extend leases; return lost leases and cancel requests",
       "work", Beats, body=Heartbeat,
       examples={"one job": {"queues": ["mail"], "jobs": [{"job_id": ID, "attempt": 1}]}}),
    of(f"{ATTEMPT}/complete", "complete",
       "Finish an attempt as succeeded; repeating it changes nothing",
       "work", Settled, body=Completion, always={"state": "succeeded"}, errors=LOST,
       examples={"a result": {"result": {"message_id": "<a1@example.org>"}}}),
    of(f"{ATTEMPT}/fail", "fail", "End an attempt as failed: the job retries, or is dead",
       "work", Settled, body=Failure, value="state", errors=LOST,
       examples={"try in a minute": {
           "error": "450 mailbox busy", "error_code": "SMTP_450", "retry_in_ms": 60000,
           "details": {"status_code": 450},
       }}),
    of(f"{ATTEMPT}/release", "release", "Release a job without counting the attempt",
       "work", Settled, body=Release, value="state", errors=LOST,
       examples={"not before noon": {"run_at": "2026-03-15T12:00:00Z"}}),
    of(f"{ATTEMPT}/rate-limited", "rate_limited",
       "Release a rate-limited job, and hold its concurrency key",
       "work", Settled, body=JobHold, value="state", errors=LOST,
       examples={"half a minute": {"retry_in_ms": 30000, "reason": "status 429"}}),
    of(f"{ATTEMPT}/cancel", "confirm_cancel",
       "End an attempt as cancelled, after a cancel request",
       "work", Settled, always={"state": "cancelled"}, errors=f"{LOST} ILLEGAL_STATE"),
    of(f"{ATTEMPT}/progress", "set_progress", "Store the progress of an attempt",
       "work", Settled, body=Progress, always={"state": "running"}, errors=LOST,
       examples={"a third": {"progress": {"percent": 33}}}),
    of(f"{ATTEMPT}/spend", "spend", "Report the actual cost of an attempt",
       "work", Settled, body=Spending, always={"state": "running"}, errors=LOST,
       examples={"tokens": {"cost": 4500}}),
    of(f"{ATTEMPT}/logs", "log", "Add a line to a job's log",
       "work", Logged, status=201, body=Line,
       examples={"a line": {"message": "connecting", "level": "INFO"}}),
)
# fmt: on
