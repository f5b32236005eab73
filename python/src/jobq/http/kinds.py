"""Kinds: what operators declare of them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct
from starlette.responses import Response

from jobq.http.operation import Answer, Operation, encoded, text
from jobq.http.values import (
    Attempts,
    Dedup,
    JsonMembers,
    Milliseconds,
    Name,
    Priority,
    Request,
    Text,
)

if TYPE_CHECKING:
    from jobq.http.operation import Call

Pause = Annotated[float, Meta(ge=0, le=31_536_000_000, multiple_of=1)]
Lease = Annotated[float, Meta(ge=1000, le=86_400_000, multiple_of=1)]
Keep = Annotated[float, Meta(ge=3_600_000, le=31_536_000_000_000, multiple_of=1)]
Places = Annotated[float, Meta(ge=1, le=32767, multiple_of=1)]
SUFFIX: Final = "_ms"


class NewKind(Request, kw_only=True):
    """What is declared of a kind; what is left out is left to its queue, or to the default."""

    kind: Name
    queue: Name | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    timeout_ms: Milliseconds | None = None
    lease_ms: Lease | None = None
    retry_preset: Text | None = None
    retry_strategy: Literal["fixed", "linear", "exponential", "decorrelated"] | None = None
    retry_initial_delay_ms: Pause | None = None
    retry_max_delay_ms: Pause | None = None
    retry_jitter: Annotated[float, Meta(ge=0, le=1)] | None = None
    dedup: Dedup | None = None
    dedup_period_ms: Milliseconds | None = None
    dedup_max_wait_ms: Milliseconds | None = None
    reuse_key_after_failure: bool | None = None
    payload_schema: JsonMembers | None = None
    run: (
        Annotated[Text, Meta(description="A function of the database, with its schema.")] | None
    ) = None
    retry_on: Annotated[list[Text], Meta(max_length=100)] | None = None
    concurrency_key: Annotated[list[Text], Meta(min_length=1, max_length=16)] | None = None
    max_running: Places | None = None
    rate_limit: Annotated[float, Meta(ge=1, le=1_000_000, multiple_of=1)] | None = None
    rate_period_ms: Milliseconds | None = None
    rate_burst: Places | None = None
    key_max_running: Places | None = None
    key_rate_limit: Annotated[float, Meta(ge=1, le=1_000_000, multiple_of=1)] | None = None
    key_rate_period_ms: Milliseconds | None = None
    key_rate_burst: Places | None = None
    ordered: (
        Annotated[bool, Meta(description="Its jobs of each key run one at a time, in their order.")]
        | None
    ) = None
    on_dead: Literal["continue", "hold"] | None = None
    keep_succeeded_ms: (
        Annotated[
            float,
            Meta(ge=0, le=31_536_000_000_000, multiple_of=1, description="0: they leave no trace."),
        ]
        | None
    ) = None
    keep_dead_ms: Keep | None = None
    keep_cancelled_ms: Keep | None = None
    version: (
        Annotated[
            float,
            Meta(
                ge=1,
                le=9_007_199_254_740_991,
                multiple_of=1,
                description="Nothing is changed where this version or a newer one declared it.",
            ),
        ]
        | None
    ) = None

    def arguments(self) -> dict[str, object]:
        """Return what the function of the database takes."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        if self.payload_schema is not None:
            given["payload_schema"] = text(self.payload_schema)
        return {
            name.removesuffix(SUFFIX): timedelta(milliseconds=value)
            if name.endswith(SUFFIX)
            else value
            for name, value in given.items()
            if value is not None
        }


class Declared(Struct):
    """The kind that was declared."""

    kind: str


async def put_kind(call: Call) -> Response:
    """Declare a kind in place of what was declared of it."""
    given = await call.body(NewKind)
    await call.fetch("put_kind", **given.arguments())
    return encoded({"kind": given.kind})


async def delete_kind(call: Call) -> Response:
    """Forget what was declared of a kind that nothing needs."""
    await call.fetch("delete_kind", kind=call.text("kind"))
    return Response(status_code=204)


OPERATIONS = (
    Operation(
        "POST",
        "/kinds",
        put_kind,
        "Declare a kind, or replace what is declared of it",
        ("operate",),
        {200: Answer("It holds for new jobs.", Declared)},
        {
            403: ["FUNCTION_DENIED"],
            409: ["IS_ENDPOINT"],
            422: ["FUNCTION_NOT_FOUND", "INVALID_SCHEMA"],
        },
        tag="queues",
        body=NewKind,
        examples={
            "a queue, retries and retention": {
                "kind": "send_email",
                "queue": "mail",
                "max_attempts": 3,
                "timeout_ms": 30000,
                "keep_succeeded_ms": 0,
            }
        },
    ),
    Operation(
        "DELETE",
        "/kinds/{kind}",
        delete_kind,
        "Forget what is declared of a kind without live jobs and recurring jobs",
        ("operate",),
        {204: Answer("It is forgotten.")},
        {404: ["KIND_NOT_FOUND"], 409: ["CONFLICT", "IS_ENDPOINT"]},
        tag="queues",
    ),
)
