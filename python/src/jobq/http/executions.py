"""Executions: look up, cancel while they wait, their attempts and logs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from jobq.http import examples
from jobq.http.errors import ApiError
from jobq.http.jobs import Cancel
from jobq.http.operation import Answer, Operation, json
from jobq.http.page import Next, Paging, page
from jobq.http.values import AnyJson, EndpointType, Level, Moment, Status

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call


LAST_LINE: Final = 2**63 - 1


class Execution(Struct):
    """An execution of a job."""

    execution_id: UUID
    job_id: UUID
    endpoint: str
    endpoint_type: EndpointType | None
    idempotency_key: str | None
    status: Status
    input: AnyJson
    output: AnyJson
    attempt_count: int
    max_attempts: int
    worker_id: str | None
    run_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    duration_ms: int | None
    created_at: Moment


class ExecutionPage(Struct):
    """A page of executions, the newest first."""

    items: list[Execution]
    cursor: Next


class AttemptError(Struct):
    """Why an attempt failed; the handler may have said more, by other members."""

    type: str | None
    message: str | None
    status_code: int | UnsetType = UNSET


class Attempt(Struct):
    """One try of an execution."""

    attempt_id: str
    execution_id: UUID
    attempt_number: int
    status: Literal["SUCCESS", "FAILED", "RUNNING", "CANCELLED", "RELEASED"]
    worker_id: str | None
    created_at: Moment | None
    started_at: Moment | None
    completed_at: Moment | None
    duration_ms: int | None
    output: AnyJson
    error: AttemptError | None


class AttemptPage(Struct):
    """A page of attempts, in their order."""

    items: list[Attempt]
    cursor: Next


class LogLine(Struct):
    """A line that a handler has logged."""

    log_id: str
    execution_id: UUID
    attempt_number: int
    level: Level
    message: str
    logged_at: Moment


class LogPage(Struct):
    """A page of log lines, in their order."""

    items: list[LogLine]
    cursor: Next


READERS = ("read", "operate")


async def get_execution(call: Call) -> Response:
    """Return an execution."""
    [(item,)] = await call.fetch("jobq_http.show_execution", execution_id=call.job_id())
    return json(item)


async def cancel_execution(call: Call) -> Response:
    """Cancel an execution that still waits; 409 when it does not."""
    execution_id = call.job_id()
    reason = (await call.body(Cancel)).reason
    [(item,)] = await call.fetch(
        "jobq_http.cancel_execution", execution_id=execution_id, reason=reason
    )
    if item is None:
        raise ApiError(
            "EXECUTION_NOT_CANCELLABLE", f"execution_id {execution_id} runs or has ended"
        )
    return json(item)


async def list_executions(call: Call) -> Response:
    """Return a page of a job's executions."""
    wanted = call.query(Paging)
    return page(
        call,
        await call.fetch(
            "jobq_http.page_executions",
            job_id=call.job_id(),
            before=wanted.position(call, datetime),
            max_executions=wanted.limit,
        ),
    )


async def list_attempts(call: Call) -> Response:
    """Return a page of attempts."""
    wanted = call.query(Paging)
    return page(
        call,
        await call.fetch(
            "jobq_http.page_attempts",
            job_id=call.job_id(),
            after=wanted.number(call, 2**31 - 1),
            max_attempts=wanted.limit,
        ),
    )


class LogPaging(Paging, forbid_unknown_fields=True, kw_only=True):
    """Which lines of a log."""

    newest: Annotated[bool, Meta(description="Go back from the newest line.")] = False


async def list_logs(call: Call) -> Response:
    """Return a page of log lines."""
    wanted = call.query(LogPaging)
    cursor = wanted.number(call, LAST_LINE)
    place = {"before": cursor or LAST_LINE} if wanted.newest else {"after": cursor}
    return page(
        call,
        await call.fetch(
            "jobq_http.page_logs", job_id=call.job_id(), max_lines=wanted.limit, **place
        ),
    )


def of_both(suffix: str) -> tuple[str, str]:
    """Return the paths under an execution and under its job."""
    return f"/executions/{{execution_id}}/{suffix}", f"/jobs/{{job_id}}/{suffix}"


MISSING = {404: ["EXECUTION_NOT_FOUND"]}

OPERATIONS = (
    Operation(
        "GET",
        "/executions/{execution_id}",
        get_execution,
        "Look an execution up",
        ("read", "produce", "work", "operate"),
        {200: Answer("The execution.", Execution, example=examples.EXECUTION)},
        MISSING,
        tag="executions",
    ),
    Operation(
        "POST",
        "/executions/{execution_id}/cancel",
        cancel_execution,
        "Cancel an execution that still waits",
        ("produce", "operate"),
        {200: Answer("It is cancelled.", Execution)},
        {**MISSING, 409: ["EXECUTION_NOT_CANCELLABLE"]},
        tag="executions",
        body=Cancel,
    ),
    Operation(
        "GET",
        "/jobs/{job_id}/executions",
        list_executions,
        "List the executions of a job, the newest first",
        (*READERS, "produce"),
        {200: Answer("A page of executions.", ExecutionPage)},
        {404: ["JOB_NOT_FOUND"]},
        tag="executions",
        query=Paging,
    ),
    *(
        Operation(
            "GET",
            path,
            list_attempts,
            "List attempts, in their order",
            (*READERS, "work"),
            {
                200: Answer(
                    "A page of attempts.",
                    AttemptPage,
                    example=examples.ATTEMPTS,
                )
            },
            {404: [code, "JOB_IS_RECURRING"]},
            tag="executions",
            query=Paging,
        )
        for path, code in zip(
            of_both("attempts"), ("EXECUTION_NOT_FOUND", "JOB_NOT_FOUND"), strict=True
        )
    ),
    *(
        Operation(
            "GET",
            path,
            list_logs,
            "List the lines that handlers have logged, in their order",
            (*READERS, "work"),
            {200: Answer("A page of lines.", LogPage, example=examples.LOGS)},
            {404: [code, "JOB_IS_RECURRING"]},
            tag="executions",
            query=LogPaging,
        )
        for path, code in zip(
            of_both("logs"), ("EXECUTION_NOT_FOUND", "JOB_NOT_FOUND"), strict=True
        )
    ),
)
