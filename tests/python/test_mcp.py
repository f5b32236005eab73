"""Tools for assistants: the SDK's own client, over HTTP with keys and over standard input."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import pytest
from http_api import SETTINGS, served
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict, Field

from jobq_mcp import McpSite
from jobq_mcp.tasks import EXTENSION
from jobq_mcp.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from http_api import Api

ACTIONS = {"cancel_job", "retry_job", "pause_queue", "resume_queue", "run_job"}


@pytest.fixture
async def api(database: str) -> AsyncIterator[Api]:
    async with served(database, replace(SETTINGS, mcp=McpSite)) as api:
        yield api


@asynccontextmanager
async def connected(api: Api, scopes: Sequence[str], **options: Any) -> AsyncIterator[Client]:
    """The SDK's client, with a key of these scopes."""
    async with httpx2.AsyncClient(headers=api.key(scopes), timeout=60) as http:
        url = f"{api.client.base_url}/mcp"
        async with Client(streamable_http_client(url, http_client=http), **options) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    return str(getattr(result.content[0], "text", ""))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_assistant_looks(api: Api, mode: str) -> None:
    [(job_id,)] = api.run("select jobq.enqueue('send_email', '{\"to\": \"ada\"}', queue => 'mail')")
    async with connected(api, ["read"], mode=mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed.keys() == {tool.name for tool in TOOLS}
        for name, tool in listed.items():
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is (name not in ACTIONS), name
            assert ("dry_run" in tool.input_schema["properties"]) is (name in ACTIONS), name
        queues = await call(client, "list_queues")
        assert [queue["queue"] for queue in queues["items"]] == ["mail"]
        assert "queue" in await call(client, "show_queue", queue="mail")
        found = await call(client, "find_jobs", states=["queued"], queue="mail")
        assert [job["job_id"] for job in found["items"]] == [str(job_id)]
        shown = await call(client, "show_job", job_id=str(job_id))
        assert shown["job"]["payload"] == {"to": "ada"} and shown["attempts"] == []
        reasons = (await call(client, "explain", job_id=str(job_id)))["reasons"]
        assert "no_worker" in {each["reason"] for each in reasons}
        assert (await call(client, "health"))["checks"]
        api.run("select from jobq.claim('{mail}', 'w')")
        api.run("select jobq.ask(%s, 1, 'send', 'Really send?')", job_id)
        [question] = (await call(client, "list_waits"))["questions"]
        assert question["question"] == "Really send?"


async def test_a_key_can_do_what_its_scope_allows(api: Api) -> None:
    [(job_id,)] = api.run("select jobq.enqueue('a')")
    async with connected(api, ["read"]) as client:
        for tool, given in (
            ("cancel_job", {"job_id": str(job_id)}),
            ("retry_job", {"job_id": str(job_id)}),
            ("pause_queue", {"queue": "default"}),
            ("resume_queue", {"queue": "default"}),
        ):
            for dry_run in (True, False):
                text = await refusal(client, tool, **given, dry_run=dry_run)
                assert text.startswith("FORBIDDEN"), tool
        assert (await refusal(client, "run_job", kind="a", dry_run=False)).startswith("FORBIDDEN")
    async with connected(api, ["produce"]) as client:
        assert (await refusal(client, "list_queues")).startswith("FORBIDDEN")
    assert api.run("select count(*), min(state) from jobq.job") == [(1, "queued")]
    nobody = await api.ask("POST", "/mcp", json={}, headers={"authorization": ""})
    assert nobody.status_code == 401


async def test_actions_do_nothing_unless_told_and_are_audited(api: Api) -> None:
    [(job_id,)] = api.run("select jobq.enqueue('a', max_attempts => 1)")
    api.run("select from jobq.claim('{default}', 'w')")
    api.run("select jobq.fail(%s, 1, 'no')", job_id)
    job = {"job_id": str(job_id)}
    async with connected(api, ["operate"]) as client:
        said = await call(client, "retry_job", **job)
        assert said == {"dry_run": True, "action": "retry", "jobs": [job]}
        assert "now" in await call(client, "pause_queue", queue="default", reason="why")
        assert api.run("select state from jobq.job") == [("dead",)]
        said = await call(client, "retry_job", **job, dry_run=False)
        assert said == {"dry_run": False, "action": "retry", "jobs": [job]}
        assert "not dead" in (await call(client, "retry_job", **job))["note"]
        await call(client, "pause_queue", queue="default", reason="why", dry_run=False)
        said = await call(client, "cancel_job", **job, reason="wrong")
        assert [each["outcome"] for each in said["jobs"]] == ["queued"]
        assert api.run("select state from jobq.job") == [("queued",)]
        await call(client, "cancel_job", **job, reason="wrong", dry_run=False)
        assert api.run("select state, cancel_reason from jobq.job") == [("cancelled", "wrong")]
        await call(client, "resume_queue", queue="default")
        await call(client, "resume_queue", queue="default", dry_run=False)
        assert (await refusal(client, "cancel_job", **job)).startswith("ILLEGAL_STATE")
    audit = api.run("select action, reason, acting_for from jobq.audit order by audit_id")
    actions = [(a, r, w) for a, r, w in audit if a != "create_api_key"]
    assert [(a, r) for a, r, _ in actions] == [
        ("redrive", None), ("pause_queue", "why"), ("cancel", "wrong"), ("resume_queue", None),
    ]  # fmt: skip
    assert all(who.startswith("API key test-") and who.endswith(" by MCP") for *_, who in actions)


async def test_what_is_not_valid_is_told(api: Api) -> None:
    async with connected(api, ["read", "operate", "produce"]) as client:
        unknown = "00000000-0000-7000-8000-000000000000"
        assert (await refusal(client, "show_job", job_id=unknown)).startswith("JOB_NOT_FOUND")
        assert (await refusal(client, "show_job", job_id="x")).startswith("INVALID_REQUEST")
        assert (await refusal(client, "show_job")).startswith("INVALID_REQUEST")
        assert (await refusal(client, "health", x=1)).startswith("INVALID_REQUEST")
        assert "no tool" in await refusal(client, "drop_everything")
        assert (await refusal(client, "find_jobs", search="x")).startswith("INVALID_REQUEST")


# ---- tasks


class Task(Result):
    """What a client with the extension gets instead of a result."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = Field(alias="resultType", default="task")
    task_id: str = Field(alias="taskId")
    status: str


class Found(Result):
    """A task as tasks/get returns it."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)
    task_id: str = Field(alias="taskId")
    status: str
    status_message: str = Field(alias="statusMessage")
    result: dict[str, Any] | None = None


class TaskParams(RequestParams):
    task_id: str = Field(alias="taskId")


class TaskRequest(Request[TaskParams, Literal["tasks/get", "tasks/cancel", "tasks/update"]]):
    method: Literal["tasks/get", "tasks/cancel", "tasks/update"]
    params: TaskParams


class Tasks(ClientExtension):
    """A client that keeps the task, to look later."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        async def resolve(task: Task, _context: ClaimContext) -> CallToolResult:
            self.tasks.append(task)
            return CallToolResult(content=[])

        return [ResultClaim(result_type="task", model=Task, resolve=resolve)]


async def ask(client: Client, method: Any, task_id: str, answer: type[Any]) -> Any:
    request = TaskRequest(method=method, params=TaskParams(taskId=task_id))
    return await client.session.send_request(request, answer)


async def test_a_job_is_a_task_for_who_takes_tasks(api: Api) -> None:
    tasks = Tasks()
    async with connected(api, ["produce"], extensions=[tasks]) as client:
        planned = await call(client, "run_job", kind="report", payload={"year": 2026})
        assert planned["dry_run"] is True and not tasks.tasks
        await client.call_tool("run_job", {"kind": "report", "dry_run": False})
        [task] = tasks.tasks
        [(job_id, kind)] = api.run("select job_id, kind from jobq.job")
        assert (task.task_id, task.status, kind) == (str(job_id), "working", "report")
        found = await ask(client, "tasks/get", task.task_id, Found)
        assert found.status == "working" and "no_worker" in found.status_message
        api.run("select from jobq.claim('{default}', 'w')")
        api.run("select jobq.ask(%s, 1, 'sure', 'Really?')", job_id)
        found = await ask(client, "tasks/get", task.task_id, Found)
        assert found.status == "working" and "a person: Really?" in found.status_message
        api.run("select jobq.answer(%s, 'sure', true)", job_id)
    # Another client, after the first has gone.
    async with connected(api, ["produce"], extensions=[Tasks()]) as client:
        [(attempt,)] = api.run("select attempt from jobq.claim('{default}', 'w')")
        api.run("select jobq.complete(%s, %s, '{\"pages\": 7}')", job_id, attempt)
        found = await ask(client, "tasks/get", task.task_id, Found)
        assert found.status == "completed"
        assert found.result["structuredContent"] == {"pages": 7} and not found.result["isError"]


async def test_a_task_fails_and_is_cancelled(api: Api) -> None:
    tasks = Tasks()
    async with connected(api, ["produce"], extensions=[tasks]) as client:
        for _ in range(2):
            await client.call_tool("run_job", {"kind": "report", "dry_run": False})
        dead, cancelled = (task.task_id for task in tasks.tasks)
        api.run("select jobq.claim_job(%s, 'w')", dead)
        api.run("select jobq.fail(%s, 1, 'no paper', 'PAPER', retryable => false)", dead)
        found = await ask(client, "tasks/get", dead, Found)
        assert (found.status, found.status_message) == ("completed", "dead: PAPER")
        assert found.result["isError"] and "no paper" in str(found.result["content"])
        await ask(client, "tasks/cancel", cancelled, Result)
        await ask(client, "tasks/update", cancelled, Result)
        assert (await ask(client, "tasks/get", cancelled, Found)).status == "cancelled"
        for task_id in ("x", "00000000-0000-7000-8000-000000000000"):
            for method in ("tasks/get", "tasks/cancel"):
                with pytest.raises(MCPError, match="not found"):
                    await ask(client, method, task_id, Found)
    assert api.run("select action from jobq.audit where subject = %s", cancelled) == [("cancel",)]


async def test_a_payload_is_checked_by_the_payload_spec_of_its_endpoint(api: Api) -> None:
    schema = '{"type": "object", "properties": {"to": {"type": "string", "format": "email"}}}'
    api.run("select jobq.put_payload_spec('mail', %s)", schema)
    api.run(
        "select jobq.put_endpoint('send', 'HTTP', '{\"url\": \"https://a.example\"}',"
        " payload_spec => 'mail')"
    )
    async with connected(api, ["produce"]) as client:
        for dry_run in (True, False):
            given = {"kind": "send", "payload": {"to": 7}, "dry_run": dry_run}
            text = await refusal(client, "run_job", **given)
            assert text.startswith("INPUT_VALIDATION_FAILED"), dry_run
    assert api.run("select count(*) from jobq.job") == [(0,)]


async def test_who_takes_no_tasks_gets_the_id(api: Api) -> None:
    async with connected(api, ["produce", "read"]) as client:
        key = {"idempotency_key": "k", "dry_run": False}
        said = await call(client, "run_job", kind="report", payload={"year": 2026}, **key)
        assert (await call(client, "run_job", kind="report", **key))["job_id"] == said["job_id"]
        shown = await call(client, "show_job", job_id=said["job_id"])
        assert shown["job"]["payload"] == {"year": 2026}


# ---- standard input


async def test_a_login_has_the_tools_over_standard_input(database: str) -> None:
    jobq = Path(sys.executable).with_name("jobq")
    server = StdioServerParameters(
        command=str(jobq), args=["mcp"], env={"DATABASE_URL": database, "PATH": "/usr/bin:/bin"}
    )
    async with Client(server) as client:
        said = await call(client, "run_job", kind="a", dry_run=False)
        await call(client, "cancel_job", job_id=said["job_id"], dry_run=False)
        shown = await call(client, "show_job", job_id=said["job_id"])
        assert shown["job"]["state"] == "cancelled"
