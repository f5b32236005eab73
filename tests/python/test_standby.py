"""Commits that wait for a standby, and jobs that move to another server by replication."""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from test_read_database import standby_of

from jobq import Client
from jobq.errors import DatabaseUnavailable
from jobq.worker.connections import Link
from jobq_embedded import Server
from servers import ROOT, SETTINGS, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Connection = psycopg.Connection[tuple[Any, ...]]

pytestmark = pytest.mark.xdist_group("standby")
PATIENCE = 60.0
KEYS = {
    "idempotency": "idempotency_key => 'a'",
    "skip": "dedup_key => 'a', dedup => 'skip'",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Iterator[Cluster]:
    """A server whose commits wait for a standby that is away, as soon as one asks them to."""
    settings = SETTINGS | {
        "synchronous_standby_names": "away",
        "synchronous_commit": "local",
        "wal_level": "logical",
    }
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


LIFE = """
    select jobq.configure(timeout => '7 min');
    select jobq.put_kind('k', max_attempts => 3);
    select count(*) from jobq.enqueue_many((
        select jsonb_agg(jsonb_build_object('kind', 'k', 'idempotency_key', 'key ' || n))
        from generate_series(1, 30) as n
    ));
    select jobq.log(c.job_id, c.attempt, 'INFO', 'begun'), jobq.complete(c.job_id, c.attempt)
    from jobq.claim('{default}', 'w', 10) as c;
    select jobq.fail(c.job_id, c.attempt, 'no', retryable => false)
    from jobq.claim('{default}', 'w', 10) as c;
    select jobq.redrive(job_id) from jobq.job where state = 'dead' order by job_id limit 3;
"""
EVERYTHING = """
    select to_jsonb(j) from jobq.job as j order by j.job_id;
    select to_jsonb(l) from jobq_private.job_log as l order by l.sequence;
    select to_jsonb(a) from jobq_private.audit as a order by a.audit_id;
    select to_jsonb(a) from jobq_private.attempt as a order by a.job_id;
"""
CAUGHT_UP = """
    select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = 'jobq'
"""


def test_jobs_move_by_logical_replication_as_is_written(cluster: Cluster) -> None:
    """Both databases are of one server, so the subscription takes a slot that it has not made."""
    text = (ROOT / "docs/database.md").read_text()
    steps = text.partition("## Moving by logical replication")[2].partition("\n## ")[0]
    publish, subscribe = re.findall(r"```sql\n(.*?)```", steps, re.DOTALL)
    [sequences] = re.findall(r'-Atc "(.*?)" \|', steps, re.DOTALL)
    with cluster.database() as old, cluster.database() as new:
        here = subscribe.replace("host=old dbname=app user=postgres", old)
        here = here.replace("publication jobq;", "publication jobq with (create_slot = false);")
        cluster.psql(old, LIFE + publish)
        with psycopg.connect(old, autocommit=True) as source:
            source.execute("select pg_create_logical_replication_slot('jobq', 'pgoutput')")
            try:
                cluster.psql(new, here)
                unready = "select count(*) = 0 from pg_subscription_rel where srsubstate <> 'r'"
                with psycopg.connect(new, autocommit=True) as target:
                    until(target, unready)
                cluster.psql(old, LIFE.replace("key ", "later "))
                end = source.execute("select pg_current_wal_lsn()").fetchone()
                until(source, CAUGHT_UP, end)
            finally:
                cluster.psql(new, "drop subscription if exists jobq")
        cluster.psql(new, cluster.psql(old, sequences))
        assert cluster.psql(new, EVERYTHING) == cluster.psql(old, EVERYTHING)
        enqueued = cluster.psql(new, "select jobq.enqueue('k')").strip()
        timeout = cluster.psql(new, f"select timeout from jobq.get_job('{enqueued}')")
        assert timeout.strip() == "00:07:00"
        cluster.psql(new, LIFE.replace("key ", "last ") + "select jobq.maintain()")


def until(connection: Connection, query: str, given: Any = None) -> None:
    """Wait until a query answers true."""
    deadline = time.monotonic() + 60.0
    while connection.execute(query.encode(), given).fetchone() != (True,):
        assert time.monotonic() < deadline, query
        time.sleep(0.05)


def test_a_new_schema_survives_the_promotion_of_a_standby(
    tmp_path_factory: pytest.TempPathFactory, project: Path
) -> None:
    """The standby has replayed all of it, and has made no restartpoint since."""
    settings = SETTINGS | {"checkpoint_timeout": "1h"}
    folders = [tmp_path_factory.mktemp(name) for name in ("primary", "standby")]
    with (
        Server(folders[0], "18", settings=settings, durable=False) as primary,
        standby_of(primary, folders[1], settings) as standby,
    ):
        fresh = Cluster(primary, project)
        fresh.create("fresh", "template0")
        fresh.psql(primary.url_of("fresh"), project / "jobq.sql")
        with psycopg.connect(primary.url_of("fresh"), autocommit=True) as connection:
            connection.execute("select jobq.put_queue('limited', key_max_running => 1)")
            for queue in ("default", "limited"):
                connection.execute("select jobq.enqueue('k', queue => %s)", [queue])
                assert work(connection, queue) == 1, "claims have left their hints"
                connection.execute("select jobq.enqueue('k', queue => %s)", [queue])
            [[written]] = connection.execute("select pg_current_wal_lsn()::text").fetchall()
        deadline = time.monotonic() + PATIENCE
        with psycopg.connect(standby.url, autocommit=True) as connection:
            replayed = "select pg_last_wal_replay_lsn() >= %s::pg_lsn"
            while connection.execute(replayed, [written]).fetchone() != (True,):
                assert time.monotonic() < deadline, "the standby does not follow"
                time.sleep(0.01)
            assert connection.execute("select pg_promote()").fetchone() == (True,)
        with psycopg.connect(standby.url_of("fresh"), autocommit=True) as connection:
            for queue in ("default", "limited"):
                assert work(connection, queue) == 1, "what was enqueued before is there"
                connection.execute(
                    "select jobq.enqueue('k', queue => %s, concurrency_key => 'a')", [queue]
                )
                assert work(connection, queue) == 1
            connection.execute("select jobq.maintain()")


def work(connection: Connection, queue: str) -> int:
    """Claim the jobs of a queue and complete them; return how many there were."""
    query = "select jobq.complete(c.job_id, c.attempt) from jobq.claim(%s, 'w', 9) as c"
    return len(connection.execute(query, [[queue]]).fetchall())
