"""Steps, events and signals, for workers and others without a PostgreSQL driver."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from jobq.http.operation import Answer, Operation, encoded, text
from jobq.http.values import TEXT, AnyJson, Json, Moment, Request
from jobq.http.workers import ATTEMPT, LOST, WORK, attempt_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call

LongName = Annotated[str, Meta(min_length=1, max_length=256, pattern=TEXT)]
NULL = Raw(b"null")


class NewStep(Request, kw_only=True):
    """What a step has come to, null without a value; its name is unique within the job."""

    name: LongName
    value: Json | UnsetType = UNSET


class Wait(Request, kw_only=True):
    """What a handler waits for."""

    event: LongName
    timeout_ms: (
        Annotated[
            float,
            Meta(
                ge=0,
                le=3_155_760_000_000,
                description="From the first call; 36500 days without it.",
                multiple_of=1,
            ),
        ]
        | None
    ) = None


class NewEvent(Request, kw_only=True):
    """What has happened."""

    event: LongName
    payload: Json | UnsetType = UNSET


class NewSignal(Request, kw_only=True):
    """What one job is told."""

    name: LongName
    payload: Json | UnsetType = UNSET


class SavedStep(Struct):
    """A step, as it is recorded."""

    job_id: UUID
    name: str
    value: Annotated[
        Any, Meta(description="What is recorded: an earlier value where there was one.")
    ]


class Step(Struct):
    """What a step of a job has come to."""

    name: str
    value: AnyJson
    attempt: int
    saved_at: Moment


class Steps(Struct):
    """The steps of a job, in their order, and as ``event:`` and its name what it waited for."""

    items: list[Step]


class Waited(Struct):
    """How a wait stands. With ``waiting`` the job has been given back: the handler must end."""

    job_id: UUID
    outcome: Literal["arrived", "timed_out", "waiting"]
    payload: AnyJson


class Emitted(Struct):
    """Whether this was the first of its name, whose payload stays."""

    created: bool


async def save_step(call: Call) -> Response:
    """Record what a step has come to."""
    attempt = attempt_of(call)
    step = await call.body(NewStep)
    [(value,)] = await call.fetch("save_step", **attempt, name=step.name, value=given(step.value))
    return encoded({"job_id": attempt["job_id"], "name": step.name, "value": Raw(value)})


async def list_steps(call: Call) -> Response:
    """Return what the steps of a job have come to."""
    rows = await call.fetch_named("list_steps", job_id=call.job_id())
    return encoded({"items": [row | {"value": Raw(row["value"])} for row in rows]})


async def wait_for(call: Call) -> Response:
    """Wait for an event, or have the job given back until it comes."""
    attempt = attempt_of(call)
    wait = await call.body(Wait)
    longest = wait.timeout_ms
    [(outcome, payload)] = await call.fetch(
        "wait_for",
        **attempt,
        event=wait.event,
        timeout=None if longest is None else timedelta(milliseconds=longest),
    )
    came = NULL if payload is None else Raw(payload)
    return encoded({"job_id": attempt["job_id"], "outcome": outcome, "payload": came})


async def emit(call: Call) -> Response:
    """Say that an event has happened."""
    body = await call.body(NewEvent)
    [(created,)] = await call.fetch("emit", event=body.event, payload=given(body.payload))
    return encoded({"created": created}, 201 if created else 200)


async def signal(call: Call) -> Response:
    """Tell one job something."""
    job_id = call.job_id()
    body = await call.body(NewSignal)
    [(created,)] = await call.fetch(
        "signal", job_id=job_id, name=body.name, payload=given(body.payload)
    )
    return encoded({"created": created}, 201 if created else 200)


def given(value: Raw | UnsetType) -> str:
    """Return JSON text: what a request gives, or null."""
    return "null" if value is UNSET else text(value)


TOO_MUCH = {413: ["MESSAGE_TOO_LARGE"], 422: ["INVALID_MESSAGE"]}
EMITTED = {
    201: Answer("It is the first, and those that wait for it go on.", Emitted),
    200: Answer("There was one already; that one stays.", Emitted),
}

OPERATIONS = (
    Operation(
        "POST",
        f"{ATTEMPT}/steps",
        save_step,
        "Record what a step has come to; the first value stays",
        WORK,
        {200: Answer("What is recorded.", SavedStep)},
        {**LOST, **TOO_MUCH},
        tag="workflows",
        body=NewStep,
        examples={"a charge": {"name": "charge", "value": {"charge_id": 7}}},
    ),
    Operation(
        "GET",
        "/jobs/{job_id}/steps",
        list_steps,
        "List what the steps of a job have come to",
        ("read", "work", "operate"),
        {200: Answer("The steps, in their order.", Steps)},
        {404: ["JOB_NOT_FOUND"]},
        tag="workflows",
    ),
    Operation(
        "POST",
        f"{ATTEMPT}/wait",
        wait_for,
        "Wait for an event or a signal, or have the job given back until it comes",
        WORK,
        {200: Answer("What has come, or that the job waits.", Waited)},
        LOST,
        tag="workflows",
        body=Wait,
        examples={"an hour": {"event": "payment:42", "timeout_ms": 3_600_000}},
    ),
    Operation(
        "POST",
        "/events",
        emit,
        "Say that an event has happened, for all jobs that wait for it or will",
        ("produce", "work", "operate"),
        EMITTED,
        TOO_MUCH,
        tag="workflows",
        body=NewEvent,
        examples={"a payment": {"event": "payment:42", "payload": {"euro": 5}}},
    ),
    Operation(
        "POST",
        "/jobs/{job_id}/signals",
        signal,
        "Tell one job something that it waits for or will",
        ("produce", "work", "operate"),
        EMITTED,
        {404: ["JOB_NOT_FOUND"], 409: ["ILLEGAL_STATE"], **TOO_MUCH},
        tag="workflows",
        body=NewSignal,
        examples={"an approval": {"name": "approval", "payload": {"by": "ada"}}},
    ),
)
