"""Every snippet of the guides runs."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import shlex
import sys
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import psycopg
import pytest
from starlette.applications import Starlette
from waiting import until_async

from jobq import AsyncClient, Client, Graph, Worker
from jobq.errors import PayloadInvalid
from jobq_cli import main
from jobq_delivery.links import read as read_link
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

GUIDES = ("handlers", "operations", "hosting", "database", "security", "workflows")


def snippets(guide: str, language: str) -> list[str]:
    text = (ROOT / "docs" / f"{guide}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def handlers(tmp_path: Path) -> Iterator[ModuleType]:
    yield from module_of("handlers", tmp_path)


@pytest.fixture
def workflows(tmp_path: Path) -> Iterator[ModuleType]:
    yield from module_of("workflows", tmp_path)


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[ModuleType]:
    yield from module_of("coming-from", tmp_path)


def module_of(guide: str, folder: Path) -> Iterator[ModuleType]:
    """The module that a guide's snippets make up, one after the other."""
    path = folder / "guide.py"
    path.write_text("\n\n".join(snippets(guide, "python")))
    spec = importlib.util.spec_from_file_location("guide", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["guide"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["guide"]


async def test_the_guides_handlers_do_as_it_says(database: str, handlers: Any) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table payout (cents int)")
        async with AsyncClient(database) as client:
            async with Worker(database, handlers.registry, ["default", "money"]):

                async def result(kind: str, payload: Any = None) -> Any:
                    job = await client.enqueue(kind, payload)
                    return await client.result(job.job_id, timeout=20)

                assert await result("welcome", {"user_id": 1}) == {"greeted": "user 1 in en"}
                assert await result("transfer", {"cents": 5, "currency": "EUR"}) == 5
                assert await result("sync_account", {"state": "busy"}) == "synced at attempt 2"
                assert await result("sync_account", {"state": "night"}) == "synced at attempt 2"
                assert await result("sync_account", {}) == "synced at attempt 1"
                with pytest.raises(Exception, match="nothing to sync"):
                    await result("sync_account", {"state": "closed"})
                with pytest.raises(Exception, match="broken"):
                    await result("fragile")
                await result("pay_out", {"cents": 7, "currency": "USD"})
                assert await result("import_rows", [1, 2, 3]) == 3
                with pytest.raises(PayloadInvalid):
                    await client.enqueue("welcome", {})
                with pytest.raises(PayloadInvalid):
                    await client.enqueue("transfer", {"cents": 0, "currency": "EUR"})
            assert handlers.dead_letters == ["fragile ERROR: RuntimeError: broken"]
        assert connection.execute("select cents from payout").fetchall() == [(7,)]


async def test_the_workflows_do_as_the_guide_says(
    database: str,
    workflows: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JOBQ_SECRET_KEYS", b64encode(bytes(32)).decode())
    async with AsyncClient(database) as client:
        with Client(database) as shared:
            workflows.client = lambda: shared
            async with Worker(database, workflows.registry):

                async def result(kind: str, payload: Any = None) -> Any:
                    job = await client.enqueue(kind, payload)
                    return await client.result(job.job_id, timeout=20)

                assert await result("import_photo", "a") == {"path": "/photos/a", "size": 9}
                assert await result("thumbnails", [9, 1, 5]) == ["9.png", "1.png", "5.png"]
                offered = {"hotels": ["Hotel Ulm"], "trains": 3, "offer": "none: CLOSED"}
                assert await result("plan_trip", "Ulm") == offered
                assert await result("quote", 5) == "credit: good"
                story = (await client.enqueue("tell_story", "fox")).job_id
                told = await asyncio.to_thread(workflows.follow, shared, str(story))
                assert told == "Once upon a time there was a fox."
                talk = str((await client.enqueue("chat")).job_id)
                sent = [workflows.say(shared, talk, said) for said in ("a", "b", "bye")]
                assert sent == [1, 2, 3]
                assert await client.result(talk, timeout=20) == ["A", "B"]
                again = await asyncio.to_thread(workflows.repeat_answer, shared, talk)
                first = {step.saved_at for step in await client.list_steps(talk)}
                # The worker may have saved the fork's own steps by now.
                copied = [s for s in await client.list_steps(again) if s.saved_at in first]
                assert copied[-1].name == "event:receive:chat:2"
                everywhere = {"to": "Rome"}
                booked = "flight to Rome, hotel to Rome, car to Rome"
                assert await result("book_trip", everywhere) == booked
                workflows.ledger.clear()
                with pytest.raises(Exception, match="no car is left"):
                    await result("book_trip", everywhere | {"full": "car"})
                undone = ["cancel hotel to Rome", "cancel flight to Rome"]
                assert workflows.ledger[-2:] == undone
                job_id = (await client.enqueue("refund", 500)).job_id
                workflows.approve(shared, str(job_id), "ada")
                assert await client.result(job_id, timeout=20) == "paid 500"

                job_id = (await client.enqueue("compensate", {"id": 7, "customer": "eve"})).job_id
                await until_async(partial(client.list_waits, job_id=job_id), "for the question")
                data = {"cents": 700}
                await client.answer(job_id, "compensate", is_approved=True, data=data)
                assert await client.result(job_id, timeout=20) == "paid 700"
                user = {"name": "eve", "manager": "ada@example.org"}
                job_id = (await client.enqueue("close_account", user)).job_id
                await until_async(partial(client.list_waits, job_id=job_id), "for the question")
                link = capsys.readouterr().out.partition("?link=")[2].strip()
                assert read_link(link).answered_by == "link to ada@example.org"
                await client.answer(job_id, "close", is_approved=False)
                assert await client.result(job_id, timeout=20) is False


async def test_the_ten_programs_do_as_they_say(database: str, programs: Any) -> None:
    """Those of the page for people who come from other queues."""
    with psycopg.connect(database) as connection:
        connection.execute("create table member (name text)")
        connection.commit()
        programs.sign_up(connection, "bea")
    async with AsyncClient(database) as client:
        with Client(database) as waiting:
            programs.remind(waiting)
            assert programs.charge_order(waiting, 7)
            assert not programs.charge_order(waiting, 7)
            waiting.enqueue("charge", {"card": "expired"})
            programs.every_morning(waiting)
            programs.one_by_one(waiting)
            job_id = programs.call(waiting)
            async with Worker(database, programs.registry, ["default", "imports"]):
                assert await client.result(job_id, timeout=60) == "sent to ada"
                assert await asyncio.to_thread(programs.ask, waiting) == "sent to eve"
                for job in await client.list_jobs():
                    if job.kind == "trip":
                        trip = await client.result(job.job_id, timeout=60)
                        assert trip == "flight to Rome, hotel in Rome"
                    elif job.kind == "charge" and job.idempotency_key:
                        assert await client.result(job.job_id, timeout=60) == 2
                    elif job.kind == "charge":
                        with pytest.raises(Exception, match="the card has expired"):
                            await client.result(job.job_id, timeout=60)
    assert sorted(programs.sent) == ["ada", "bea", "eve"]


def test_the_ten_programs_test_passes(database: str, programs: Any) -> None:
    with psycopg.connect(database) as connection:
        programs.check(connection)


async def test_jobs_that_wait_do_as_the_guide_says(database: str, workflows: Any) -> None:
    with Client(database) as shared:
        workflows.client = lambda: shared
        async with AsyncClient(database) as client, Worker(database, workflows.registry):
            total = await asyncio.to_thread(workflows.fan_in, shared, [1, 2, 3])
            assert await client.result(total, timeout=60) == 14
            shown = await asyncio.to_thread(workflows.publish, shared, "a", [1, 2])
            assert await client.result(shown, timeout=60) == ["/photos/a@1", "/photos/a@2"]
            parts = Graph()
            parts.add("join_tiles", after=[parts.add("split_photo", 3)])
            tiled = (await client.enqueue_graph(parts))["join_tiles"]
            assert await client.result(tiled, timeout=60) == [0, 10, 20]
            await asyncio.to_thread(workflows.declare, shared)
            first = await client.run_schedule("balance")
            nodes: Any = (await client.graph(first))["nodes"]
            [last] = [node["job_id"] for node in nodes if node["kind"] == "sum_up"]
            assert await client.result(last, timeout=60) == 10
            batch = await asyncio.to_thread(workflows.mail_all, shared, ["a@b.c", "d@e.f"])
            done = (await client.batch(batch)).on_success
            assert done is not None
            assert await client.result(done, timeout=60) == "2 mails are out"
            batch = await asyncio.to_thread(workflows.mail_all, shared, ["a@b.c", "nobody"])
            called = (await client.batch(batch)).on_first_death
            assert called is not None
            assert await client.result(called, timeout=60) == f"a mail of batch {batch} is dead"


def test_the_workflows_test_passes(database: str, workflows: Any) -> None:
    with psycopg.connect(database) as connection:
        workflows.check_refund(connection)


def test_the_guides_test_passes(database: str, handlers: Any) -> None:
    with psycopg.connect(database) as connection:
        handlers.check_sign_up(connection)
    with handlers.start(database) as client:
        assert client.list_jobs() == []
        handlers.sign_up_all(client, [1, 2])
        assert [job.kind for job in client.list_jobs()] == ["welcome"] * 3
        with pytest.raises(PayloadInvalid):
            client.enqueue("welcome", {})


async def test_the_guides_service_works(database: str, handlers: Any) -> None:
    app = Starlette(lifespan=handlers.lifespan_of(database))
    async with app.router.lifespan_context(app), AsyncClient(database) as client:
        job = await client.enqueue("welcome", {"user_id": 2})
        assert await client.result(job.job_id, timeout=20) == {"greeted": "user 2 in en"}


COMMANDS = [
    line.split("  #")[0]
    for guide in GUIDES
    for text in snippets(guide, "sh")
    for line in text.splitlines()
    if line.startswith("jobq ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_that_the_guides_show_is_understood(line: str) -> None:
    name, *arguments = shlex.split(re.sub(r"\$\w+_URL", "postgresql://x", line))[1:]
    command = main.get_command(click.Context(main), name)
    assert command is not None, name
    if "--database" not in arguments and name != "certify":  # its URL is an argument
        arguments += ["--database", "postgresql://x"]
    command.make_context(name, arguments)


def test_there_are_commands_to_look_at() -> None:
    assert len(COMMANDS) > 10
