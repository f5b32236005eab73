"""A producer that has the registry declares its kinds, whoever starts first."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from jobq import AsyncClient, Client, Registry
from jobq.errors import DatabaseUnavailable, PayloadInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator

SAID = "jobq.client"


@dataclass(frozen=True)
class Order:
    id: int = 0


def program(version: int | None = None, max_attempts: int = 3) -> Registry:
    """Return the handlers of one version of a program."""
    registry = Registry(version)

    @registry.handler("order", queue="orders", max_attempts=max_attempts)
    def order(payload: Order) -> None: ...

    @registry.handler("plain")
    def plain(payload: Any) -> None: ...

    return registry


@pytest.fixture
def operator(database: str) -> Iterator[Client]:
    with Client(database) as client:
        yield client


def attempts(operator: Client) -> dict[str, int | None]:
    """Return what is declared."""
    return {kind.kind: kind.max_attempts for kind in operator.list_kinds()}


def test_the_first_job_of_a_producer_is_of_a_declared_kind(database: str, operator: Client) -> None:
    with Client(database, registry=program()) as producer:
        job = operator.get(producer.enqueue("order", {"id": 1}).job_id)
        assert (job.queue, job.max_attempts) == ("orders", 3)
        with pytest.raises(PayloadInvalid):
            producer.enqueue("order", {"id": "one"})
    assert attempts(operator) == {"order": 3}


async def test_one_that_awaits_declares_too(database: str, operator: Client) -> None:
    async with AsyncClient(database, registry=program()) as producer:
        made = await asyncio.gather(
            *(producer.enqueue_many([{"kind": "order", "payload": {}}]) for _ in range(20))
        )
    for (new,) in made:
        assert operator.get(new.job_id).max_attempts == 3


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Name each function that a client calls."""
    functions: list[str] = []
    run = Client.run

    def noting(self: Client, call: Any) -> Any:
        functions.append(call.function)
        return run(self, call)

    monkeypatch.setattr(Client, "run", noting)
    return functions


def test_threads_that_begin_together_declare_once(
    database: str, operator: Client, asked: list[str]
) -> None:
    with Client(database, registry=program()) as producer, ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: producer.enqueue("order", {}), range(16)))
    assert {operator.get(new.job_id).max_attempts for new in made} == {3}
    assert asked.count("put_kind") == 1


def test_a_producer_declares_once(database: str, asked: list[str]) -> None:
    with Client(database, registry=program(7)) as producer:
        producer.enqueue("order", {})
        assert asked == ["enqueue", "list_undeclared_kinds", "put_kind", "list_payload_schemas"]
        asked.clear()
        producer.enqueue("order", {})
        assert asked == ["enqueue"]
    with Client(database, registry=program(7)) as other:
        asked.clear()
        other.enqueue("order", {})
        assert asked == ["enqueue", "list_undeclared_kinds", "list_payload_schemas"]


def test_only_a_newer_version_replaces_what_is_declared(database: str, operator: Client) -> None:
    def start(version: int, max_attempts: int) -> None:
        with Client(database, registry=program(version, max_attempts)) as producer:
            producer.declare()

    start(2, 20)
    start(1, 10)
    assert attempts(operator) == {"order": 20}
    operator.put_kind("order", max_attempts=25)
    start(2, 20)
    assert attempts(operator) == {"order": 25}
    start(3, 30)
    assert attempts(operator) == {"order": 30}
    program(2, 20).declare(operator)
    assert attempts(operator) == {"order": 30}, "a worker of an older version"


def test_without_a_version_only_what_nobody_has_declared(database: str, operator: Client) -> None:
    operator.put_kind("order", max_attempts=25)
    with Client(database, registry=program()) as producer:
        producer.declare()
    assert attempts(operator) == {"order": 25}


def test_handlers_that_are_registered_later_are_declared_too(
    database: str, operator: Client
) -> None:
    registry = Registry()
    with Client(database, registry=registry) as producer:
        producer.enqueue("order", {})
        registry.handler("order", max_attempts=3)(lambda: None)
        producer.enqueue("order", {})
    assert attempts(operator) == {"order": 3}


def test_one_that_may_not_declare_says_so_once(
    database: str, operator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    url = psycopg.conninfo.make_conninfo(database, options="-c role=jobq_producer")
    with caplog.at_level(logging.WARNING, SAID), Client(url, registry=program()) as producer:
        job = operator.get(producer.enqueue("order", {}).job_id)
        producer.enqueue("order", {})
    assert job.max_attempts == 5
    [record] = caplog.records
    assert "jobs of order go by what is declared so far" in record.getMessage()
    assert "permission denied" in record.getMessage()
    caplog.clear()
    operator.put_kind("order", max_attempts=3)
    with caplog.at_level(logging.WARNING, SAID), Client(url, registry=program()) as producer:
        producer.enqueue("order", {})
    assert caplog.records == [], "what is declared is no reason to warn"


def test_what_cannot_be_declared_stops_no_job(
    database: str, operator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    registry = program()
    registry.handler("bad", max_attempts=0)(lambda: None)
    with caplog.at_level(logging.WARNING, SAID), Client(database, registry=registry) as producer:
        producer.enqueue("bad")
    assert attempts(operator) == {"order": 3}
    [record] = caplog.records
    assert "jobs of bad" in record.getMessage()
    assert "max_attempts must be from 1 to 10000" in record.getMessage()


def test_nothing_is_declared_in_the_callers_transaction(
    database: str, operator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, SAID), psycopg.connect(database) as connection:
        producer = Client(connection, registry=program())
        producer.enqueue("order", {})
        # One that waits for this transaction fails, rather than hang.
        url = psycopg.conninfo.make_conninfo(database, options="-c lock_timeout=20s")
        with Client(url, registry=program()) as other:
            other.enqueue("order", {})
        producer.enqueue("order", {})
    assert [r.getMessage().split(": ", 1)[1] for r in caplog.records] == [
        "declare() needs autocommit, and no open transaction, or a client with a URL"
    ]
    assert attempts(operator) == {"order": 3}


async def test_a_connection_of_the_callers_declares_before_its_transaction(
    database: str, operator: Client
) -> None:
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        producer = AsyncClient(connection, registry=program())
        await producer.declare()
        async with connection.transaction(force_rollback=True):
            await producer.enqueue("order", {})
    assert attempts(operator) == {"order": 3}


def test_a_database_that_is_away_is_an_error_and_no_warning(operator: Client) -> None:
    with (
        Client("host=127.0.0.1 port=1", patience=0.2, registry=program()) as producer,
        pytest.raises(DatabaseUnavailable),
    ):
        producer.declare()


@pytest.mark.parametrize("version", [1.5, "8", True])
def test_a_version_is_an_integer(version: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        Registry(version)
