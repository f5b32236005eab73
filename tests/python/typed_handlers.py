"""What type checkers know of handlers; where one has to object, the line says so.

An objection that is missing is an unused `type: ignore`, which strict mypy reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_type

from jobq import Enqueued, Registry

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.rows import TupleRow

    from jobq import AsyncClient, Client, JobContext

registry = Registry()


@dataclass(frozen=True)
class Welcome:
    user_id: int


@registry.handler("welcome", max_attempts=3, timeout=30)
async def welcome(payload: Welcome) -> dict[str, int]:
    return {"greeted": payload.user_id}


@registry.handler("told")
def told(payload: Welcome, context: JobContext) -> int:
    return payload.user_id


@registry.handler("paid", transactional=True)
async def paid(payload: Welcome, connection: AsyncConnection[Any], context: JobContext) -> int:
    return payload.user_id


@dataclass(frozen=True)
class Receipt:
    user_id: int
    greeted: bool = True


@registry.handler("sold")
async def sold(payload: Welcome) -> Receipt:
    return Receipt(payload.user_id)


@registry.handler("anything")
def anything(payload: Any) -> Any:
    return payload


@registry.handler("whatever")
def whatever(payload: object) -> object:
    return payload


@registry.handler("usual")
def usual(payload: int = 3) -> int:
    return payload


@registry.schedule("nightly", "0 3 * * *")
@registry.handler("sweep")
async def sweep() -> str:
    return "swept"


@registry.handler("watch")
async def watch(context: JobContext) -> str:
    return context.kind


@registry.handler("clean", transactional=True)
async def clean(connection: AsyncConnection[TupleRow], context: JobContext) -> str:
    return context.kind


@registry.handler("index", batch=100, batch_wait=0.05)
async def index(payloads: list[Welcome], contexts: list[JobContext]) -> list[int]:
    return [payload.user_id for payload in payloads]


@registry.handler("counter")
class Counter:
    async def __call__(self, payload: Welcome) -> int:
        return payload.user_id


def right(client: Client, context: JobContext) -> None:
    assert_type(welcome.enqueue(client, Welcome(1), idempotency_key="a"), Enqueued)
    assert_type(told.enqueue(client, Welcome(1)), Enqueued)
    assert_type(paid.enqueue(client, Welcome(1)), Enqueued)
    assert_type(told.enqueue_many(client, [Welcome(1)]), list[Enqueued])
    assert_type(sweep.enqueue(client, priority=2), Enqueued)
    assert_type(watch.enqueue(client), Enqueued)
    assert_type(clean.enqueue(client), Enqueued)
    assert_type(anything.enqueue(client, 7), Enqueued)
    assert_type(whatever.enqueue(client, 7), Enqueued)
    assert_type(usual.enqueue(client, 7), Enqueued)
    assert_type(index.enqueue(client, Welcome(1)), Enqueued)
    assert_type(told(Welcome(1), context=context), int)
    assert_type(Counter(), Counter)
    assert_type(client.result("id", of=welcome), dict[str, int])
    assert_type(client.result("id", 5, of=told), int)
    assert_type(client.result("id", of=sold), Receipt)
    assert_type(client.result("id", of=sweep), str)
    assert_type(client.result("id", of=Receipt), Receipt)
    assert_type(client.result("id", of=dict[str, int]), dict[str, int])
    assert_type(client.result("id"), Any)


async def awaited(client: AsyncClient, context: JobContext) -> None:
    assert_type(await welcome.enqueue(client, Welcome(1)), Enqueued)
    assert_type(await welcome.enqueue_many(client, [Welcome(1)]), list[Enqueued])
    assert_type(await welcome(Welcome(1)), dict[str, int])
    assert_type(await index([Welcome(1)], []), list[int])
    assert_type(await client.result("id", of=sold), Receipt)
    assert_type(await client.result("id", of=told), int)
    assert_type(await client.result("id", of=Receipt), Receipt)
    assert_type(await sweep(), str)
    assert_type(await watch(context), str)


def wrong(client: Client, slow: AsyncClient, context: JobContext) -> None:
    welcome.enqueue(client, 1)  # type: ignore[arg-type]
    _ = welcome.enqueue(slow, {"user_id": 1})  # type: ignore[arg-type]
    welcome.enqueue(client)  # type: ignore[call-arg]
    welcome.enqueue(client, Welcome(1), idempotncy_key="a")  # type: ignore[call-arg]
    welcome.enqueue(client, Welcome(1), priority="a")  # type: ignore[arg-type]
    welcome.enqueue(7, Welcome(1))  # type: ignore[arg-type]
    text: str = client.result("id", of=Receipt)  # type: ignore[assignment]
    told.enqueue(client, text)  # type: ignore[arg-type]
    told.enqueue_many(client, [1])  # type: ignore[list-item]
    paid.enqueue(client, "1")  # type: ignore[arg-type]
    usual.enqueue(client, "1")  # type: ignore[arg-type]
    index.enqueue(client, [Welcome(1)])  # type: ignore[arg-type]
    sweep.enqueue(client, payload=Welcome(1))  # type: ignore[call-arg]
    watch.enqueue(client, payload=Welcome(1))  # type: ignore[call-arg]
    clean.enqueue(client, payload=Welcome(1))  # type: ignore[call-arg]
    told(1, context)  # type: ignore[arg-type]
    told(Welcome(1))  # type: ignore[call-arg]
    registry.handler("a", priority="high")  # type: ignore[call-overload]
