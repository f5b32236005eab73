"""What jobs cost: given by clients, reported by handlers and over HTTP, counted by budgets."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from waiting import until_async

from jobq import AsyncClient, Client
from jobq.errors import InvalidArgument, NotFound, PayloadInvalid
from jobq.registry import JobContext, Registry
from jobq.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from http_api import Api

pytest_plugins = ["http_fixtures"]


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    with Client(database) as client:
        yield client


@pytest.fixture
async def async_client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


def spent(client: Client, scope: str) -> Decimal | None:
    """Return what the whole of a scope has spent."""
    [budget] = [b for b in client.list_budgets(scope=scope) if not b.each_key]
    return budget.spent


def test_a_client_puts_budgets_and_costs(database: str, client: Client) -> None:
    client.put_kind("llm", cost="tokens", concurrency_key="tenant")
    client.put_budget("queue", "default", 1000.0, "day", time_zone="Europe/Berlin")
    client.put_budget("kind", "llm", Decimal("99.5"), each_key=True)
    client.enqueue("llm", {"tokens": 20.5, "tenant": "acme"})
    job = client.enqueue("other", cost=Decimal("0.25"))
    assert client.get(job.job_id).cost == Decimal("0.25")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select jobq.claim('{default}', 'w', 9)")
    rows = [
        (b.scope_type, b.scope, b.concurrency_key, b.amount, b.period, b.spent, b.reserved)
        for b in client.list_budgets()
    ]
    assert rows == [
        ("kind", "llm", None, Decimal("99.5"), "month", None, None),
        ("kind", "llm", "acme", Decimal("99.5"), "month", Decimal("20.5"), Decimal("20.5")),
        ("queue", "default", None, 1000, "day", Decimal("20.75"), Decimal("20.75")),
    ]
    client.put_budget("queue", "default", None)
    assert [b.scope for b in client.list_budgets("queue")] == []
    with pytest.raises(NotFound):
        client.put_budget("kind", "nobody", 1)
    with pytest.raises(InvalidArgument):
        client.put_budget("queue", "default", -1)
    with pytest.raises(PayloadInvalid):
        client.enqueue("llm", {"tokens": "many"})


@pytest.mark.parametrize("is_thread", [False, True])
async def test_a_handler_reports_what_it_has_cost(
    database: str, async_client: AsyncClient, client: Client, is_thread: bool
) -> None:
    client.put_budget("queue", "default", 1000)
    registry = Registry()

    if is_thread:

        @registry.handler("a")
        def in_thread(context: JobContext) -> None:
            context.spend(400)
            context.spend(Decimal("12.5"))
    else:

        @registry.handler("a")
        async def in_loop(context: JobContext) -> None:
            await context.spend(400)
            for cost in (-1, float("nan"), Decimal("NaN"), "7", 1e13):
                with pytest.raises(InvalidArgument):
                    context.spend(cost)  # type: ignore[arg-type]
            context.spend(12.5)

    async with Worker(database, registry):
        job = await async_client.enqueue("a", cost=100)

        async def is_done() -> bool:
            return (await async_client.get(job.job_id)).is_finished

        await until_async(is_done, "for the end of the job")
    assert (await async_client.get(job.job_id)).state == "succeeded"
    assert spent(client, "default") == Decimal("12.5")


async def test_costs_and_budgets_over_http(api: Api) -> None:
    budget: dict[str, Any] = {
        "scope_type": "queue",
        "scope": "llm",
        "amount": 1000,
        "period": "week",
    }
    assert (await api.ask("POST", "/budgets", json=budget)).status_code == 200
    made = await api.ask("POST", "/jobs", json={"kind": "k", "queue": "llm", "cost": 700})
    assert made.json()["cost"] == 700
    [claimed] = api.run("select job_id, attempt from jobq.claim('{llm}', 'w')")
    path = f"/jobs/{claimed[0]}/attempts/{claimed[1]}/spend"
    assert (await api.ask("POST", path, json={"cost": 250.5})).status_code == 200
    [found] = (await api.ask("GET", "/budgets?scope=llm")).json()["items"]
    assert (found["amount"], found["spent"], found["reserved"]) == (1000, 250.5, 0)
    [shown] = (await api.ask("GET", "/queues/llm")).json()["budgets"]
    assert shown["spent"] == 250.5
    metrics = (await api.ask("GET", "/metrics")).text
    assert 'jobq_budget_spent{queue="llm"} 250.5' in metrics
    refused = await api.ask("POST", path, json={"cost": -1})
    assert refused.status_code == 400
    late = await api.ask("POST", f"/jobs/{claimed[0]}/attempts/9/spend", json={"cost": 1})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "LEASE_LOST")
