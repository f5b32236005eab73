"""Commits that wait for a standby: what it has not confirmed is not acknowledged."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from jobq import Client
from jobq.embedded import Server
from jobq.errors import DatabaseUnavailable
from jobq.worker.link import Link
from servers import SETTINGS, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Connection = psycopg.Connection[tuple[Any, ...]]

pytestmark = pytest.mark.xdist_group("standby")
PATIENCE = 20.0
KEYS = {
    "idempotency": "idempotency_key => 'a'",
    "skip": "dedup_key => 'a', dedup => 'skip'",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Iterator[Cluster]:
    """A server whose commits wait for a standby that is away, as soon as one asks them to."""
    settings = SETTINGS | {"synchronous_standby_names": "away", "synchronous_commit": "local"}
    server = Server(tmp_path_factory.mktemp("server"), settings=settings, durable=False)
    with server:
        yield Cluster(server, project)


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    """The URL of a database whose sessions wait for the standby."""
    with cluster.database() as url:
        yield f"{url}?options=-c%20synchronous_commit%3Don"


def cancel_wait(url: str, pid: int, is_done: Callable[[], bool]) -> None:
    """Cancel the wait of a session's commit for the standby, as soon as it waits."""
    waits = "select from pg_stat_activity where pid = %s and wait_event = 'SyncRep'"
    deadline = time.monotonic() + PATIENCE
    with psycopg.connect(url, autocommit=True) as watcher:
        while watcher.execute(waits, [pid]).fetchone() is None:
            assert not is_done(), "it is answered without the standby"
            assert time.monotonic() < deadline, "it neither waits nor ends"
        watcher.execute("select pg_cancel_backend(%s)", [pid])


def unconfirmed(url: str, connection: Connection, call: Callable[[], Any]) -> Any:
    """Return the answer to a call on a connection whose wait for the standby is cancelled."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call)
        cancel_wait(url, connection.info.backend_pid, answer.done)
        return answer.result(PATIENCE)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_repeated_enqueue_waits_for_the_standby_as_the_first_one_did(url: str, key: str) -> None:
    warnings: list[str | None] = []
    with psycopg.connect(url, autocommit=True) as caller:
        caller.add_notice_handler(lambda notice: warnings.append(notice.sqlstate))

        def enqueue() -> object:
            return caller.execute(f"select jobq.enqueue('k', {key})").fetchone()

        first = unconfirmed(url, caller, enqueue)
        assert warnings == ["01000"], "the outcome of the first is unknown"
        assert unconfirmed(url, caller, enqueue) == first


def test_the_client_does_not_take_an_unconfirmed_commit_for_granted(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        client = Client(connection)
        with pytest.raises(DatabaseUnavailable, match="not confirmed by a standby"):
            unconfirmed(url, connection, lambda: client.enqueue("k"))


async def test_a_worker_does_not_take_an_unconfirmed_claim_for_its_own(url: str) -> None:
    link = Link(url, "worker")
    with psycopg.connect(url, autocommit=True) as producer:
        producer.execute("set synchronous_commit = local")
        producer.execute("select jobq.enqueue('k')")
        pid = (await link.connection()).info.backend_pid
        claim = asyncio.create_task(link.call("select * from jobq.claim('{default}', 'w')"))
        await asyncio.to_thread(cancel_wait, url, pid, claim.done)
        with pytest.raises(DatabaseUnavailable, match="not confirmed by a standby"):
            await claim
        await link.close()
