"""Every snippet of the guides runs."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click
import psycopg
import pytest
from starlette.applications import Starlette

from jobq import AsyncClient, Client, Worker
from jobq.cli import main
from jobq.errors import PayloadInvalid
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

GUIDES = ("handlers", "operations")


def snippets(guide: str, language: str) -> list[str]:
    text = (ROOT / "docs" / f"{guide}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def handlers(tmp_path: Path) -> Iterator[ModuleType]:
    """The module that the guide's snippets make up, one after the other."""
    path = tmp_path / "guide.py"
    path.write_text("\n\n".join(snippets("handlers", "python")))
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


def test_the_guides_test_passes(database: str, handlers: Any) -> None:
    with psycopg.connect(database) as connection:
        handlers.check_sign_up(connection)
    with Client(database) as client:
        assert client.list_jobs() == []


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
    name, *arguments = shlex.split(line)[1:]
    command = main.get_command(click.Context(main), name)
    assert command is not None, name
    if "--database" not in arguments:
        arguments += ["--database", "postgresql://x"]
    command.make_context(name, arguments)


def test_there_are_commands_to_look_at() -> None:
    assert len(COMMANDS) > 10
