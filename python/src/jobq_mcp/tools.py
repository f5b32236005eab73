"""The tools: to look, and to act. A tool that changes something makes a dry run by default."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta, Raw, Struct

from jobq.models import State
from jobq_http.values import TEXT, Name, Reason
from jobq_mcp.caller import ACT, LOOK, RUN, Caller

DryRun: TypeAlias = Annotated[
    bool, Meta(description="True only returns what would happen. Ask the user before false.")
]
JobId: TypeAlias = Annotated[UUID, Meta(description="The id of the job.")]
MOST_ATTEMPTS: Final = 20
MOST_STEPS: Final = 100


class Nothing(Struct, forbid_unknown_fields=True):
    """No arguments."""


class OneQueue(Struct, forbid_unknown_fields=True):
    """A queue."""

    queue: Name


class OneJob(Struct, forbid_unknown_fields=True):
    """A job."""

    job_id: JobId


class Search(Struct, forbid_unknown_fields=True):
    """Which jobs to find."""

    states: list[State] | None = None
    kind: Name | None = None
    queue: Name | None = None
    error_code: Annotated[str, Meta(max_length=128, pattern=TEXT)] | None = None
    search: Annotated[
        Annotated[str, Meta(min_length=4, max_length=512, pattern=TEXT)] | None,
        Meta(description="Part of an id, a key, or a part of the last error."),
    ] = None
    max_jobs: Annotated[int, Meta(ge=1, le=100)] = 20


class Cancellation(OneJob):
    """A job, and why it is cancelled."""

    reason: Reason | None = None
    dry_run: DryRun = True


class Retrial(OneJob):
    """A dead job."""

    dry_run: DryRun = True


class Pause(OneQueue):
    """A queue, and why it is paused."""

    reason: Reason | None = None
    dry_run: DryRun = True


class Resumption(OneQueue):
    """A queue."""

    dry_run: DryRun = True


class NewRun(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A new job."""

    kind: Name
    payload: Annotated[dict[str, Any], Meta(description="As the handler of the kind takes it.")] = (
        msgspec.field(default_factory=dict)
    )
    queue: Name | None = None
    idempotency_key: Annotated[
        Annotated[str, Meta(min_length=1, max_length=512, pattern=TEXT)] | None,
        Meta(description="A second call with this key returns the first job."),
    ] = None
    dry_run: DryRun = True


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    Attributes:
        name: its name.
        words: what it does, for the model.
        takes: type of its arguments.
        does: calls the database and returns something that is written as JSON.
        is_read_only: whether it never changes anything.
        is_destructive: whether what it changes cannot be taken back.
    """

    name: str
    words: str
    takes: type[Struct]
    does: Callable[[Caller, Any], Awaitable[Any]]
    is_read_only: bool = True
    is_destructive: bool = False


def document(function: str, **fixed: object) -> Callable[[Caller, Any], Awaitable[Any]]:
    """Return the handler of a tool that returns the document of a function."""

    async def show(caller: Caller, wanted: Struct) -> Any:  # noqa: ANN401 - JSON
        return await caller.value(LOOK, function, **given(wanted), **fixed)

    return show


def rows(name: str, function: str) -> Callable[[Caller, Any], Awaitable[Any]]:
    """Return the handler of a tool that returns the rows of a function, under this name."""

    async def show(caller: Caller, wanted: Struct) -> Any:  # noqa: ANN401 - JSON
        return {name: await caller.rows(LOOK, function, **given(wanted))}

    return show


def given(wanted: Struct) -> dict[str, Any]:
    """Return the arguments that are not null."""
    return {n: v for n, v in msgspec.structs.asdict(wanted).items() if v is not None}


async def show_job(caller: Caller, wanted: OneJob) -> Any:  # noqa: ANN401 - JSON
    """Return a job with its attempts and steps."""
    job_id = wanted.job_id
    job = await caller.value(LOOK, "jobq_http.show_job", job_id=job_id, vocabulary="kind")
    if "result" not in msgspec.json.decode(job, type=dict[str, Raw]):
        return {"recurring_job": job}
    attempts = await caller.rows(
        LOOK, "jobq_http.page_attempts", job_id=job_id, max_attempts=MOST_ATTEMPTS
    )
    steps = await caller.rows(LOOK, "list_steps", job_id=job_id)
    return {
        "job": job,
        "attempts": [row["item"] for row in attempts],
        "steps": steps[-MOST_STEPS:],
    }


async def cancel_job(caller: Caller, wanted: Cancellation) -> Any:  # noqa: ANN401 - JSON
    """Cancel a job."""
    arguments = given(wanted)
    found = await caller.rows(ACT, "cancel_many", job_ids=[arguments.pop("job_id")], **arguments)
    return done(wanted.dry_run, "cancel", jobs=found)


async def retry_job(caller: Caller, wanted: Retrial) -> Any:  # noqa: ANN401 - JSON
    """Return a dead job to its queue."""
    found = await caller.rows(ACT, "redrive_many", job_ids=[wanted.job_id], dry_run=wanted.dry_run)
    jobs = [{"job_id": next(iter(row.values()))} for row in found]
    words = "" if jobs else "The job is not dead, or another job has its key."
    return done(wanted.dry_run, "retry", words, jobs=jobs)


async def change_queue(action: str, caller: Caller, wanted: Pause | Resumption) -> Any:  # noqa: ANN401 - JSON
    """Pause or resume a queue; a dry run returns it as it is before."""
    if wanted.dry_run:
        now = await caller.value(ACT, "jobq_http.show_queue", queue=wanted.queue)
        return done(True, action, queue=wanted.queue, now=now)
    arguments = given(wanted)
    del arguments["dry_run"]
    await caller.rows(ACT, f"{action}_queue", **arguments)
    return done(False, action, queue=wanted.queue)


async def run_job(caller: Caller, wanted: NewRun) -> Any:  # noqa: ANN401 - JSON
    """Enqueue a job."""
    await caller.check(RUN, wanted.kind, wanted.payload)
    if wanted.dry_run:
        return done(True, "run", kind=wanted.kind, queue=wanted.queue, payload=wanted.payload)
    arguments = given(wanted) | {"payload": msgspec.json.encode(wanted.payload).decode()}
    del arguments["dry_run"]
    [row] = await caller.rows(RUN, "enqueue", **arguments)
    return done(False, "run", job_id=next(iter(row.values())))


def done(dry_run: bool, action: str, words: str = "", **shown: object) -> dict[str, Any]:
    """Return what an action has done, or would do."""
    told = {"note": words} if words else {}
    return {"dry_run": dry_run, "action": action, **shown, **told}


TOOLS: Final = (
    Tool("list_queues", "List queues: depth, age of the oldest job, pauses, workers.", Nothing,
         document("jobq_http.show_queues", max_queues=200)),
    Tool("show_queue", "Show a queue: limits, rates, held keys, and the jobs that hold keys.",
         OneQueue, document("jobq_http.show_queue")),
    Tool("find_jobs", "Find jobs, newest first, without their payloads.", Search,
         document("jobq_http.show_jobs")),
    Tool("show_job", "Show a job: state, payload, result, last attempts with errors, steps.",
         OneJob, show_job),
    Tool("explain", "Explain why a job does not run.", OneJob, rows("reasons", "explain")),
    Tool("health", "Check the queue: findings with their remedies.", Nothing,
         rows("checks", "health")),
    Tool("list_waits", "List the questions of jobs that wait for a person. Only a person answers.",
         Nothing, rows("questions", "list_waits")),
    Tool("cancel_job", "Cancel a waiting job, or ask the worker of a running one to stop.",
         Cancellation, cancel_job, is_read_only=False, is_destructive=True),
    Tool("retry_job", "Return a dead job to its queue.", Retrial, retry_job, is_read_only=False),
    Tool("pause_queue", "Stop a queue from starting jobs. Running jobs continue.", Pause,
         partial(change_queue, "pause"), is_read_only=False),
    Tool("resume_queue", "Let a paused queue start jobs again.", Resumption,
         partial(change_queue, "resume"), is_read_only=False),
    Tool("run_job", "Run a job of a kind. A client with the Tasks extension gets a task.", NewRun,
         run_job, is_read_only=False),
)  # fmt: skip
BY_NAME: Final = {tool.name: tool for tool in TOOLS}
