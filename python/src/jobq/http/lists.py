"""Kinds and workers, as lists."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

from msgspec import Meta, Raw, Struct

from jobq.http import examples
from jobq.http.operation import Answer, Operation, encoded, json
from jobq.http.values import JsonObject, Moment, Name

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call


class Kind(Struct):
    """What is declared of a kind; null where its queue or the default speaks."""

    kind: str
    queue: str | None
    priority: int | None
    max_attempts: int | None
    timeout_ms: int | None
    lease_ms: int | None
    retry_preset: str | None
    retry_strategy: str | None
    retry_initial_delay_ms: int | None
    retry_max_delay_ms: int | None
    retry_jitter: float | None
    dedup: str | None
    dedup_period_ms: int | None
    dedup_max_wait_ms: int | None
    reuse_key_after_failure: bool | None
    concurrency_key: list[str] | None
    max_running: int | None
    rate_limit: int | None
    rate_period_ms: int | None
    rate_burst: int | None
    key_max_running: int | None
    key_rate_limit: int | None
    key_rate_period_ms: int | None
    key_rate_burst: int | None
    ordered: bool | None
    on_dead: str | None
    keep_succeeded_ms: Annotated[int | None, Meta(description="0: they leave no trace.")]
    keep_dead_ms: int | None
    keep_cancelled_ms: int | None
    run: Annotated[str | None, Meta(description="The function of the database that it is.")]
    retry_on: list[str] | None
    is_endpoint: bool
    payload_schema: JsonObject | None
    version: Annotated[int | None, Meta(description="Of the program that declared it.")]
    updated_at: Moment


_SPANS: Final = {name for name in Kind.__struct_fields__ if name.endswith("_ms")}


class Kinds(Struct):
    """All kinds that are declared, by name."""

    items: list[Kind]


class OfWhat(Struct, forbid_unknown_fields=True):
    """Whose settings: those of a kind, in a queue; without them the defaults."""

    kind: Name | None = None
    queue: Name | None = None


Settings = Annotated[
    dict[str, Any],
    Meta(description="By name, as `settings` of the database says; times are intervals."),
]


class OldestJob(Struct):
    """A job that is running."""

    job_id: UUID
    kind: str
    started_at: Moment


class Worker(Struct):
    """A worker, and what it works on."""

    worker: str
    queues: list[str]
    started_at: Moment
    seen_at: Moment
    is_live: Annotated[bool, Meta(description="Whether it was seen within the last minute.")]
    jobs: Annotated[int, Meta(description="How many it runs.")]
    kinds: Annotated[dict[str, int], Meta(description="How many of each kind it runs.")]
    oldest: Annotated[OldestJob | None, Meta(description="What it has run the longest.")]
    region: str
    except_kinds: Annotated[list[str], Meta(description="Kinds that it does not know.")]
    release: Annotated[str | None, Meta(description="Of what it runs, as it says itself.")]
    stuck: Annotated[int, Meta(description="Slots that are held by handlers that hang.")]


class Workers(Struct):
    """Workers that were seen of late, live ones first, by name, 500 at most."""

    items: list[Worker]


async def list_kinds(call: Call) -> Response:
    """Return what is declared of each kind."""
    return encoded({"items": [_in_ms(row) for row in await call.fetch_named("list_kinds")]})


async def show_settings(call: Call) -> Response:
    """Return what would hold for a new job: what its kind says, else its queue, else the default.

    The limits of a kind have `kind_` before their names.
    """
    wanted = call.query(OfWhat)
    [(document,)] = await call.fetch("settings", kind=wanted.kind, queue=wanted.queue)
    return json(document)


async def list_workers(call: Call) -> Response:
    """Return the workers that were seen of late."""
    [(document,)] = await call.fetch("jobq_http.show_workers")
    return encoded({"items": Raw(document)})


def _in_ms(row: dict[str, Any]) -> dict[str, Any]:
    """Give durations in milliseconds, as everywhere in the API."""
    given: dict[str, Any] = {
        f"{name}_ms" if f"{name}_ms" in _SPANS else name: value // timedelta(milliseconds=1)
        if isinstance(value, timedelta)
        else value
        for name, value in row.items()
    }
    schema = given["payload_schema"]
    return given | {"payload_schema": schema if schema is None else Raw(schema)}


OPERATIONS = (
    Operation(
        "GET",
        "/kinds",
        list_kinds,
        "List the kinds that are declared",
        ("read", "operate"),
        {200: Answer("All kinds, by name.", Kinds, example=examples.KINDS)},
        tag="queues",
    ),
    Operation(
        "GET",
        "/settings",
        show_settings,
        "Show what holds for a new job",
        ("read", "operate"),
        {200: Answer("What holds.", Settings)},
        tag="queues",
        query=OfWhat,
    ),
    Operation(
        "GET",
        "/workers",
        list_workers,
        "List workers, and what they work on",
        ("read", "operate"),
        {200: Answer("Live ones first, by name.", Workers, example=examples.WORKERS)},
        tag="queues",
    ),
)
