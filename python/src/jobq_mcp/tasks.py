"""The Tasks extension: a job as a task of the protocol, which outlives the connection."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, RequestParams
from pydantic import Field

from jobq_mcp.caller import FOLLOW, Caller

EXTENSION: Final = "io.modelcontextprotocol/tasks"
POLL_MS: Final = 1000

# The states of a job as those of a task. A dead job has ended with an error of its handler, not
# of the protocol, so it is completed.
STATUS: Final = {
    "blocked": "working", "queued": "working", "running": "working", "retrying": "working",
    "succeeded": "completed", "dead": "completed", "cancelled": "cancelled",
}  # fmt: skip


class TaskParams(RequestParams):
    """Which task."""

    task_id: str = Field(alias="taskId")


async def task_of(caller: Caller, job_id: UUID) -> dict[str, Any]:
    """Return the task of a job, with its result if it has ended.

    Raises:
        psycopg.Error: it does not exist.
    """
    document = await caller.value(FOLLOW, "jobq_http.show_job", job_id=job_id, vocabulary="kind")
    job = msgspec.json.decode(document)
    if "state" not in job:
        raise unknown(str(job_id))
    ended = job["finished_at"]
    task: dict[str, Any] = {
        "taskId": str(job_id),
        "status": STATUS[job["state"]],
        "statusMessage": await message_of(caller, job),
        "createdAt": job["created_at"],
        "lastUpdatedAt": ended or job["heartbeat_at"] or job["started_at"] or job["created_at"],
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }
    if task["status"] == "completed":
        task["result"] = result_of(job)
    return task


async def message_of(caller: Caller, job: dict[str, Any]) -> str:
    """Return what a person may read about the state of a job."""
    if job["state"] == "dead":
        return f"dead: {job['last_error_code']}"
    if job["finished_at"]:
        return str(job["state"])
    reasons = await caller.rows(FOLLOW, "explain", job_id=job["job_id"])
    return "; ".join(f"{row['reason']}: {row['explanation']}" for row in reasons) or job["state"]


def result_of(job: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool call whose job has ended."""
    if job["state"] == "dead":
        text = f"{job['last_error_code']}: {job['last_error']}"
        return {"content": [{"type": "text", "text": text}], "isError": True}
    result = job["result"]
    text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    shown: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    return {**shown, "structuredContent": result} if isinstance(result, dict) else shown


def id_of(params: TaskParams) -> UUID:
    """Return the id of the job of a task.

    Raises:
        MCPError: there is no such task.
    """
    try:
        return UUID(params.task_id)
    except ValueError:
        raise unknown(params.task_id) from None


def unknown(task_id: str) -> MCPError:
    """Return the error for a task that does not exist."""
    return MCPError(code=INVALID_PARAMS, message=f"Task not found: {task_id[:64]}")
