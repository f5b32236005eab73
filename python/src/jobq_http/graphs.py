"""Graphs: jobs that wait for each other, enqueued, drawn, cancelled and redriven together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from jobq.models import AfterFailure, State
from jobq_http.declared import section
from jobq_http.enqueued import JobOfKind, enqueued, inputs_of
from jobq_http.operation import encoded, text
from jobq_http.values import (
    TEXT,
    Moment,
    Reason,
    Request,
    list_of,
)

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq_http.operation import Call

NodeName = Annotated[str, Meta(min_length=1, max_length=256, pattern=TEXT)]
NodeNames = Annotated[list[NodeName], Meta(max_length=10_000)]


class SlotNode(JobOfKind, kw_only=True, omit_defaults=True):
    """A job of the graph of a recurring job."""

    name: NodeName
    after: Annotated[NodeNames, Meta(description="Names in the graph.")] | None = None
    after_failure: AfterFailure | None = None


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


NewGraphAnswer = list_of("NewGraphAnswer", "The jobs of a graph.", NodeReference)


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


TreeAnswer = list_of("TreeAnswer", "The jobs with which something was done.", TreeJob)


async def create_graph(call: Call) -> Response:
    """Create the jobs of a graph, all or none."""
    body = await call.body(NewGraph)
    jobs = [enqueued(node) for node in body.jobs]
    await call.check(inputs_of(jobs))
    given = {} if body.graph_of is None else {"graph_of": body.graph_of}
    rows = await call.fetch("enqueue_graph", graph=text({"jobs": jobs}), **given)
    return encoded({"items": [{"name": name, "job_id": job_id} for name, job_id in rows]}, 201)


of = section("workflows")
# fmt: off
OPERATIONS = (
    of("POST /graphs", create_graph, "Create jobs that wait for each other, all or none",
       "produce work", NewGraphAnswer, status=201, body=NewGraph,
       errors="GRAPH_CYCLE BATCH_NOT_FOUND JOB_NOT_FOUND BATCH_ENDED ILLEGAL_STATE"
              " INPUT_VALIDATION_FAILED QUEUE_FULL",
       examples={"one after the other": {"jobs": [
           {"name": "fetch", "kind": "fetch"},
           {"name": "report", "kind": "report", "after": ["fetch"]},
       ]}}),
    of("GET /jobs/{job_id}/graph", "show_graph",
       "Show a job with all that hangs together with it, as nodes and edges; at most 1000 jobs",
       "produce read work operate", Graph, errors="JOB_NOT_FOUND"),
    of("POST /jobs/{job_id}/tree/cancel", "cancel_tree",
       "Cancel a job with all that hangs together with it",
       "produce operate", TreeAnswer, body=TreeCancellation, errors="JOB_NOT_FOUND",
       columns={"cancelled_id": "job_id"},
       examples={"all of it": {"reason": "ordered twice"}}),
    of("POST /jobs/{job_id}/tree/redrive", "redrive_tree",
       "Run jobs of a tree again that are dead or cancelled",
       "operate", TreeAnswer, body=TreeRedrive,
       columns={"redrive_tree": "job_id"}, says={"outcome": "redriven"},
       errors="JOB_NOT_FOUND DEDUP_CONFLICT IDEMPOTENCY_CONFLICT ILLEGAL_STATE",
       examples={"what failed": {"scope": "failed"}}),
)
# fmt: on
