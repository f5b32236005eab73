"""Executions: look up, cancel while they wait, their attempts and logs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta
from starlette.responses import Response

from jobq_http.call import Call
from jobq_http.jobs import Cancel
from jobq_http.operation import section
from jobq_http.page import BigInteger, Integer, Paging, page
from jobq_http.values import answer, page_of

Execution = answer(
    "Execution",
    "An execution of a job.",
    "execution_id job_id endpoint endpoint_type? idempotency_key? status input output attempt_count"
    " max_attempts worker_id? run_at started_at? completed_at? duration_ms? created_at region",
    region="Of the database that has the job.",
)
ExecutionPage = page_of("ExecutionPage", "A page of executions, the newest first.", Execution)
AttemptError = answer(
    "AttemptError",
    "Why an attempt failed; a handler may add other members.",
    "type? message? status_code~",
)
Attempt = answer(
    "Attempt",
    "One attempt of an execution.",
    "attempt_id execution_id attempt_number status worker_id? created_at? started_at?"
    " completed_at? duration_ms? output error?",
    status=Literal["SUCCESS", "FAILED", "RUNNING", "CANCELLED", "RELEASED"],
    error=AttemptError,
)
AttemptPage = page_of("AttemptPage", "A page of attempts, in their order.", Attempt)
LogLine = answer(
    "LogLine",
    "A line that a handler has logged.",
    "log_id execution_id attempt_number level message logged_at",
)
LogPage = page_of("LogPage", "A page of log lines, in their order.", LogLine)
READERS = "read produce work operate"
LAST_LINE = 2**63 - 1


class LogPaging(Paging):
    """Which lines of a log."""

    newest: Annotated[bool, Meta(description="Start at the newest line.")] = False


async def list_logs(call: Call) -> Response:
    """Return a page of log lines."""
    wanted = call.query(LogPaging)
    [job_id] = call.given().values()
    cursor = wanted.position(call, BigInteger)
    place = {"before": cursor or LAST_LINE} if wanted.newest else {"after": cursor}
    rows = await call.fetch("jobq_http.page_logs", job_id=job_id, max_lines=wanted.limit, **place)
    return page(call, rows)


of = section("executions")
PLACES = ("/executions/{execution_id}", "/jobs/{job_id}")
ATTEMPTS = "List attempts, in their order"
LINES = "List the log lines of handlers, in their order"
# fmt: off
OPERATIONS = (
    of("GET /executions/{execution_id}", "jobq_http.show_execution", "Get an execution",
       READERS, Execution),
    of("POST /executions/{execution_id}/cancel", "jobq_http.cancel_execution",
       "Cancel a waiting execution; 409 otherwise", "produce operate", Execution, body=Cancel,
       absent="EXECUTION_NOT_CANCELLABLE",
       errors="EXECUTION_NOT_CANCELLABLE"),
    of("GET /jobs/{job_id}/executions", "jobq_http.page_executions",
       "List the executions of a job, the newest first", "read operate produce", ExecutionPage,
       query=Paging, place=("before", datetime, "max_executions")),
    *(of(f"GET {path}/attempts", "jobq_http.page_attempts", ATTEMPTS, "read operate work",
         AttemptPage, query=Paging, place=("after", Integer, "max_attempts"),
         names={"execution_id": "job_id"}, errors="JOB_IS_RECURRING")
      for path in PLACES),
    *(of(f"GET {path}/logs", list_logs, LINES, "read operate work", LogPage, query=LogPaging,
         errors="JOB_IS_RECURRING")
      for path in PLACES),
)
# fmt: on
