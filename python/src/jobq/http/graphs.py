"""Graphs: jobs that wait for each other, enqueued, drawn, cancelled and redriven together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from jobq.http.enqueued import enqueued, inputs_of
from jobq.http.operation import Answer, Operation, encoded, json, text
from jobq.http.values import (
    TEXT,
    AfterFailure,
    Attempts,
    ConcurrencyKey,
    Json,
    JsonMembers,
    Milliseconds,
    Moment,
    Name,
    Priority,
    Reason,
    Request,
    State,
)

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call

NodeName = Annotated[str, Meta(min_length=1, max_length=256, pattern=TEXT)]
NodeNames = Annotated[list[NodeName], Meta(max_length=10_000)]


class SlotNode(Request, kw_only=True, omit_defaults=True):
    """A job of the graph of a recurring job."""

    name: NodeName
    kind: Name
    payload: Json | UnsetType = UNSET
    after: Annotated[NodeNames, Meta(description="Names in the graph.")] | None = None
    after_failure: AfterFailure | None = None
    queue: Name | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    timeout_ms: Milliseconds | None = None
    metadata: JsonMembers | None = None
    concurrency_key: ConcurrencyKey | None = None


class SlotGraph(Request, kw_only=True):
    """Jobs that run after each job of a recurring job; those without `after` wait for it alone."""

    jobs: Annotated[list[SlotNode], Meta(min_length=1, max_length=10_000)]

    def declared(self) -> dict[str, Any]:
        """Return the object that the database takes."""
        return {"jobs": [enqueued(node) for node in self.jobs]}


class NewNode(SlotNode, kw_only=True, omit_defaults=True):
    """A job of a graph."""

    after: Annotated[NodeNames, Meta(description="Names in the graph, or ids.")] | None = None
    before: (
        Annotated[NodeNames, Meta(description="Blocked jobs of the graph that this one joins.")]
        | None
    ) = None
    run_at: Moment | None = None
    expires_at: Annotated[Moment, Meta(description="No attempt begins after it.")] | None = None
    batch_id: UUID | None = None


class NewGraph(Request, kw_only=True):
    """Jobs that wait for each other, all or none; graph_of is a live job whose graph they join."""

    jobs: Annotated[list[NewNode], Meta(min_length=1, max_length=10_000)]
    graph_of: UUID | None = None


class NodeReference(Struct):
    """A job of a graph."""

    name: str
    job_id: UUID


class NewGraphAnswer(Struct):
    """The jobs of a graph."""

    items: list[NodeReference]


class Node(Struct):
    """A job as it is drawn."""

    job_id: UUID
    name: Annotated[str | None, Meta(description="Its name in the graph.")]
    kind: str
    queue: str
    state: State
    attempts: int
    max_attempts: int
    created_at: Moment
    run_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    error_code: Annotated[
        str | None, Meta(description="While it is dead, cancelled or retrying; so is `error`.")
    ]
    error: str | None
    batch_id: UUID | None
    waits_for: Annotated[int, Meta(description="How many jobs it still waits for.")]
    held_up_by: Annotated[
        UUID | None, Meta(description="A job above it that waits for none, and holds it up.")
    ]


class Edge(Struct):
    """That one job waits for another; not any more where it is not open."""

    parent_id: UUID
    child_id: UUID
    after_failure: AfterFailure
    is_open: bool


class Graph(Struct):
    """A job with all that hangs together with it."""

    job_id: UUID
    graph_id: UUID | None
    is_whole: bool
    nodes: list[Node]
    edges: list[Edge]


class TreeCancellation(Request, kw_only=True):
    """Why, and how far: all, or the job and what waits for it."""

    reason: Reason | None = None
    scope: Literal["all", "downstream"] = "all"


class TreeRedrive(Request, kw_only=True):
    """How far: what failed, the job and what waits for it, or all."""

    scope: Literal["failed", "downstream", "all"] = "failed"


class TreeJob(Struct):
    """What was done with a job."""

    job_id: UUID
    outcome: Literal["cancelled", "cancel_requested", "redriven"]


class TreeAnswer(Struct):
    """The jobs with which something was done."""

    items: list[TreeJob]


async def create_graph(call: Call) -> Response:
    """Create the jobs of a graph, all or none."""
    body = await call.body(NewGraph, envelope=3)
    jobs = [enqueued(node) for node in body.jobs]
    await call.check(inputs_of(jobs))
    given = {} if body.graph_of is None else {"graph_of": body.graph_of}
    rows = await call.fetch("enqueue_graph", graph=text({"jobs": jobs}), **given)
    return encoded({"items": [{"name": name, "job_id": job_id} for name, job_id in rows]}, 201)


async def show_graph(call: Call) -> Response:
    """Return a job with all that hangs together with it."""
    [(document,)] = await call.fetch("show_graph", job_id=call.job_id())
    return json(document)


async def cancel_tree(call: Call) -> Response:
    """Cancel a job with all that hangs together with it."""
    job_id = call.job_id()
    body = await call.body(TreeCancellation)
    rows = await call.fetch("cancel_tree", job_id=job_id, reason=body.reason, scope=body.scope)
    return encoded({"items": [{"job_id": job_id, "outcome": done} for job_id, done in rows]})


async def redrive_tree(call: Call) -> Response:
    """Run jobs of a tree again."""
    job_id = call.job_id()
    body = await call.body(TreeRedrive)
    rows = await call.fetch("redrive_tree", job_id=job_id, scope=body.scope)
    return encoded({"items": [{"job_id": job_id, "outcome": "redriven"} for (job_id,) in rows]})


OPERATIONS = (
    Operation(
        "POST",
        "/graphs",
        create_graph,
        "Create jobs that wait for each other, all or none",
        ("produce", "work"),
        {201: Answer("The jobs, by name.", NewGraphAnswer)},
        {
            400: ["GRAPH_CYCLE"],
            404: ["BATCH_NOT_FOUND", "JOB_NOT_FOUND"],
            409: ["BATCH_ENDED", "ILLEGAL_STATE"],
            413: ["MESSAGE_TOO_LARGE"],
            422: ["INPUT_VALIDATION_FAILED", "INVALID_MESSAGE"],
            429: ["QUEUE_FULL"],
        },
        tag="workflows",
        body=NewGraph,
        examples={
            "one after the other": {
                "jobs": [
                    {"name": "fetch", "kind": "fetch"},
                    {"name": "report", "kind": "report", "after": ["fetch"]},
                ]
            }
        },
    ),
    Operation(
        "GET",
        "/jobs/{job_id}/graph",
        show_graph,
        "Show a job with all that hangs together with it, as nodes and edges",
        ("produce", "read", "work", "operate"),
        {200: Answer("At most 1000 jobs.", Graph)},
        {404: ["JOB_NOT_FOUND"]},
        tag="workflows",
    ),
    Operation(
        "POST",
        "/jobs/{job_id}/tree/cancel",
        cancel_tree,
        "Cancel a job with all that hangs together with it",
        ("produce", "operate"),
        {200: Answer("The jobs that were live.", TreeAnswer)},
        {404: ["JOB_NOT_FOUND"]},
        tag="workflows",
        body=TreeCancellation,
        examples={"all of it": {"reason": "ordered twice"}},
    ),
    Operation(
        "POST",
        "/jobs/{job_id}/tree/redrive",
        redrive_tree,
        "Run jobs of a tree again that are dead or cancelled",
        ("operate",),
        {200: Answer("The jobs that went back.", TreeAnswer)},
        {404: ["JOB_NOT_FOUND"], 409: ["DEDUP_CONFLICT", "IDEMPOTENCY_CONFLICT", "ILLEGAL_STATE"]},
        tag="workflows",
        body=TreeRedrive,
        examples={"what failed": {"scope": "failed"}},
    ),
)
