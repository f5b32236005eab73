"""Several databases as one: where jobs go, and who finds them."""

from __future__ import annotations

import random
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TYPE_CHECKING

import psycopg
import pytest
from test_schedules import eventually, value

from jobq import Client
from jobq.calls.graph import Graph
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobNotFound
from jobq_sharding.cluster import AsyncShardedClient, ShardedClient
from jobq_sharding.routes import _MERGES, ROUTES
from jobq_sharding.shards import choose_shard, shard_of
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import Cluster

    Connection = psycopg.Connection[tuple[object, ...]]


def test_python_and_sql_choose_the_same_shard(connect: Callable[[], Connection]) -> None:
    lots = random.Random(7)
    keys = ["", "a", "ключ", "🔑", "a:b", *(f"k-{lots.getrandbits(64)}" for _ in range(3000))]
    cases = [(sorted(lots.sample(range(256), lots.randint(1, 9))), key) for key in keys]
    connection = connect()
    with connection.cursor() as cursor:
        rows = cursor.execute(
            """select jobq.choose_shard(c.shards::integer[], c.key), jobq.choose_shard(
                c.shards::integer[], idempotency_key => c.key, dedup_key => 'x')
            from unnest(%s::text[], %s::text[]) as c (shards, key)""",
            (["{" + ",".join(map(str, shards)) + "}" for shards, _ in cases], keys),
        ).fetchall()
    assert rows == [
        (choose_shard(shards, key), choose_shard(shards, None, key, "x")) for shards, key in cases
    ]


def test_the_id_tells_the_shard(connect: Callable[[], Connection]) -> None:
    connection = connect()
    connection.execute("select jobq.put_shard(200, 'postgresql://here/app', true)")
    rows = connection.execute("select id, jobq_internal.shard_of(id) from jobq.enqueue('k') as id")
    for job_id, shard in rows.fetchall():
        assert shard_of(job_id) == shard == 200  # type: ignore[arg-type]
        assert choose_shard([1], "k", after=[job_id]) == 200  # type: ignore[list-item]
        assert choose_shard([1], "k", batch_id=job_id) == 200  # type: ignore[arg-type]


@pytest.fixture
def shards(cluster: Cluster) -> Iterator[list[str]]:
    """Two databases that are a cluster, of which the first gets new keys."""
    with cluster.database() as one, cluster.database() as two:
        for number, url in enumerate((one, two)):
            with psycopg.connect(url, autocommit=True) as connection:
                for other in range(2):
                    connection.execute(
                        "select jobq.put_shard(%s, %s, %s)",
                        (other, f"postgresql://host-{other}/jobq", other == number),
                    )
                connection.execute("select jobq.put_epoch(1, '{0}')")
        yield [one, two]


def widen(urls: list[str], shard_ids: str = "{0,1}") -> None:
    """Have other shards get new keys, from now on."""
    for url in urls:
        with psycopg.connect(url, autocommit=True) as connection:
            (epoch,) = connection.execute(
                "select max(epoch) + 1 from jobq_internal.list_epochs()"
            ).fetchone() or (1,)
            connection.execute("select jobq.put_epoch(%s, %s)", (epoch, shard_ids))


def test_a_cluster_is_one_queue(shards: list[str]) -> None:
    widen(shards)
    keys = [f"k{n}" for n in range(40)]
    with ShardedClient(shards[::-1]) as client:
        singles = [client.enqueue("work", {"n": n}) for n in range(30)]
        keyed = [client.enqueue("work", idempotency_key=key) for key in keys]
        again = client.enqueue_many([{"kind": "work", "idempotency_key": key} for key in keys])
        assert [job.job_id for job in again] == [job.job_id for job in keyed]
        assert not any(job.created for job in again)
        assert {shard_of(job.job_id) for job in singles} == {0, 1}
        for job, key in zip(keyed, keys, strict=True):
            assert shard_of(job.job_id) == choose_shard([0, 1], None, key)
            assert client.find("work", key) == job.job_id
        child = client.enqueue("work", after=[singles[0].job_id])
        assert shard_of(child.job_id) == shard_of(singles[0].job_id)

        page = client.list_jobs(max_jobs=50)
        rest = client.list_jobs(before=page.cursor, max_jobs=50)
        assert rest.cursor is None
        ids = [job.job_id for job in (*page, *rest)]
        assert ids == sorted(ids, reverse=True) and len(set(ids)) == 71
        (stats,) = client.queue_stats()
        assert stats.queued == 70

        client.put_queue("mail", max_depth=5)
        assert [client.cancel(job.job_id) for job in singles] == ["cancelled"] * 30
        client.redrive(singles[0].job_id)
        assert client.get(singles[0].job_id).state == "queued"
        assert len(client.cancel_many([job.job_id for job in keyed])) == 40
        schedule = client.create_schedule("daily", "work", cron="@daily")
        assert client.get_schedule("daily").schedule_id == schedule
        assert client.get_schedule(schedule).name == "daily"
        with pytest.raises(InvalidArgument, match="one database"):
            client.replica_lag()
        nobodys = "0198c0de-1234-7abc-9f63-0123456789ab"  # of shard 99
        with pytest.raises(JobNotFound):
            client.get(nobodys)
        with pytest.raises(JobNotFound):
            client.enqueue("work", after=[nobodys])
        with pytest.raises(JobNotFound):
            client.cancel_many([nobodys])
        with pytest.raises(InvalidArgument, match="not Unicode"):
            client.find("work", "\ud800")
        with pytest.raises(InvalidArgument, match="JSON"):
            client.enqueue("work", concurrency_key="\ud800")
    for url in shards:
        with Client(url) as one:
            assert [queue.queue for queue in one.list_queues()] == ["mail"]


def test_a_graph_goes_to_the_shard_of_the_jobs_that_it_waits_for(shards: list[str]) -> None:
    widen(shards)
    keys = {choose_shard([0, 1], key): key for key in map(str, range(20))}
    with ShardedClient(shards) as client:
        one, two = (client.enqueue("work", concurrency_key=keys[n]).job_id for n in (0, 1))
        for job_id, other in [(one, two), (two, one)] * 5:
            graph = Graph()
            first = graph.add("work", after=[job_id])
            named = graph.add("work", name=str(other), after=[first])
            graph.add("work", after=[named])
            ids = client.enqueue_graph(graph)
            assert {shard_of(new) for new in ids.values()} == {shard_of(job_id)}
        for after, before in (([one, two], []), ([one], [two])):
            graph = Graph()
            graph.add("work", after=after, before=before)
            with pytest.raises(InvalidArgument, match="different shards"):
                client.enqueue_graph(graph)


def test_a_job_cannot_wait_for_jobs_on_different_shards(shards: list[str]) -> None:
    widen(shards)
    with Client(shards[0]) as one, Client(shards[1]) as two:
        parents = [one.enqueue("parent").job_id, two.enqueue("parent").job_id]
    with ShardedClient(shards) as client:
        for way in (
            client.enqueue,
            lambda kind, after: client.enqueue_many([{"kind": kind, "after": after}]),
        ):
            with pytest.raises(InvalidArgument, match="different shards: shards 0, 1"):
                way("child", after=parents)


def test_a_maximum_holds_for_the_whole_cluster(shards: list[str]) -> None:
    ids = []
    for url in shards:
        with Client(url) as client:
            ids += [job.job_id for job in client.enqueue_many([{"kind": "many"}] * 3)]
    with ShardedClient(shards) as client:
        for most in (0, -1):
            with pytest.raises(InvalidArgument, match="max_jobs"):
                client.cancel_many(kind="many", max_jobs=most)
        assert len(client.cancel_many(kind="many", max_jobs=2)) == 2
        assert len(client.cancel_many(kind="many", max_jobs=2)) == 2
        assert len(client.cancel_many(kind="many")) == 2
        assert not client.list_waits(max_rows=None)
        assert not client.list_schedules(max_schedules=None)


async def test_idempotency_holds_when_a_shard_is_added_and_one_is_drained(
    shards: list[str],
) -> None:
    keys = [f"k{n}" for n in range(30)]
    batch = [{"kind": "work", "idempotency_key": key} for key in keys]
    async with AsyncShardedClient(shards) as client:
        before = await client.enqueue_many(batch)
        assert {shard_of(job.job_id) for job in before} == {0}
    widen(shards)
    async with AsyncShardedClient(shards) as client:
        after = await client.enqueue_many([*batch, *({**job, "kind": "new"} for job in batch)])
        assert [(job.job_id, job.created) for job in after[:30]] == [
            (job.job_id, False) for job in before
        ]
        assert {shard_of(job.job_id) for job in after[30:]} == {0, 1}
        one = await client.enqueue("work", idempotency_key="k0")
        assert one.job_id == before[0].job_id
    widen(shards, "{1}")
    async with AsyncShardedClient(shards) as client:
        drained = await client.enqueue_many([{**job, "kind": "later"} for job in batch])
        assert {shard_of(job.job_id) for job in drained} == {1}
        again = await client.enqueue_many([{**job, "kind": "new"} for job in batch])
        assert [job.job_id for job in again] == [job.job_id for job in after[30:]]


def test_a_shard_that_is_away_stops_only_what_is_its(
    shards: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    widen(shards)
    away = psycopg.conninfo.make_conninfo(shards[1], port=1)
    mine = [key for key in map(str, range(20)) if choose_shard([0, 1], key) == 0]
    with ShardedClient([away, shards[0]], patience=1) as client:
        for key in mine:
            client.enqueue("work", concurrency_key=key)
        with pytest.raises(DatabaseUnavailable, match="shard 1"):
            client.get("0198c0de-1234-7abc-9f01-0123456789ab")
        assert len(client.list_jobs()) == len(mine)
        assert "its rows are missing (shard 1)" in caplog.text
        with pytest.raises(DatabaseUnavailable, match="shard 1"):
            client.find("work", "nowhere")
    with ShardedClient([away], patience=1) as client, pytest.raises(DatabaseUnavailable):
        client.queue_stats()


def test_every_list_of_a_client_is_merged() -> None:
    methods = tomllib.loads((ROOT / "python/calls.toml").read_text())["methods"]
    functions = {returned.split(" ")[0] for returned in methods.values()}
    lists = {name for name in functions if ROUTES[name][0] in {"all", "lists"}}
    assert len(lists) > 6
    assert lists - _MERGES.keys() == set()


def test_budgets_and_questions_come_from_all_shards(shards: list[str]) -> None:
    widen(shards)
    with ShardedClient(shards) as client:
        client.put_budget("queue", "llm", 5)
        client.put_budget("queue", "llm", 2, each_key=True)
        for number, url in enumerate(shards):
            with psycopg.connect(url) as connection:
                job = "jobq.enqueue('k', queue => 'llm', concurrency_key => 'a', cost => 1.5)"
                connection.execute(f"select {job}".encode())
                connection.execute(
                    "select jobq.ask(c.job_id, c.attempt, 'sure', %s)"
                    " from jobq.claim('{llm}', 'w') as c",
                    [f"Sure, {number}?"],
                )
        found = client.list_budgets()
        amounts = [(b.each_key, b.concurrency_key, b.amount, b.spent) for b in found]
        assert amounts == [
            (False, None, Decimal(10), Decimal(3)),
            (True, None, Decimal(4), None),
            (True, "a", Decimal(4), Decimal(3)),
        ]
        assert client.list_budgets("kind") == []
        assert [each.question for each in client.list_waits()] == ["Sure, 0?", "Sure, 1?"]
        assert [each.question for each in client.list_waits(max_rows=1)] == ["Sure, 0?"]


def test_a_database_of_no_cluster_is_refused(database: str) -> None:
    with ShardedClient([database]) as client, pytest.raises(InvalidArgument, match="no cluster"):
        client.enqueue("work")


def test_a_job_that_has_run_since_a_move_looked_for_jobs_stays(
    connect: Callable[[], Connection],
) -> None:
    mover, worker, watcher = connect(), connect(), connect()
    mover.isolation_level = worker.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    worker.execute("select jobq.put_shard(0, 'host=a', true), jobq.put_shard(1, 'host=b')")
    worker.execute("select jobq.put_epoch(1, '{0,1}')")
    worker.execute("select jobq.put_epoch(2, '{1}')")
    worker.execute("select jobq_internal.put_successor(0, 1)")
    job, other = (value(worker, "select jobq.enqueue('k')") for _ in range(2))
    # Makes the move wait while it looks: it has its snapshot, and no lock yet.
    worker.execute("select pg_advisory_lock(42)")
    worker.execute("""
        create function public.waits() returns boolean language sql volatile
        as 'select pg_advisory_xact_lock_shared(42) is not null';
        alter table jobq_private.job enable row level security, force row level security;
        create policy everyone on jobq_private.job using (true);
        create policy slow on jobq_private.job as restrictive using (public.waits())
    """)
    waiting = "select wait_event_type from pg_stat_activity where pid = %s"
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(mover.execute, "select job_id from jobq_internal.send_jobs(10)")
        eventually(
            lambda: value(watcher, waiting, mover.info.backend_pid) == "Lock",
            "the move does not wait",
        )
        worker.execute("select from jobq.claim_job(%s, 'w')", [job])
        worker.execute("select jobq.save_step(%s, 1, 'a', '1')", [job])
        worker.execute("select jobq.release(%s, 1)", [job])
        worker.execute("select pg_advisory_unlock(42)")
        assert sent.result(60).fetchall() == [(other,)]
    assert value(watcher, "select job_id from jobq_private.job") == job


def test_a_move_leaves_jobs_whose_key_a_dead_job_holds(connect: Callable[[], Connection]) -> None:
    connection = connect()
    connection.execute("select jobq.put_shard(0, 'host=a', true), jobq.put_shard(1, 'host=b')")
    connection.execute("select jobq.put_epoch(1, '{0,1}')")
    connection.execute("select jobq.put_epoch(2, '{1}')")
    connection.execute("select jobq_internal.put_successor(0, 1)")
    connection.execute("select jobq.put_queue('orders', ordered => true, on_dead => 'hold')")
    order = "select jobq.enqueue('order', '{}', 'orders', concurrency_key => %s, max_attempts => 1)"
    first, _, other = (value(connection, order, key) for key in ("a", "a", "b"))
    connection.execute("select from jobq.claim_job(%s, 'w')", [first])
    connection.execute("select jobq.fail(%s, 1, 'refused')", [first])
    sent = connection.execute("select job_id from jobq_internal.send_jobs(10)")
    assert sent.fetchall() == [(other,)]


def test_the_simulation_prints_the_table_of_the_page() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs/shard_keys.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() in (ROOT / "docs/contributing/design.md").read_text()
