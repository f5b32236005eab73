"""Queues: statistics, pause and resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from jobq.http import examples
from jobq.http.operation import Answer, Operation, encoded, json
from jobq.http.page import Next, Paging, page
from jobq.http.values import ConcurrencyKey, Moment, Reason, Request

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call


class Pause(Request):
    """Why something is paused."""

    reason: Reason | None = None


class Queue(Struct):
    """A queue and its jobs."""

    queue: str
    queued: Annotated[int, Meta(description="Jobs that could run now.")]
    scheduled: Annotated[int, Meta(description="Jobs that are not due yet.")]
    running: int
    retrying: int
    dead: int
    oldest_runnable_ms: Annotated[
        int | None, Meta(description="How long the first in line could have run.")
    ]
    finished_last_minute: int
    is_paused: bool
    lanes: Annotated[int, Meta(description="Concurrency keys with work, by priority.")]
    closed_lanes: Annotated[int, Meta(description="Those that may start no job now.")]
    is_exact: Annotated[
        bool,
        Meta(
            description="Whether `queued`, `scheduled` and `retrying` are counts of now; of a long"
            " queue they are about a minute old."
        ),
    ]
    blocked: Annotated[int, Meta(description="Jobs that wait for other jobs.")]


class QueuePage(Struct):
    """A page of queues, by name."""

    items: list[Queue]
    cursor: Next


class KeyOf(Struct, forbid_unknown_fields=True):
    """Which key to look at."""

    concurrency_key: ConcurrencyKey | None = None


class Runner(Struct):
    """A job that takes a place of a key."""

    concurrency_key: str
    job_id: UUID
    kind: str
    worker: str | None
    started_at: Moment | None


class Hold(Struct):
    """A key, or a kind in a queue, that starts no job; until it is released where it has no end."""

    concurrency_key: str | None
    kind: str | None
    until: Moment | None
    reason: str | None


class Allowance(Struct):
    """What a key may; null where nothing is said."""

    concurrency_key: str
    max_running: int | None
    rate_limit: int | None
    rate_period_ms: int | None
    rate_burst: int | None


class KeyState(Allowance):
    """What holds for a key now."""

    is_held: bool
    held_until: Moment | None
    hold_reason: str | None
    waiting: Annotated[int, Meta(description="10001 means more.")]
    runners: list[Runner]


class ClosedKey(Struct):
    """A key that has work and waits for a time."""

    concurrency_key: str
    open_at: Moment


class QueueInDetail(Struct):
    """What a queue allows, which of its keys are held, and which jobs hold keys."""

    queue: str
    is_declared: bool
    paused_at: Moment | None
    pause_reason: str | None
    max_depth: int | None
    max_running: int | None
    rate_limit: int | None
    rate_period_ms: int | None
    rate_burst: int | None
    key_max_running: int | None
    key_rate_limit: int | None
    key_rate_period_ms: int | None
    key_rate_burst: int | None
    ordered: bool
    on_dead: Literal["continue", "hold"] | None
    holds: Annotated[list[Hold], Meta(description="100 at most, as of all lists here.")]
    limits: list[Allowance]
    runners: list[Runner]
    closed: list[ClosedKey]
    key: Annotated[KeyState | None, Meta(description="Of the key that was asked for.")]


class Pausing(Struct):
    """Whether a queue is paused."""

    queue: str
    is_paused: bool


async def list_queues(call: Call) -> Response:
    """Return a page of queues with their statistics."""
    wanted = call.query(Paging)
    return page(
        call,
        await call.fetch(
            "jobq_http.page_queues", after=wanted.position(call, str), max_queues=wanted.limit
        ),
    )


async def show_queue(call: Call) -> Response:
    """Return a queue in detail."""
    key = call.query(KeyOf).concurrency_key
    [(document,)] = await call.fetch(
        "jobq_http.show_queue", queue=call.text("queue"), concurrency_key=key
    )
    return json(document)


async def pause_queue(call: Call) -> Response:
    """Stop claims from a queue."""
    queue = call.text("queue")
    reason = (await call.body(Pause)).reason
    await call.fetch("pause_queue", queue=queue, reason=reason)
    return encoded({"queue": queue, "is_paused": True})


async def resume_queue(call: Call) -> Response:
    """Allow claims from a queue again."""
    queue = call.text("queue")
    await call.fetch("resume_queue", queue=queue)
    return encoded({"queue": queue, "is_paused": False})


OPERATIONS = (
    Operation(
        "GET",
        "/queues",
        list_queues,
        "List queues and their statistics, by name",
        ("read", "operate"),
        {200: Answer("A page of queues.", QueuePage, example=examples.QUEUES)},
        tag="queues",
        query=Paging,
        may_lag=True,
    ),
    Operation(
        "POST",
        "/queues/{queue}/pause",
        pause_queue,
        "Stop claims from a queue; what runs goes on, and so does creating jobs",
        ("operate",),
        {200: Answer("It is paused.", Pausing)},
        tag="queues",
        body=Pause,
        examples={"why": {"reason": "the mail provider is down"}},
    ),
    Operation(
        "POST",
        "/queues/{queue}/resume",
        resume_queue,
        "Allow claims from a queue again",
        ("operate",),
        {200: Answer("It is not paused.", Pausing)},
        {404: ["QUEUE_NOT_FOUND"]},
        tag="queues",
    ),
    # Behind the two above, since a name may have slashes.
    Operation(
        "GET",
        "/queues/{queue}",
        show_queue,
        "What a queue allows, which of its keys are held, and which jobs hold keys",
        ("read", "operate"),
        {200: Answer("The queue; one that nobody has declared allows all.", QueueInDetail)},
        tag="queues",
        query=KeyOf,
        may_lag=True,
    ),
)
