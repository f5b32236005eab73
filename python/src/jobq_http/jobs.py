"""Jobs: look up, list, cancel."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args
from uuid import UUID

import msgspec
from msgspec import Meta, Raw
from starlette.responses import Response

from jobq.models import State
from jobq_http.call import Call, encoded
from jobq_http.errors import ApiError
from jobq_http.operation import Answer, section
from jobq_http.operators import same
from jobq_http.page import Paging, page
from jobq_http.schedules import RecurringJob, RecurringJobPage, RecurringStatus
from jobq_http.values import (
    Moment,
    Name,
    RequestPart,
    Trigger,
    Vocabulary,
    answer,
    page_of,
    request,
)

ExecutionOfJob = answer(
    "ExecutionOfJob", "A summary of the execution of a job.", "execution_id status created_at"
)
Job = answer(
    "Job",
    """A job.

    endpoint equals kind, for clients of both vocabularies. The job's data appears once, as
    payload or input.
    """,
    "job_id endpoint endpoint_type? trigger status version idempotency_key? input~ execution"
    " created_at kind queue state payload~ metadata dedup_key? concurrency_key? expires_at? cost"
    " priority attempt attempts max_attempts timeout_ms run_at worker? started_at? heartbeat_at?"
    " lease_expires_at? finished_at? updated_at cancel_requested cancel_reason? progress result"
    " last_error_code? last_error? schedule_id? slot_at? region batch_id?",
    status=(Literal["ACTIVE", "RETIRED"], "RETIRED once it has ended."),
    execution=ExecutionOfJob,
    attempt="The fencing token: of the present or last attempt.",
    attempts="The attempts that count against max_attempts.",
    updated_at="When its state last changed.",
)
JobPage = page_of(
    "JobPage",
    """A page of jobs, the newest first.

    A page reads at most 100,000 jobs, so it may have few jobs or none, and still a cursor.
    """,
    Job,
)
Cancellation = answer(
    "Cancellation",
    "The outcome of a cancel request.",
    "job_id outcome",
    outcome=Literal["cancelled", "cancel_requested", "retired"],
)
ANY_STATE = "|".join(get_args(State))
ENDED: Final = ("succeeded", "dead", "cancelled")
# Parameters of the list of recurring jobs.
OF_RECURRING: Final = frozenset(
    {"trigger", "status", "kind", "endpoint", "queue", "vocabulary", *Paging.__struct_fields__}
)
STATES = Meta(
    description="One or more states, separated by commas.",
    pattern=f"^({ANY_STATE})(,({ANY_STATE}))*$",
)


class Filters(Paging):
    """The filters of lists of jobs."""

    state: Annotated[str, STATES] | None = None
    kind: Name | None = None
    queue: Name | None = None
    error_code: (
        Annotated[str, Meta(max_length=128, description="The code of the job's last error.")] | None
    ) = None
    created_after: Moment | None = None
    created_before: Moment | None = None
    metadata: Annotated[
        str | None, Meta(description="A JSON object that the job's metadata contains.")
    ] = None

    def filters(self, call: Call) -> dict[str, Any]:
        """Return the filters and the position of the page as arguments."""
        given = {n: v for n, v in self.given().items() if n not in ("limit", "cursor", "state")}
        if self.state:
            given["states"] = self.state.split(",")
        if self.metadata:
            msgspec.json.decode(self.metadata, type=dict[str, Raw])
        return given | {"before": self.position(call, UUID)}


JobFilter = request(
    "JobFilter",
    "Which jobs to list.",
    "trigger? status? idempotency_key? endpoint? vocabulary?",
    Filters,
    trigger=(Trigger, "CRON: recurring jobs instead of their runs."),
    status=(RecurringStatus, "PAUSED: only with trigger=CRON."),
    endpoint="The same as kind.",
    vocabulary=Vocabulary,
)
View = request("View", "How a job is shown.", "vocabulary?", RequestPart, vocabulary=Vocabulary)
Cancel = request("Cancel", "Why a job is cancelled.", "reason?")


async def list_jobs(call: Call) -> Response:
    """Return a page of one-shot jobs and runs, or of recurring jobs."""
    wanted = call.query(JobFilter)
    given = wanted.filters(call) | {"kind": same(wanted.kind, wanted.endpoint)}
    given.pop("endpoint", None)
    status = given.pop("status", None)
    if given.get("trigger") == "CRON":
        del given["trigger"]
        if others := wanted.given().keys() - OF_RECURRING:
            raise ApiError("INVALID_REQUEST", f"{min(others)}: not with trigger=CRON")
        given |= {"status": status and status.lower(), "max_schedules": wanted.limit}
        return page(call, await call.fetch("jobq_http.page_schedules", **given))
    if status == "PAUSED":
        raise ApiError("INVALID_REQUEST", "status: PAUSED with trigger=CRON alone")
    if status:
        states = given.get("states", get_args(State))
        given["states"] = [s for s in states if (s in ENDED) == (status == "RETIRED")]
    return page(call, await call.fetch("jobq_http.page_jobs", **given, max_jobs=wanted.limit))


async def cancel_job(call: Call) -> Response:
    """Cancel a job: 200 if cancelled, 202 if its worker was asked, 409 if it has finished.

    A recurring job is retired; its runs continue.
    """
    job_id = call.job_id()
    wanted = await call.body(Cancel)
    [(outcome,)] = await call.fetch("jobq_http.stop_job", job_id=job_id, reason=wanted.reason)
    if outcome == "already_finished":
        raise ApiError(
            "EXECUTION_NOT_CANCELLABLE",
            f"job_id {job_id} has ended",
            message="The job has ended already.",
        )
    answer = {"job_id": job_id, "outcome": outcome}
    return encoded(answer, 202 if outcome == "cancel_requested" else 200)


of = section("jobs")
# fmt: off
OPERATIONS = (
    of("GET /jobs/{job_id}", "jobq_http.show_job", "Get a job, live or archived",
       "read produce work operate", {200: Answer("The job.", Job | RecurringJob)},
       query=View),
    of("GET /jobs", list_jobs, "List jobs, newest first", "read operate",
       {200: Answer("A page of jobs.", JobPage | RecurringJobPage)}, query=JobFilter, may_lag=True),
    of("POST /jobs/{job_id}/cancel", cancel_job,
       "Cancel a job: at once if it waits, by asking its worker if it runs",
       "produce operate", {
           200: Answer("It is cancelled, or retired.", Cancellation),
           202: Answer("Its worker is asked to stop.", Cancellation),
       }, body=Cancel, errors="EXECUTION_NOT_CANCELLABLE",
       examples={"why": {"reason": "ordered twice"}}),
)
# fmt: on
