"""Executions: look up, cancel while they wait, their attempts and logs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from jobq.http import documents, examples
from jobq.http.errors import ApiError
from jobq.http.jobs import Cancel
from jobq.http.operation import Answer, Operation, json
from jobq.http.page import Paging, page

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call

READERS = ("read", "operate")


async def get_execution(call: Call) -> Response:
    """Return an execution."""
    [(item,)] = await call.fetch("show_execution", execution_id=call.job_id())
    return json(item)


async def cancel_execution(call: Call) -> Response:
    """Cancel an execution that still waits; 409 when it does not."""
    execution_id = call.job_id()
    reason = (await call.body(Cancel)).reason
    [(item,)] = await call.fetch("cancel_execution", execution_id=execution_id, reason=reason)
    if item is None:
        raise ApiError(
            "EXECUTION_NOT_CANCELLABLE", f"execution_id {execution_id} runs or has ended"
        )
    return json(item)


async def list_executions(call: Call) -> Response:
    """Return a page of a job's executions."""
    wanted = call.query(Paging)
    return page(
        await call.fetch(
            "page_executions",
            job_id=call.job_id(),
            before=wanted.position(datetime),
            max_executions=wanted.limit,
        )
    )


async def list_attempts(call: Call) -> Response:
    """Return a page of attempts."""
    wanted = call.query(Paging)
    return page(
        await call.fetch(
            "page_attempts",
            job_id=call.job_id(),
            after=wanted.number(2**31 - 1),
            max_attempts=wanted.limit,
        )
    )


async def list_logs(call: Call) -> Response:
    """Return a page of log lines."""
    wanted = call.query(Paging)
    return page(
        await call.fetch(
            "page_logs",
            job_id=call.job_id(),
            after=wanted.number(2**63 - 1),
            max_lines=wanted.limit,
        )
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
        {200: Answer("The execution.", documents.Execution, example=examples.EXECUTION)},
        MISSING,
        tag="executions",
    ),
    Operation(
        "POST",
        "/executions/{execution_id}/cancel",
        cancel_execution,
        "Cancel an execution that still waits",
        ("produce", "operate"),
        {200: Answer("It is cancelled.", documents.Execution)},
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
        {200: Answer("A page of executions.", documents.ExecutionPage)},
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
                    documents.AttemptPage,
                    example=examples.ATTEMPTS,
                )
            },
            {404: [code]},
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
            {200: Answer("A page of lines.", documents.LogPage, example=examples.LOGS)},
            {404: [code]},
            tag="executions",
            query=Paging,
        )
        for path, code in zip(
            of_both("logs"), ("EXECUTION_NOT_FOUND", "JOB_NOT_FOUND"), strict=True
        )
    ),
)
