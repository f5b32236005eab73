"""Handlers that enqueue their own jobs, and what type checkers make of them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import typed_handlers
from typed_handlers import Welcome

from jobq import AsyncClient, Client, Registry, Worker, jobs
from jobq.typed import EnqueueOptions, HandlerOptions
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


@pytest.mark.parametrize(
    ("function", "known", "apart"),
    [
        (jobs.enqueue, EnqueueOptions, {"kind", "payload"}),
        (Registry.handler, HandlerOptions, {"self", "kind", "batch"}),
    ],
)
def test_type_checkers_know_every_option(function: object, known: type, apart: set[str]) -> None:
    assert callable(function)
    of_function = {
        name: parameter.annotation
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in apart
    }
    of_checkers = {name: given.__forward_arg__ for name, given in known.__annotations__.items()}
    assert {name: str(given) for name, given in of_function.items()} == of_checkers


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
