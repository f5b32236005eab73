"""Workflows: steps, events, signals, batches, and graphs of jobs that wait for each other."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Raw

from jobq import models
from jobq_http.operation import Answer, section
from jobq_http.page import Paging
from jobq_http.values import (
    JobOfKind,
    LongName,
    Request,
    answer,
    answer_of,
    list_of,
    page_of,
    request,
    text,
)
from jobq_http.workers import ATTEMPT, LOST

NewStep = request(
    "NewStep",
    "The result of a step, or null; its name is unique in the job.",
    "name value",
    defaults={"value": msgspec.field(default_factory=lambda: Raw(b"null"))},
)
Wait = request(
    "Wait",
    "The event that a handler waits for.",
    "event timeout_ms?",
    timeout_ms=(
        Annotated[float, Meta(ge=0, le=3_153_600_000_000, multiple_of=1)],
        "From the first call; default: 36500 days.",
    ),
)
NewEvent = request("NewEvent", "The event.", "event payload~")
NewSignal = request("NewSignal", "A signal to one job.", "name payload~")
NewMessage = request("NewMessage", "A message to one job.", "name payload~")
SentMessage = answer(
    "SentMessage", "The number of the message among those of its name.", "number", number=int
)
ForkedJob = answer("ForkedJob", "The new job.", "job_id")
Forking = request(
    "Forking",
    "The first step that the new job runs again; by default it takes over all.",
    "from_step?",
    from_step=LongName,
)
Stream = answer_of(models.StreamInfo, "Stream")
Streams = page_of("Streams", "The streams of a job, by name.", Stream)
SavedStep = answer(
    "SavedStep",
    "A recorded step.",
    "job_id name value",
    value=(Any, "The recorded value, which may be an earlier one."),
)
Step = answer_of(models.Step, "Step")
Steps = page_of(
    "Steps",
    "The steps of a job, in their order; waits have the name ``event:`` and the event's name.",
    Step,
)
Waited = answer(
    "Waited",
    "The state of a wait. After ``waiting`` the job has been released, and the handler must end.",
    "job_id outcome payload",
    outcome=Literal["arrived", "timed_out", "waiting"],
)
Emitted = answer(
    "Emitted", "Whether this was the first of its name, whose payload is kept.", "created"
)
EMITTED = {
    201: Answer("It is the first of its name; jobs that wait for it continue.", Emitted),
    200: Answer("An earlier one exists and is kept.", Emitted),
}
Publication = request(
    "Publication", "The event, and the jobs.", "event payload~ metadata? idempotency_key?"
)
PublishedJob = answer("PublishedJob", "The job of a subscriber.", "kind job_id")
PublishedJobs = list_of("PublishedJobs", "A job for each subscriber.", PublishedJob, "jobs")
NewSubscription = request(
    "NewSubscription", "Which kind gets a job for which events.", "event kind queue?"
)
OldSubscription = request("OldSubscription", "The subscription to end.", "event kind")
Subscribed = answer("Subscribed", "The subscription.", "event kind", event=str)
Unsubscribed = answer("Unsubscribed", "Whether there was a subscription.", "existed", existed=bool)
Subscription = answer_of(models.Subscription, "Subscription")
Subscriptions = page_of("Subscriptions", "A page of subscriptions, by event.", Subscription)


Callback = request(
    "Callback",
    "A job that is blocked until then; it has no idempotency key or dedup key.",
    "run_at? batch_id?",
    JobOfKind,
)
NewBatch = request(
    "NewBatch",
    "The jobs that run when a batch ends.",
    "on_success? on_end? on_first_death?",
    on_success=Callback,
    on_end=Callback,
    on_first_death=Callback,
)
BatchCancellation = request(
    "BatchCancellation",
    "Why a batch is cancelled, and how many waiting members by this request.",
    "reason? max_jobs?",
    max_jobs=Annotated[float, Meta(ge=1, le=100_000, multiple_of=1)],
)
BatchStatus = answer_of(models.Batch, "BatchStatus", batch_id=UUID)
CancelledBatch = answer_of(models.CancelledBatch, "CancelledBatch")
Input = answer_of(models.Input, "Input")
Inputs = list_of("Inputs", "The parents of a job.", Input)
SHOWN = ("batch_status", "batch_id")


NodeNames = Annotated[list[LongName], Meta(max_length=10_000)]


SlotNode = request(
    "SlotNode",
    "A job of the graph of a recurring job.",
    "name after? after_failure?",
    JobOfKind,
    after=Annotated[NodeNames, Meta(description="Names in the graph.")],
)
SlotGraph = request(
    "SlotGraph",
    "Jobs after each run of a recurring job; those without `after` wait only for that run.",
    "jobs",
    jobs=Annotated[list[SlotNode], Meta(min_length=1, max_length=10_000)],  # type: ignore[valid-type]
)
NewNode = request(
    "NewNode",
    "A job of a graph.",
    "after? before? run_at? expires_at? batch_id?",
    SlotNode,
    after=(NodeNames, "Names in the graph, or ids."),
    before=(NodeNames, "Blocked jobs of the graph that this one joins."),
    expires_at="No attempt begins after it.",
)


class NewGraph(Request, kw_only=True):
    """Jobs with dependencies, all or none; graph_of is a live job whose graph they join."""

    jobs: Annotated[list[NewNode], Meta(min_length=1, max_length=10_000)]  # type: ignore[valid-type]
    graph_of: UUID | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of jobq.enqueue_graph()."""
        declared = self.declared()
        return {"graph": text({"jobs": declared.pop("jobs")}), **declared}


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
    after_failure=(
        Literal["cancel", "wait", "run", "call", "detach"],
        "``call`` or ``detach`` if the child has called the parent.",
    ),
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
    of(f"{ATTEMPT}/steps", "save_step", "Record the result of a step; the first value is kept",
       "work", SavedStep, body=NewStep, value="value", errors=LOST,
       examples={"a charge": {"name": "charge", "value": {"charge_id": 7}}}),
    of("GET /jobs/{job_id}/steps", "list_steps", "List the recorded steps of a job",
       "read work operate", Steps, query=Paging,
       order=lambda row: [row["saved_at"].isoformat(), row["name"]]),
    of(f"{ATTEMPT}/wait", "wait_for",
       "Wait for an event or a signal; releases the job until it arrives",
       "work", Waited, body=Wait, errors=LOST,
       examples={"an hour": {"event": "payment:42", "timeout_ms": 3_600_000}}),
    of("POST /events", "emit",
       "Emit an event to all jobs that wait for it, now or later",
       "produce work operate", EMITTED, body=NewEvent, value="created",
       examples={"a payment": {"event": "payment:42", "payload": {"euro": 5}}}),
    of("POST /events:publish", "publish",
       "Create a job of each kind that has subscribed to an event",
       "produce", PublishedJobs, body=Publication,
       errors="INPUT_VALIDATION_FAILED QUEUE_FULL IDEMPOTENCY_CONFLICT",
       examples={"a paid order": {"event": "order.paid", "payload": {"order_id": 7}}}),
    of("GET /subscriptions", "list_subscriptions", "List which kinds have subscribed to events",
       "read operate", Subscriptions, query=Paging,
       order=lambda row: [row["event"], row["kind"]]),
    of("POST /subscriptions", "subscribe", "Subscribe a kind to an event",
       "operate", Subscribed, body=NewSubscription,
       examples={"receipts": {"event": "order.paid", "kind": "send_receipt"}}),
    of("POST /subscriptions/delete", "unsubscribe", "End the subscription of a kind to an event",
       "operate", Unsubscribed, body=OldSubscription, value="existed",
       examples={"receipts": {"event": "order.paid", "kind": "send_receipt"}}),
    of("POST /jobs/{job_id}/signals", "signal", "Send a signal to one job",
       "produce work operate", EMITTED, body=NewSignal, value="created",
       errors="ILLEGAL_STATE",
       examples={"an approval": {"name": "approval", "payload": {"by": "ada"}}}),
    of("POST /jobs/{job_id}/messages", "send_message",
       "Send a message to one job, which receives those of a name in order",
       "produce work operate", SentMessage, status=201, body=NewMessage, value="number",
       errors="ILLEGAL_STATE",
       examples={"a correction": {"name": "chat", "payload": "in metric units, please"}}),
    of("GET /jobs/{job_id}/streams", "list_streams", "List the streams of a job",
       "produce read work operate", Streams, query=Paging,
       order=lambda row: [row["stream"]]),
    of("POST /jobs/{job_id}/fork", "fork",
       "Create a copy of a job that takes over its recorded steps up to one",
       "operate", ForkedJob, status=201, body=Forking, value="job_id",
       errors="INPUT_VALIDATION_FAILED QUEUE_FULL",
       examples={"from the second answer": {"from_step": "answer#2"}}),
    of("POST /batches", "open_batch", "Create a batch, with the jobs that run when it ends",
       "produce", BatchStatus, status=201, body=NewBatch, then=SHOWN,
       errors="BATCH_NOT_FOUND JOB_NOT_FOUND BATCH_ENDED INPUT_VALIDATION_FAILED QUEUE_FULL",
       examples={"a report": {
           "on_success": {"kind": "report"}, "on_first_death": {"kind": "alert"},
       }}),
    of("GET /batches/{batch_id}", "batch_status", "Show the progress of a batch",
       "produce read work operate", BatchStatus),
    of("POST /batches/{batch_id}/seal", "seal_batch",
       "Seal a batch, which then has all its members",
       "produce work operate", BatchStatus, then=SHOWN),
    of("POST /batches/{batch_id}/cancel", "cancel_batch",
       "Cancel the members of a batch, and seal it; repeat while some remain",
       "produce operate", CancelledBatch, body=BatchCancellation,
       examples={"a wrong list": {"reason": "wrong list"}}),
    of("GET /jobs/{job_id}/inputs", "list_inputs",
       "List the states and results of the jobs that a job waits or waited for",
       "produce read work operate", Inputs,
       columns={"parent_id": "job_id"}),
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
       "produce read work operate", Graph),
    of("POST /jobs/{job_id}/tree/cancel", "cancel_tree",
       "Cancel a job and all connected jobs",
       "produce operate", TreeAnswer, body=TreeCancellation,
       columns={"cancelled_id": "job_id"},
       examples={"all of it": {"reason": "ordered twice"}}),
    of("POST /jobs/{job_id}/tree/redrive", "redrive_tree",
       "Redrive dead and cancelled jobs of a tree",
       "operate", TreeAnswer, body=TreeRedrive,
       columns={"redrive_tree": "job_id"}, always={"outcome": "redriven"},
       errors="DEDUP_CONFLICT IDEMPOTENCY_CONFLICT ILLEGAL_STATE",
       examples={"what failed": {"scope": "failed"}}),
)
# fmt: on
