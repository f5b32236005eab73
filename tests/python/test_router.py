"""A router: the whole interface of the shards, by PL/Proxy."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq import Client
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobNotFound, NotPermitted
from jobq_cli import main
from jobq_sharding.cluster import ShardedClient
from jobq_sharding.shards import choose_shard, shard_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import Cluster

pytestmark = pytest.mark.xdist_group("pg15")
KEYS = [f"k{n}" for n in range(40)]


class Routed:
    """A router, its shards, and who asks them."""

    def __init__(self, url: str, shards: list[str]) -> None:
        self.url, self.shards = url, shards
        given = conninfo_to_dict(shards[0])
        self.login = f"user={given['user']} password={given['password']}"

    def command(self, *words: str) -> str:
        """What `jobq cluster` prints."""
        done = CliRunner().invoke(main, ["cluster", *words, "--database", self.url])
        assert done.exit_code in {0, 1}, done.output
        return done.output

    def init(self) -> str:
        """Make the router of the shards, and let its superuser ask them."""
        said = self.command("init", *(word for url in self.shards for word in ("--shard", url)))
        given = conninfo_to_dict(self.login)
        self.run(
            "create user mapping if not exists for current_user server jobq "
            f"options (user '{given['user']}', password '{given['password']}')"
        )
        return said

    def run(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """The rows of a statement on the router."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), arguments or None)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def copied(clusters: Callable[[str], Cluster], *templates: str | None) -> Iterator[Routed]:
    """Copy a router on PostgreSQL 15 and its two shards on 18, which it knows by their names."""
    router, *shards = templates
    with (
        clusters("15").database(router, "router") as url,
        clusters("18").database(shards[0], "shard_0") as one,
        clusters("18").database(shards[1], "shard_1") as two,
    ):
        yield Routed(url, [one, two])


@pytest.fixture(scope="module")
def made(clusters: Callable[[str], Cluster]) -> Iterator[list[str]]:
    """The names of the databases to copy: making a router takes most of a second."""
    with ExitStack() as stack:
        with copied(clusters, "template0", None, None) as routed:
            assert routed.init() == "the router has the shards 0, 1\n"
            for version, name in (("15", "router"), ("18", "shard_0"), ("18", "shard_1")):
                copy = clusters(version).database(name, f"{name}_template")
                stack.enter_context(copy)
        yield ["router_template", "shard_0_template", "shard_1_template"]


@pytest.fixture
def routed(clusters: Callable[[str], Cluster], made: list[str]) -> Iterator[Routed]:
    """A router of two shards, of which the third gets nothing yet."""
    with copied(clusters, *made) as routed:
        yield routed


SIGNATURES = """
    select p.proname::text, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
        obj_description(p.oid), p.provolatile::text, array(
            select a.grantee::regrole::text from aclexplode(p.proacl) as a
            where a.grantee::regrole::text ~ '^jobq_(producer|worker|operator|reader)$' order by 1
        )
    from pg_proc as p where p.pronamespace::regnamespace::text in ('jobq', 'jobq_internal')
    order by 1, 2
"""


def test_no_function_is_forgotten_and_none_is_another(routed: Routed) -> None:
    with psycopg.connect(routed.shards[0]) as shard:
        public = shard.execute(SIGNATURES).fetchall()
        ways: dict[str, str] = dict(
            shard.execute("select function_name, class from jobq_private.route").fetchall()
        )
    own = {name for name, way in ways.items() if way == "own"}
    mine = routed.run(SIGNATURES)
    assert [f[:3] for f in mine if f[0] in own] == [f[:3] for f in public if f[0] in own]
    assert [f for f in mine if f[0] not in own] == [f for f in public if f[0] not in own]
    assert set(ways) == {name for name, *_ in public}, (
        "a function without a route, or the other way"
    )
    for (name,) in routed.run(
        """select p.proname::text from pg_proc as p
        where p.pronamespace::regnamespace::text in ('jobq', 'jobq_internal')
        and p.prosrc like '%%ONE_DATABASE%%'"""
    ):
        assert ways[name] == "refused"


@pytest.fixture
def web(routed: Routed) -> Iterator[str]:
    """The URL of a producer of the router's, whom the shards know too."""
    made = "create role routed_web login password 'web'; grant jobq_producer to routed_web"
    for url in (routed.url, routed.shards[0]):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(made)
    routed.run(
        "create user mapping for routed_web server jobq options (user 'routed_web', password 'web')"
    )
    yield make_conninfo(routed.url, user="routed_web", password="web")
    routed.run("drop user mapping for routed_web server jobq")
    for url in (routed.url, routed.shards[0]):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("drop role routed_web")


def test_who_asks_may_do_what_the_roles_may(routed: Routed, web: str) -> None:
    with Client(web) as client:
        job = client.enqueue("work", concurrency_key="customer-7")
        client.enqueue_many([{"kind": "work", "idempotency_key": key} for key in KEYS])
        assert client.get(job.job_id).state == "queued"
        with pytest.raises(NotPermitted):
            client.put_queue("mail")
    with psycopg.connect(web, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select jobq.put_shard(7, 'host=elsewhere')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select * from jobq_router.delete_queue('past the router')")


def test_the_router_chooses_as_clients_do(routed: Routed) -> None:
    rows = routed.run(
        """select k, jobq_internal.shard_of(jobq.enqueue('work', concurrency_key => k)),
            jobq_internal.shard_of(
                jobq.enqueue('work', idempotency_key => k, dedup_key => 'x' || k)
            )
        from unnest(%s::text[]) as k""",
        KEYS,
    )
    for key, by_concurrency, by_idempotency in rows:
        assert by_concurrency == by_idempotency == choose_shard([0, 1], key)
    many = [f"customer-{n}" for n in range(5000)]
    places = routed.run(
        "select jobq_router.partition_of_new('work', k, null, null, null, null)"
        " from unnest(%s::text[]) as k", many,
    )  # fmt: skip
    assert [shard for (shard,) in places] == [choose_shard([0, 1], key) for key in many]
    ((schedule,),) = routed.run("select jobq.create_schedule('daily', 'work', '@daily')")
    with ShardedClient(routed.shards) as client:
        assert client.get_schedule("daily").schedule_id == schedule
        assert {client.find("work", key) for key in KEYS} == {
            client.enqueue("work", idempotency_key=key).job_id for key in KEYS
        }


def test_a_client_of_the_router_has_one_queue(routed: Routed) -> None:
    with Client(routed.url) as client:
        jobs = client.enqueue_many([{"kind": "work", "idempotency_key": key} for key in KEYS])
        again = client.enqueue_many(
            [{"kind": "work", "idempotency_key": key} for key in KEYS[::-1]]
        )
        assert [job.job_id for job in again] == [job.job_id for job in jobs[::-1]]
        assert not any(job.created for job in again)
        assert [shard_of(job.job_id) for job in jobs] == [choose_shard([0, 1], k) for k in KEYS]
        together = client.enqueue_many([{"kind": "work"}] * 5)
        assert len({shard_of(job.job_id) for job in together}) == 1

        page = client.list_jobs(max_jobs=30)
        rest = client.list_jobs(before=page[-1].job_id, max_jobs=30)
        ids = [job.job_id for job in (*page, *rest)]
        assert ids == sorted(ids, reverse=True) and len(set(ids)) == 45
        (stats,) = client.queue_stats()
        assert stats.queued == 45
        client.put_queue("mail", max_depth=5)
        client.put_kind("work", priority=7)
        assert [queue.queue for queue in client.list_queues()] == ["mail"]
        some = [job.job_id for job in jobs[:6]]
        assert {job.job_id for job in client.cancel_many(some)} == set(some)
        assert len(client.cancel_many(kind="work", max_jobs=33)) == 33
        with pytest.raises(InvalidArgument, match="max_jobs"):
            client.cancel_many(kind="work", max_jobs=0)
        assert client.get(some[0]).state == "cancelled"
        client.redrive(some[0])
        with pytest.raises(JobNotFound) as told:
            client.get("0198c0de-1234-7abc-9f01-0123456789ab")
        assert told.value.code == "JOB_NOT_FOUND" and told.value.detail.startswith("job_id")
        nobodys = "0198c0de-1234-7abc-9f63-0123456789ab"  # of shard 99
        with pytest.raises(JobNotFound):
            client.get(nobodys)
        with pytest.raises(JobNotFound):
            client.enqueue("work", after=[nobodys])
        with pytest.raises(JobNotFound):
            client.cancel_many([nobodys])
        with pytest.raises(InvalidArgument, match="workers") as refused:
            client.work()
        assert refused.value.code == "ONE_DATABASE"
    for url in routed.shards:
        with Client(url) as one:
            assert [(kind.kind, kind.priority) for kind in one.list_kinds()] == [("work", 7)]


def test_maintenance_is_done_on_each_shard(routed: Routed) -> None:
    with Client(routed.url) as client:
        client.enqueue_many([{"kind": "work", "idempotency_key": key} for key in KEYS])
    for url in routed.shards:
        with psycopg.connect(url, autocommit=True) as shard:
            shard.execute("select from jobq.claim('{default}', 'gone', 2)")
            shard.execute("set session_replication_role = replica")
            shard.execute(
                "update jobq_private.job set lease_expires_at = now() - interval '1 s'"
                " where state = 'running'"
            )
    done = routed.run("select task, sum(affected), count(*) from jobq.maintain() group by task")
    assert ("recovered", 4, 2) in done
    with Client(routed.url) as client:
        (stats,) = client.queue_stats()
        assert (stats.running, stats.retrying) == (0, 4)


def test_batches_are_put_together_in_their_order(routed: Routed) -> None:
    routed.run("select jobq.enqueue('work', concurrency_key => k) from unnest(%s::text[]) k", KEYS)
    claimed: list[tuple[Any, ...]] = []
    for url in routed.shards:
        with psycopg.connect(url, autocommit=True) as shard:
            claimed += shard.execute(
                "select job_id, attempt from jobq.claim('{default}', 'w', 100)"
            ).fetchall()
    lots = sorted(claimed, key=lambda row: row[0].bytes[::-1])  # the shards are mixed
    ids, attempts = [row[0] for row in lots], [row[1] for row in lots]
    done = routed.run(
        "select job_id, outcome from jobq.complete_many(%s, %s, %s)",
        [*ids[:20], ids[0]], [*attempts[:20], 9], json.dumps([*range(20), None]),
    )  # fmt: skip
    assert done == [*((job_id, "succeeded") for job_id in ids[:20]), (ids[0], "lost")]
    assert routed.run("select result from jobq.get_job(%s)", ids[7]) == [(7,)]
    failed = routed.run(
        "select job_id, state from jobq.fail_many(%s)",
        json.dumps([
            {"job_id": str(job_id), "attempt": 1, "error": "x", "retryable": False}
            for job_id in ids[20:30]
        ]),
    )  # fmt: skip
    assert failed == [(job_id, "dead") for job_id in ids[20:30]]
    released = routed.run(
        "select job_id, state from jobq.release_many(%s, %s)", ids[30:], attempts[30:]
    )
    assert released == [(job_id, "queued") for job_id in ids[30:]]
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        routed.run("select * from jobq.release_many(%s, %s)", ids, [1])


def test_a_shard_that_is_away_stops_only_what_is_its(
    routed: Routed, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(routed.shards[1]) as one:
        one.enqueue("work")
    routed.run("select jobq.put_shard(1, 'host=127.0.0.1 port=1 dbname=away')")
    mine = [key for key in KEYS if choose_shard([0, 1], key) == 0]
    (other,) = {*KEYS[:8]} - {*mine} and [next(key for key in KEYS if key not in mine)]
    with Client(routed.url) as client:
        for key in mine:
            client.enqueue("work", concurrency_key=key)
        with pytest.raises(DatabaseUnavailable, match="shard 1") as told:
            client.enqueue("work", concurrency_key=other)
        assert told.value.code == "SHARD_AWAY" and told.value.sqlstate == "JQ012"
        assert len(client.list_jobs()) == len(mine)
        assert sum(queue.queued for queue in client.queue_stats()) == len(mine)
        assert [record.message for record in caplog.records] == [
            "a shard does not respond: its rows are missing (shard 1)"
        ] * 2
        with pytest.raises(DatabaseUnavailable, match="shard 1;"):
            client.find("work", "nowhere")
    states = [json.loads(line) for line in routed.command(
        "list", "--json", "--login", routed.login
    ).splitlines()]  # fmt: skip
    assert [(each["state"], each["queued"]) for each in states] == [
        ("ok", len(mine)), ("away", None),
    ]  # fmt: skip


def test_lists_answer_without_a_shard_that_is_away_and_name_it(routed: Routed) -> None:
    with Client(routed.url) as client:
        client.enqueue_many([{"kind": "work", "idempotency_key": key} for key in KEYS])
        client.put_limit("default", "customer-7", 3)
    with psycopg.connect(routed.shards[0]) as shard:
        lists: list[str] = [
            name
            for (name,) in shard.execute(
                "select function_name from jobq_private.route where class = 'lists' order by 1"
            ).fetchall()
        ]
    assert {"list_budgets", "list_jobs", "queue_stats", "health", "metrics"} <= {*lists}
    with psycopg.connect(routed.url, autocommit=True) as connection:
        warned: list[tuple[str | None, ...]] = []
        connection.add_notice_handler(
            lambda n: (
                warned.append((n.sqlstate, n.message_detail)) if n.severity == "WARNING" else None
            )
        )
        whole = {name: len(_rows(connection, name)) for name in lists}
        assert not warned
        (mine,) = connection.execute("select count(*) from jobq.list_jobs()").fetchone() or (0,)
        connection.execute("select jobq.put_shard(1, 'host=127.0.0.1 port=1 dbname=away')")
        for name in lists:
            warned.clear()
            rows = _rows(connection, name)
            assert warned == [("JQ012", "shard 1")], name
            assert 0 < len(rows) <= whole[name] if whole[name] else not rows, name
        (left,) = connection.execute("select count(*) from jobq.list_jobs()").fetchone() or (0,)
        assert 0 < left < mine
        connection.execute("select jobq.put_shard(0, 'host=127.0.0.1 port=1 dbname=away')")
        with pytest.raises(psycopg.Error, match="shard 0, 1;"):
            connection.execute("select * from jobq.queue_stats()")


def _rows(connection: psycopg.Connection[Any], name: str) -> list[Any]:
    schema = connection.execute(
        "select pronamespace::regnamespace::text from pg_proc where proname = %s"
        " and pronamespace::regnamespace::text in ('jobq', 'jobq_internal')", [name]
    ).fetchone()  # fmt: skip
    assert schema is not None
    return connection.execute(f"select * from {schema[0]}.{name}()".encode()).fetchall()


def test_a_shard_that_refuses_the_log_in_is_not_called_away(routed: Routed) -> None:
    routed.run("alter user mapping for current_user server jobq options (set password 'wrong')")
    with Client(routed.url) as client:
        with pytest.raises(NotPermitted) as told:
            client.enqueue("work", concurrency_key="a")
        assert told.value.detail.startswith("shard ")
        assert "user mapping" in told.value.hint
        with pytest.raises(NotPermitted):
            client.list_jobs()


def test_a_shard_is_added_and_idempotency_holds(
    routed: Routed, clusters: Callable[[str], Cluster]
) -> None:
    batch = [{"kind": "work", "idempotency_key": key} for key in KEYS]
    with clusters("18").database() as third, Client(routed.url) as client:
        before = client.enqueue_many(batch)
        client.put_kind("work", priority=3)
        said = routed.command("add", third, "--wait", "0", "--login", routed.login)
        assert "added as shard 2" in said and "kind work is missing on shard 2" in said
        again = client.enqueue_many(batch)
        assert [(job.job_id, job.created) for job in again] == [
            (job.job_id, False) for job in before
        ]
        one = client.enqueue("work", idempotency_key=KEYS[0])
        assert one.job_id == before[0].job_id
        new = client.enqueue_many([{**job, "kind": "new"} for job in batch])
        assert [shard_of(job.job_id) for job in new] == [choose_shard([0, 1, 2], k) for k in KEYS]
        assert 2 in {shard_of(job.job_id) for job in new}
        with ShardedClient([*routed.shards, third]) as direct:
            assert direct.enqueue_many(batch)[5].job_id == before[5].job_id
        client.put_kind("work", priority=3)
        assert routed.command("check", "--login", routed.login) == "the shards are identical\n"


def test_a_shard_that_no_worker_serves_is_not_added(
    routed: Routed, clusters: Callable[[str], Cluster]
) -> None:
    serve = "select jobq.heartbeat('w', '{}', '{}', '{default,mail}')"
    with clusters("18").database() as third:
        with psycopg.connect(routed.shards[0]) as connection:
            connection.execute(serve)
        words = ("add", third, "--wait", "0", "--login", routed.login)
        said = routed.command(*words)
        assert "no live worker of the new shard serves" in said
        assert "queues default, mail" in said
        assert routed.run("select max(epoch) from jobq_private.shard_epoch") == [(1,)]
        assert "added as shard 2" in routed.command(*words, "--without-workers")


def test_a_shard_that_workers_serve_is_added_and_drained(
    routed: Routed, clusters: Callable[[str], Cluster]
) -> None:
    with clusters("18").database() as third, Client(routed.url) as client:
        for url in (routed.shards[0], third):
            with psycopg.connect(url) as connection:
                connection.execute("select jobq.heartbeat('w', '{}', '{}', '{default}')")
        login = ("--wait", "0", "--login", routed.login)
        assert "added as shard 2" in routed.command("add", third, *login)
        batch = [{"kind": "work", "idempotency_key": key} for key in KEYS]
        before = client.enqueue_many(batch)
        assert 2 in {shard_of(job.job_id) for job in before}
        assert "shard 2 receives no new keys" in routed.command("drain", "2", *login)
        new = client.enqueue_many([{**job, "kind": "new"} for job in batch])
        assert {shard_of(job.job_id) for job in new} == {0, 1}
        again = client.enqueue_many(batch)
        assert [job.job_id for job in again] == [job.job_id for job in before]
        assert "cannot be drained" in routed.command("drain", "2", *login)


LOTS = """
    select jobq_internal.shard_of(jobq.enqueue('work')) from generate_series(1, 24)
    union select jobq_internal.shard_of(e.job_id) from generate_series(1, 8)
    cross join lateral jobq.enqueue_many(
        '[{"kind": "work"}, {"kind": "work", "dedup_key": null}]'
    ) as e
    order by 1
"""


def test_jobs_without_keys_go_where_new_keys_go(routed: Routed) -> None:
    assert routed.run(LOTS) == [(0,), (1,)]
    routed.run("select jobq.put_epoch(2, '{1}', now() + interval '1 hour')")
    assert routed.run(LOTS) == [(0,), (1,)]  # it has not begun
    routed.run("delete from jobq_private.shard_epoch where epoch = 2")
    routed.run("select jobq.put_epoch(2, '{1}')")
    assert routed.run(LOTS) == [(1,)]
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        routed.run("select jobq.put_epoch(3, '{1, 2}')")


def test_keys_are_looked_for_where_they_were_while_they_live(routed: Routed) -> None:
    mine = next(key for key in KEYS if choose_shard([0, 1], key) == 0)
    once = "select jobq.enqueue('work', idempotency_key => %s)"
    many = "select job_id from jobq.enqueue_many(%s)"
    batch = json.dumps([{"kind": "work", "idempotency_key": mine}])
    (first,) = routed.run(once, mine)
    routed.run("select jobq.put_epoch(2, '{1}')")
    assert routed.run(once, mine) == routed.run(many, batch) == [first]
    ((keyed,),) = routed.run(
        "select jobq_internal.shard_of(jobq.enqueue('work', concurrency_key => %s))", mine
    )
    assert keyed == 1
    with psycopg.connect(routed.url, autocommit=True) as connection:
        connection.execute("select jobq.put_shard(0, 'host=127.0.0.1 port=1 dbname=away')")
        for statement, given in ((once, mine), (many, batch)):
            with pytest.raises(psycopg.Error, match="shard 0") as told:
                connection.execute(statement.encode(), [given])
            assert (told.value.sqlstate, told.value.diag.constraint_name) == ("JQ012", "SHARD_AWAY")
        connection.execute("select jobq_router.keep_keys('0 s')")
        (second,) = connection.execute(once.encode(), [mine]).fetchall()
    assert shard_of(second[0]) == 1


@pytest.mark.parametrize("command", ["http", "console"])
def test_what_serves_pages_refuses_a_router(routed: Routed, command: str) -> None:
    done = CliRunner().invoke(main, [command, "--port", "0", "--database", routed.url])
    assert done.exit_code == 1
    assert "ONE_DATABASE" in done.output and "jobq cluster list" in done.output


def test_check_says_where_shards_differ(routed: Routed) -> None:
    assert routed.command("check", "--login", routed.login) == "the shards are identical\n"
    with Client(routed.shards[1]) as one:
        one.put_queue("mail", max_depth=5)
        one.configure(max_attempts=7)
        stray = next(key for key in KEYS if choose_shard([0, 1], key) == 0)
        one.create_schedule(stray, "work", cron="@daily")
    with Client(routed.url) as client:
        client.put_limit("default", "customer-7", 3)
    said = routed.command("check", "--login", routed.login)
    assert said.splitlines() == [
        "queue mail is missing on shard 0",
        f"schedule {stray} fires on shard 1, to which its name does not lead",
        "setting max_attempts is different on shard 1",
    ]


def test_check_says_when_the_router_forgets_keys_too_soon(routed: Routed) -> None:
    with Client(routed.url) as client:
        client.configure(key_retention="40 days", retention="50 days")
    said = routed.command("check", "--login", routed.login)
    assert said == "setting key_retention is different on the router: run jobq cluster init\n"
    routed.init()
    assert routed.command("check", "--login", routed.login) == "the shards are identical\n"


def test_a_router_of_another_encoding_is_refused(routed: Routed) -> None:
    routed.run("create database latin encoding 'LATIN1' template template0")
    try:
        url = make_conninfo(routed.url, dbname="latin")
        done = CliRunner().invoke(
            main, ["cluster", "init", "--database", url, "--shard", routed.shards[0]]
        )
        assert done.exit_code != 0 and "must be encoded in UTF8" in done.output
    finally:
        routed.run("drop database latin")


def test_init_again_keeps_the_map_and_heals_the_functions(routed: Routed) -> None:
    ((job_id,),) = routed.run("select jobq.enqueue('work')")
    routed.run("drop function jobq.get_job")
    assert routed.init() == "the router has the shards 0, 1\n"
    assert routed.run("select state from jobq.get_job(%s)", job_id) == [("queued",)]
    assert routed.run("show jit") == [("off",)]


def test_the_router_keeps_keys_as_long_as_any_shard(
    routed: Routed, clusters: Callable[[str], Cluster]
) -> None:
    with Client(routed.shards[1]) as longest:
        longest.configure(key_retention="40 days", retention="50 days")
    routed.init()
    assert routed.command("check", "--login", routed.login).splitlines() == [
        "setting key_retention is different on shard 1",
        "setting retention is different on shard 1",
    ]
    with clusters("18").database() as three:
        routed.command("add", "--login", routed.login, "--wait", "0", three)
        kept = "select max(keys_until - began_at) = '40 days' from jobq_internal.list_epochs()"
        assert routed.run(kept) == [(True,)]


def test_a_shard_that_is_named_twice_or_is_the_router_is_refused(routed: Routed) -> None:
    one, two = routed.shards
    assert "named twice" in routed.command("init", "--shard", one, "--shard", one)
    words = ["cluster", "init", "--database", one, "--shard", one, "--shard", two]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1 and "the database of a router must be empty" in done.output


@pytest.mark.parametrize("epoch", ["3, '{0}'", "0, '{0}'", "2, '{0}', 'infinity'"])
def test_the_router_refuses_an_epoch_as_shards_do(routed: Routed, epoch: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        routed.run(f"select jobq.put_epoch({epoch})")
    assert refused.value.sqlstate == "22023"


@pytest.mark.parametrize("words", [["add", "postgresql://nowhere/app"], ["list"], ["check"]])
def test_a_database_that_is_no_router_yet_is_told_how_to_become_one(
    clusters: Callable[[str], Cluster], words: list[str]
) -> None:
    with clusters("15").database("template0") as url:
        done = CliRunner().invoke(main, ["cluster", *words, "--database", url])
        assert done.exit_code == 1
        assert "jobq cluster init" in done.output and "jobq deploy" not in done.output
