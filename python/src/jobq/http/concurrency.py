"""Limits of single concurrency keys, and holds."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from jobq.http.operation import Answer, Operation, encoded
from jobq.http.values import ConcurrencyKey, Milliseconds, Moment, Name, Reason, Request

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call

Places = Annotated[float, Meta(ge=1, le=32767, multiple_of=1)]


class LimitsOf(Struct, forbid_unknown_fields=True):
    """Which limits to list."""

    queue: Name | None = None


class OneKey(Request):
    """A concurrency key of a queue."""

    queue: Name
    concurrency_key: ConcurrencyKey


class NewLimit(OneKey, kw_only=True):
    """What holds for one key, in place of what its queue says; one of two is needed."""

    max_running: Places | None = None
    rate_limit: Annotated[float, Meta(ge=1, le=1_000_000, multiple_of=1)] | None = None
    rate_period_ms: Milliseconds | None = None
    rate_burst: Places | None = None


class KeyHold(OneKey, kw_only=True):
    """Until when a key is held, and why."""

    until: Moment
    reason: Reason | None = None


class Limit(Struct):
    """The limit of a key, and how many jobs of the key run in places."""

    queue: str
    concurrency_key: str
    max_running: int | None
    rate_limit: int | None
    rate_period_ms: int | None
    rate_burst: int | None
    running: int
    updated_at: datetime


class Limits(Struct):
    """Limits of single keys."""

    items: list[Limit]


class Changed(Struct):
    """The key whose limit or hold has changed."""

    queue: str
    concurrency_key: str


class Released(Changed):
    """Whether the key was held."""

    was_held: bool


async def list_limits(call: Call) -> Response:
    """Return the limits of single keys."""
    rows = await call.fetch_named("list_limits", queue=call.query(LimitsOf).queue)
    for row in rows:
        period: timedelta | None = row.pop("rate_period")
        row["rate_period_ms"] = period and round(period / timedelta(milliseconds=1))
    return encoded({"items": rows})


async def put_limit(call: Call) -> Response:
    """Say what holds for one key."""
    given = await call.body(NewLimit)
    period = given.rate_period_ms
    await call.fetch(
        "put_limit",
        queue=given.queue,
        concurrency_key=given.concurrency_key,
        max_running=given.max_running,
        rate_limit=given.rate_limit,
        rate_period=None if period is None else timedelta(milliseconds=period),
        rate_burst=given.rate_burst,
    )
    return encoded({"queue": given.queue, "concurrency_key": given.concurrency_key})


async def delete_limit(call: Call) -> Response:
    """Have one key follow its queue again."""
    key = await key_of(call)
    await call.fetch("delete_limit", **key)
    return encoded(key)


async def hold_key(call: Call) -> Response:
    """Start no job of one key until a time."""
    given = await call.body(KeyHold)
    key = {"queue": given.queue, "concurrency_key": given.concurrency_key}
    await call.fetch("hold_key", **key, until=given.until, reason=given.reason)
    return encoded(key)


async def release_key(call: Call) -> Response:
    """Let the jobs of a held key start again."""
    key = await key_of(call)
    [(was_held,)] = await call.fetch("release_key", **key)
    return encoded({**key, "was_held": was_held})


async def key_of(call: Call) -> dict[str, str]:
    """Return the key that a request names."""
    given = await call.body(OneKey)
    return {"queue": given.queue, "concurrency_key": given.concurrency_key}


CUSTOMER = {"queue": "reports", "concurrency_key": "customer-42"}

OPERATIONS = (
    Operation(
        "GET",
        "/limits",
        list_limits,
        "List the limits of single concurrency keys",
        ("read", "operate"),
        {200: Answer("The limits, by queue and key.", Limits)},
        tag="queues",
        query=LimitsOf,
    ),
    Operation(
        "POST",
        "/limits",
        put_limit,
        "Say how many jobs of one key run at once, and how many start",
        ("operate",),
        {200: Answer("It holds at once.", Changed)},
        tag="queues",
        body=NewLimit,
        examples={"ten at a time": {**CUSTOMER, "max_running": 10}},
    ),
    Operation(
        "POST",
        "/limits/delete",
        delete_limit,
        "Have one key follow again what its queue says for each",
        ("operate",),
        {200: Answer("It has no limit of its own.", Changed)},
        {404: ["LIMIT_NOT_FOUND"]},
        tag="queues",
        body=OneKey,
        examples={"a customer": CUSTOMER},
    ),
    Operation(
        "POST",
        "/limits/hold",
        hold_key,
        "Start no job of one key until a time; what runs goes on",
        ("operate",),
        {200: Answer("It is held.", Changed)},
        tag="queues",
        body=KeyHold,
        examples={"until noon": {**CUSTOMER, "until": "2026-03-15T12:00:00Z"}},
    ),
    Operation(
        "POST",
        "/limits/release",
        release_key,
        "Let the jobs of a held key start again",
        ("operate",),
        {200: Answer("It is not held.", Released)},
        tag="queues",
        body=OneKey,
        examples={"a customer": CUSTOMER},
    ),
)
