"""Steps, events and signals, for workers and others without a PostgreSQL driver."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw

from jobq import models
from jobq_http.declared import section
from jobq_http.operation import Answer
from jobq_http.page import Paging
from jobq_http.values import answer, answer_of, page_of, request
from jobq_http.workers import ATTEMPT, LOST

NewStep = request(
    "NewStep",
    "What a step has come to, null without a value; its name is unique within the job.",
    "name value",
    defaults={"value": msgspec.field(default_factory=lambda: Raw(b"null"))},
)
Wait = request(
    "Wait",
    "What a handler waits for.",
    "event timeout_ms?",
    timeout_ms=(
        Annotated[float, Meta(ge=0, le=3_153_600_000_000, multiple_of=1)],
        "From the first call; 36500 days without it.",
    ),
)
NewEvent = request("NewEvent", "What has happened.", "event payload~")
NewSignal = request("NewSignal", "What one job is told.", "name payload~")
SavedStep = answer(
    "SavedStep",
    "A step, as it is recorded.",
    "job_id name value",
    value=(Any, "What is recorded: an earlier value where there was one."),
)
Step = answer_of(models.Step, "Step")
Steps = page_of(
    "Steps",
    "The steps of a job, in their order, and as ``event:`` and its name what it waited for.",
    Step,
)
Waited = answer(
    "Waited",
    "How a wait stands. With ``waiting`` the job has been given back: the handler must end.",
    "job_id outcome payload",
    outcome=Literal["arrived", "timed_out", "waiting"],
)
Emitted = answer(
    "Emitted", "Whether this was the first of its name, whose payload stays.", "created"
)
EMITTED = {
    201: Answer("It is the first, and those that wait for it go on.", Emitted),
    200: Answer("There was one already; that one stays.", Emitted),
}
of = section("workflows")
# fmt: off
OPERATIONS = (
    of(f"{ATTEMPT}/steps", "save_step", "Record what a step has come to; the first value stays",
       "work", SavedStep, body=NewStep, value="value", errors=LOST,
       examples={"a charge": {"name": "charge", "value": {"charge_id": 7}}}),
    of("GET /jobs/{job_id}/steps", "list_steps", "List what the steps of a job have come to",
       "read work operate", Steps, query=Paging, errors="JOB_NOT_FOUND",
       order=lambda row: [row["saved_at"].isoformat(), row["name"]]),
    of(f"{ATTEMPT}/wait", "wait_for",
       "Wait for an event or a signal, or have the job given back until it comes",
       "work", Waited, body=Wait, errors=LOST,
       examples={"an hour": {"event": "payment:42", "timeout_ms": 3_600_000}}),
    of("POST /events", "emit",
       "Say that an event has happened, for all jobs that wait for it or will",
       "produce work operate", EMITTED, body=NewEvent, value="created",
       examples={"a payment": {"event": "payment:42", "payload": {"euro": 5}}}),
    of("POST /jobs/{job_id}/signals", "signal", "Tell one job something that it waits for or will",
       "produce work operate", EMITTED, body=NewSignal, value="created",
       errors="JOB_NOT_FOUND ILLEGAL_STATE",
       examples={"an approval": {"name": "approval", "payload": {"by": "ada"}}}),
)
# fmt: on
