"""Queues: statistics, pause and resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from jobq.http import examples
from jobq.http.operation import Answer, Operation, encoded
from jobq.http.page import Next, Paging, page
from jobq.http.values import Reason, Request

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


class Pausing(Struct):
    """Whether a queue is paused."""

    queue: str
    is_paused: bool


async def list_queues(call: Call) -> Response:
    """Return a page of queues with their statistics."""
    wanted = call.query(Paging)
    return page(
        await call.fetch(
            "jobq_http.page_queues", after=wanted.position(str), max_queues=wanted.limit
        )
    )


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
)
