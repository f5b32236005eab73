"""Graphs: jobs that wait for each other, enqueued, drawn, cancelled and redriven together."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from jobq.models import AfterFailure
from jobq_http.declared import section
from jobq_http.values import (
    JobOfKind,
    LongName,
    Moment,
    Request,
    answer,
    inputs_of,
    list_of,
    request,
    text,
)

NodeNames = Annotated[list[LongName], Meta(max_length=10_000)]


class SlotNode(JobOfKind, kw_only=True):
    """A job of the graph of a recurring job."""

    name: LongName
    after: Annotated[NodeNames, Meta(description="Names in the graph.")] | None = None
    after_failure: AfterFailure | None = None


class SlotGraph(Request, kw_only=True):
    """Jobs after each run of a recurring job; those without `after` wait only for that run."""

    jobs: Annotated[list[SlotNode], Meta(min_length=1, max_length=10_000)]

    def declared(self) -> dict[str, Any]:
        """Return the object for the database."""
        return {"jobs": [node.declared() for node in self.jobs]}


class NewNode(SlotNode, kw_only=True):
    """A job of a graph."""

    after: Annotated[NodeNames | None, Meta(description="Names in the graph, or ids.")] = None
    before: Annotated[
        NodeNames | None, Meta(description="Blocked jobs of the graph that this one joins.")
    ] = None
    run_at: Moment | None = None
    expires_at: Annotated[Moment | None, Meta(description="No attempt begins after it.")] = None
    batch_id: UUID | None = None


class NewGraph(Request, kw_only=True):
    """Jobs with dependencies, all or none; graph_of is a live job whose graph they join."""

    jobs: Annotated[list[NewNode], Meta(min_length=1, max_length=10_000)]
    graph_of: UUID | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of jobq.enqueue_graph()."""
        arguments = super().arguments()
        jobs = [node.declared() for node in arguments.pop("jobs")]
        return {"graph": text({"jobs": jobs}), **arguments}

    def inputs(self, _kind: str | None) -> list[tuple[str, Any]]:
        """Return the kinds and payloads of its jobs."""
        return inputs_of(node.declared() for node in self.jobs)


NodeReference = answer("NodeReference", "A job of a graph.", "name job_id")
NewGraphAnswer = list_of("NewGraphAnswer", "The jobs of a graph.", NodeReference)
Node = answer(
    "Node",
    "A job as a node of a graph.",
    "job_id name? kind queue state attempts max_attempts created_at run_at started_at? finished_at?"
    " error_code? error? batch_id? waits_for held_up_by?",
    name="Its name in the graph.",
    error_code="Set, like `error`, while it is dead, cancelled or retrying.",
    waits_for="How many jobs it still waits for.",
    held_up_by="A job that blocks it and waits for none itself.",
)
Edge = answer(
    "Edge",
    "An edge from a parent to a child; the child waits while it is open.",
    "parent_id child_id after_failure is_open",
)
Graph = answer(
    "Graph",
    "A job with all connected jobs.",
    "job_id graph_id? is_whole nodes* edges*",
    nodes=Node,
    edges=Edge,
)
TreeCancellation = request(
    "TreeCancellation",
    "The reason and the scope: all, or the job and its descendants.",
    "reason? scope",
    scope=Literal["all", "downstream"],
    defaults={"scope": "all"},
)
TreeRedrive = request(
    "TreeRedrive",
    "The scope: failed jobs, the job and its descendants, or all.",
    "scope",
    scope=Literal["failed", "downstream", "all"],
    defaults={"scope": "failed"},
)
TreeJob = answer(
    "TreeJob",
    "The outcome for a job.",
    "job_id outcome",
    outcome=Literal["cancelled", "cancel_requested", "redriven"],
)
TreeAnswer = list_of("TreeAnswer", "The affected jobs.", TreeJob)

of = section("workflows")
# fmt: off
OPERATIONS = (
    of("POST /graphs", "enqueue_graph", "Create jobs with dependencies, all or none",
       "produce work", NewGraphAnswer, status=201, body=NewGraph, name="create_graph",
       errors="GRAPH_CYCLE BATCH_NOT_FOUND JOB_NOT_FOUND BATCH_ENDED ILLEGAL_STATE"
              " INPUT_VALIDATION_FAILED QUEUE_FULL",
       examples={"one after the other": {"jobs": [
           {"name": "fetch", "kind": "fetch"},
           {"name": "report", "kind": "report", "after": ["fetch"]},
       ]}}),
    of("GET /jobs/{job_id}/graph", "show_graph",
       "Show a job with all connected jobs, as nodes and edges; at most 1000 jobs",
       "produce read work operate", Graph, errors="JOB_NOT_FOUND"),
    of("POST /jobs/{job_id}/tree/cancel", "cancel_tree",
       "Cancel a job and all connected jobs",
       "produce operate", TreeAnswer, body=TreeCancellation, errors="JOB_NOT_FOUND",
       columns={"cancelled_id": "job_id"},
       examples={"all of it": {"reason": "ordered twice"}}),
    of("POST /jobs/{job_id}/tree/redrive", "redrive_tree",
       "Redrive dead and cancelled jobs of a tree",
       "operate", TreeAnswer, body=TreeRedrive,
       columns={"redrive_tree": "job_id"}, always={"outcome": "redriven"},
       errors="JOB_NOT_FOUND DEDUP_CONFLICT IDEMPOTENCY_CONFLICT ILLEGAL_STATE",
       examples={"what failed": {"scope": "failed"}}),
)
# fmt: on
