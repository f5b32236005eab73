"""Steps, events and signals, for workers and others without a PostgreSQL driver."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw

from jobq import models
from jobq_http.declared import section
from jobq_http.operation import Answer
from jobq_http.page import Paging
from jobq_http.values import answer, answer_of, list_of, page_of, request
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
of = section("workflows")
# fmt: off
OPERATIONS = (
    of(f"{ATTEMPT}/steps", "save_step", "Record the result of a step; the first value is kept",
       "work", SavedStep, body=NewStep, value="value", errors=LOST,
       examples={"a charge": {"name": "charge", "value": {"charge_id": 7}}}),
    of("GET /jobs/{job_id}/steps", "list_steps", "List the recorded steps of a job",
       "read work operate", Steps, query=Paging, errors="JOB_NOT_FOUND",
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
       errors="JOB_NOT_FOUND ILLEGAL_STATE",
       examples={"an approval": {"name": "approval", "payload": {"by": "ada"}}}),
)
# fmt: on
