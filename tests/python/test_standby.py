"""Commits that wait for a standby: what is answered has not been acknowledged before."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from jobq.embedded import Server
from servers import SETTINGS, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]

PATIENCE = 20.0
KEYS = {
    "idempotency": "idempotency_key => 'a'",
    "skip": "dedup_key => 'a', dedup => 'skip'",
}


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Iterator[Connect]:
    """A function that connects to a database whose commits wait for a standby that is away."""
    server = Server(tmp_path_factory.mktemp("server"), settings=SETTINGS, durable=False)
    with ExitStack() as stack:
        stack.enter_context(server)
        url = stack.enter_context(Cluster(server, project).database())
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("alter system set synchronous_standby_names = 'away'")
            admin.execute("select pg_reload_conf()")
        yield lambda: stack.enter_context(psycopg.connect(url, autocommit=True))
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("alter system reset synchronous_standby_names")
            admin.execute("select pg_reload_conf()")


def cancelled_wait(connect: Connect, query: str) -> tuple[Any, list[str | None]]:
    """Make a call, and cancel the wait of its commit; return the answer and the warnings."""
    caller, watcher = connect(), connect()
    warnings: list[str | None] = []
    caller.add_notice_handler(lambda notice: warnings.append(notice.sqlstate))
    waits = "select from pg_stat_activity where pid = %s and wait_event = 'SyncRep'"
    pid = [caller.info.backend_pid]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: caller.execute(query).fetchone())
        deadline = time.monotonic() + PATIENCE
        while watcher.execute(waits, pid).fetchone() is None:
            assert not answer.done(), "it is answered without the standby"
            assert time.monotonic() < deadline, "it neither waits nor ends"
        watcher.execute("select pg_cancel_backend(%s)", pid)
        row = answer.result(PATIENCE)
    assert row is not None
    return row[0], warnings


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_repeated_enqueue_waits_for_the_standby_as_the_first_one_did(
    connect: Connect, key: str
) -> None:
    query = f"select jobq.enqueue('{key[:4]}', {key})"
    first, warnings = cancelled_wait(connect, query)
    assert warnings == ["01000"], "the outcome of the first is unknown"
    second, _ = cancelled_wait(connect, query)
    assert second == first
