"""The complete program for FastAPI and SQLAlchemy, in docs/fastapi."""

from __future__ import annotations

import importlib.util
import sys
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from jobq import Client, Worker
from jobq.errors import PayloadInvalid
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PROGRAM = ROOT / "docs" / "fastapi" / "shop.py"


@pytest.fixture
def shop(database: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, for the test's database."""
    monkeypatch.setenv("DATABASE_URL", database)
    spec = importlib.util.spec_from_file_location("shop", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "shop", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
async def browser(shop: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A browser of the running application."""
    transport = httpx.ASGITransport(shop.app)
    async with (
        shop.app.router.lifespan_context(shop.app),
        httpx.AsyncClient(transport=transport, base_url="http://shop") as browser,
    ):
        yield browser


async def test_a_sign_up_sends_one_mail(
    browser: httpx.AsyncClient, shop: Any, database: str
) -> None:
    answer = await browser.post("/customers", json={"email": "ada@example.org"})
    assert answer.status_code == 201, answer.text
    made = answer.json()
    job = f"/jobs/{made['job_id']}"
    assert (await browser.get(job)).json()["state"] == "queued"
    worker = Worker(database, shop.registry, until_empty=True, metrics_port=None)
    assert await worker.run() == 0
    assert (await browser.get(job)).json() == {
        "state": "succeeded",
        "result": {"sent_to": "ada@example.org"},
        "error": None,
    }
    mails = await browser.get(f"/customers/{made['customer_id']}/mails")
    assert mails.json() == ["Welcome!"]
    with Client(database) as client, pytest.raises(PayloadInvalid):
        client.enqueue("welcome", {"customer_id": "seven"})


async def test_a_refused_sign_up_enqueues_nothing(
    browser: httpx.AsyncClient, database: str
) -> None:
    for expected in (201, 409):
        answer = await browser.post("/customers", json={"email": "ada@example.org"})
        assert answer.status_code == expected
    with Client(database) as client:
        assert len(client.list_jobs()) == 1
    assert (await browser.get(f"/jobs/{uuid.uuid4()}")).status_code == 404
