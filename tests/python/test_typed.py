"""Handlers that enqueue their own jobs, and what type checkers make of them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest
import typed_handlers
from typed_handlers import Receipt, Welcome

from jobq import AsyncClient, Client, Registry, Worker
from jobq.calls import jobs
from jobq.calls.definitions import put_kind
from servers import ROOT


async def test_a_handler_enqueues_its_own_jobs(database: str) -> None:
    async with (
        AsyncClient(database) as client,
        Worker(database, typed_handlers.registry),
    ):
        with Client(database) as waiting:
            enqueued = [
                typed_handlers.told.enqueue(waiting, Welcome(2), idempotency_key="once"),
                typed_handlers.sweep.enqueue(waiting),
                typed_handlers.watch.enqueue(waiting, priority=2),
                *typed_handlers.told.enqueue_many(waiting, [Welcome(4), Welcome(5)]),
            ]
            again = typed_handlers.told.enqueue(waiting, Welcome(3), idempotency_key="once")
        enqueued += [
            await typed_handlers.welcome.enqueue(client, Welcome(1)),
            await typed_handlers.index.enqueue(client, Welcome(6)),
            *await typed_handlers.paid.enqueue_many(client, [Welcome(7)]),
        ]
        results = [await client.result(job.job_id, timeout=60) for job in enqueued]
    assert results == [2, "swept", "watch", 4, 5, {"greeted": 1}, 6, 7]
    assert (again.job_id, again.created) == (enqueued[0].job_id, False)


async def test_a_result_has_the_type_that_its_handler_returns(database: str) -> None:
    async with AsyncClient(database) as client, Worker(database, typed_handlers.registry):
        sold = await typed_handlers.sold.enqueue(client, Welcome(1))
        told = await typed_handlers.told.enqueue(client, Welcome(2))
        receipt = await client.result(sold.job_id, 60, of=typed_handlers.sold)
        assert receipt == Receipt(1)
        assert await client.result(sold.job_id, of=Receipt) == Receipt(1)
        assert await client.result(sold.job_id) == {"user_id": 1, "greeted": True}
        assert await client.result(told.job_id, 60, of=typed_handlers.told) == 2
        with pytest.raises(ValueError, match="Expected `object`"):
            await client.result(told.job_id, of=Receipt)
        with Client(database) as waiting:
            assert waiting.result(sold.job_id, of=typed_handlers.sold) == Receipt(1)


async def test_a_handler_stays_callable() -> None:
    assert await typed_handlers.welcome(Welcome(1)) == {"greeted": 1}
    assert inspect.iscoroutinefunction(typed_handlers.welcome)
    assert typed_handlers.usual.__name__ == "usual"
    assert typed_handlers.usual(4) == 4


def test_a_function_of_several_kinds_does_not_guess(database: str) -> None:
    registry = Registry()

    def save(payload: int) -> int:
        return payload

    one = registry.handler("one")(save)
    Registry().handler("one")(save)
    with Client(database) as client:
        assert client.get(one.enqueue(client, 1).job_id).kind == "one"
        registry.handler("two")(save)
        with pytest.raises(TypeError, match="one, two"):
            one.enqueue(client, 1)


def test_what_has_an_enqueue_of_its_own_keeps_it() -> None:
    class Shop:
        def enqueue(self) -> str:
            return "my own"

        def __call__(self, payload: int) -> int:
            return payload

    shop = Shop()
    Registry().handler("shop")(shop)
    assert shop.enqueue() == "my own"
    Registry().handler("bound")(shop.__call__)


def test_an_option_that_is_not_there_is_refused() -> None:
    wrong: dict[str, Any] = {"max_atempts": 3}
    for declare in (Registry().handler, put_kind, jobs.enqueue):
        with pytest.raises(TypeError, match="max_atempts"):
            declare("k", **wrong)


def test_a_path_of_one_name_is_no_list_of_letters(database: str) -> None:
    registry = Registry()
    registry.handler("crm", concurrency_key="customer", key_max_running=1)(lambda payload: payload)
    with Client(database) as client:
        registry.declare(client)
        client.put_kind("other", concurrency_key="customer", lease=60)
        declared = {kind.kind: kind for kind in client.list_kinds()}
    assert [declared[name].concurrency_key for name in ("crm", "other")] == [["customer"]] * 2
    assert str(declared["other"].lease) == "0:01:00"


@pytest.mark.prove
def test_a_wrong_payload_is_a_type_error() -> None:
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", "python/pyproject.toml"),
            "tests/python/typed_handlers.py",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
