"""Jobs that wait for others, and batches: what holds when several do something at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from waiting import until

from jobq import AsyncClient, Client, Graph, JobContext, Registry, Worker
from jobq.errors import IllegalState, InvalidArgument
from jobq_cli.tree import drawn
from jobq_testing import run_due

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    Connection = psycopg.Connection[tuple[Any, ...]]

QUEUE = ["default"]
# However quick the machine is, a statement that ends jobs takes longer than a claim may settle.
SLOW_DISK = """
create function public.slow_disk() returns trigger language plpgsql as
'begin perform pg_sleep(0.25); return null; end';
create trigger slow_disk after insert on jobq_private.job_archive
for each statement execute function public.slow_disk()
"""

FAIL = "select jobq.fail(%s, %s, 'no', 'NO', false)"


@pytest.fixture
def sessions(database: str) -> Iterator[Callable[[], Connection]]:
    """Connections that commit when they are told to."""
    with ExitStack() as stack:

        def connect() -> Connection:
            connection = stack.enter_context(psycopg.connect(database))
            connection.execute("set lock_timeout = '5s'")
            connection.commit()
            return connection

        yield connect


def enqueue(connection: Connection, kind: str, *after: UUID, failure: str | None = None) -> UUID:
    row = connection.execute(
        "select jobq.enqueue(%s, after => %s, after_failure => %s)",
        (kind, list(after) or None, failure),
    ).fetchone()
    connection.commit()
    assert row is not None
    return row[0]  # type: ignore[no-any-return] # a uuid


def states(connection: Connection) -> dict[str, str]:
    rows = connection.execute("select kind, state from jobq.job").fetchall()
    connection.commit()
    return dict(rows)


def looks(connection: Connection) -> int:
    row = connection.execute("select count(*) from jobq_private.pending").fetchone()
    connection.commit()
    assert row is not None
    return int(row[0])


def claim(connection: Connection, max_jobs: int = 10) -> dict[str, UUID]:
    rows = connection.execute(
        "select kind, job_id from jobq.claim(%s, 'w', %s)", (QUEUE, max_jobs)
    ).fetchall()
    return dict(rows)


def exchange(connection: Connection, *done: UUID) -> dict[str, UUID]:
    """End jobs and claim others, as a worker does; without the commit."""
    rows = connection.execute(
        "select kind, job_id from jobq.exchange(%s, 'w', 10, %s, %s) where outcome = 'claimed'",
        (QUEUE, list(done), [1] * len(done)),
    ).fetchall()
    return dict(rows)


def settled(connection: Connection) -> None:
    """Resolve until nothing is left, which is what maintain() comes to."""
    while looks(connection):
        connection.execute("select jobq_private.resolve()")
        connection.commit()


def test_the_last_of_two_parents_that_end_at_once_releases_the_child(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    parents = [enqueue(one, "p1"), enqueue(one, "p2")]
    enqueue(one, "child", *parents)
    claim(one)
    one.commit()
    assert exchange(one, parents[0]) == {}
    assert exchange(two, parents[1]) == {}, "the other one's end cannot be seen yet"
    one.commit()
    two.commit()
    settled(one)
    assert states(one)["child"] == "queued"


@pytest.mark.parametrize("ends_first", [True, False])
def test_a_child_that_comes_while_its_parent_ends_is_released(
    sessions: Callable[[], Connection], ends_first: bool
) -> None:
    one, two = sessions(), sessions()
    parent = enqueue(one, "parent")
    claim(one)
    one.commit()
    one.execute("select jobq.complete(%s, 1)", (parent,))
    two.execute("select jobq.enqueue('child', after => %s)", ([parent],))
    for connection in (one, two) if ends_first else (two, one):
        connection.commit()
        connection.execute("select jobq_private.resolve()")
        connection.commit()
    settled(one)
    assert states(one)["child"] == "queued"
    assert looks(one) == 0


def test_a_child_that_comes_after_an_uncommitted_end_was_looked_at_is_released(
    sessions: Callable[[], Connection],
) -> None:
    ending, other = sessions(), sessions()
    parent = enqueue(other, "parent")
    enqueue(other, "first", parent)
    settled(other)  # has looked at the first child, so the parent is awaited
    claim(ending)
    ending.commit()
    exchange(ending, parent)  # looks at the end before it is committed
    enqueue(other, "late", parent)
    other.execute("select jobq_private.resolve()")  # looks at the second child, whose parent lives
    other.commit()
    ending.commit()
    settled(other)
    assert states(other)["late"] == "queued"


def test_a_parent_redriven_while_its_end_is_looked_at_holds_its_child_again(
    sessions: Callable[[], Connection],
) -> None:
    looking, other = sessions(), sessions()
    parent, live = enqueue(other, "parent"), enqueue(other, "live")
    enqueue(other, "child", parent, live, failure="run")
    other.execute("select jobq.cancel(%s)", (parent,))
    other.commit()
    looking.execute("select jobq_private.resolve()")  # closes the edge, and does not commit
    other.execute("set lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        other.execute("select jobq.redrive(%s)", (parent,))
    other.rollback()
    looking.commit()
    other.execute("select jobq.redrive(%s)", (parent,))
    assert other.execute("select is_open from jobq_private.edge").fetchall() == [(True,), (True,)]


def test_no_job_joins_a_batch_whose_end_has_started_one_of_its_jobs(
    sessions: Callable[[], Connection],
) -> None:
    holding, other = sessions(), sessions()
    batch = Client(other).open_batch(on_success={"kind": "report"}, on_end={"kind": "end"})
    Client(other).seal_batch(batch)
    other.commit()
    holding.execute("select from jobq_private.job where kind = 'end' for update")
    other.execute("select jobq_private.resolve()")
    assert states(other) == {"report": "queued", "end": "blocked"}
    with pytest.raises(IllegalState, match="ended"):
        Client(other).enqueue("late", batch_id=batch)
    other.rollback()
    holding.rollback()
    settled(other)
    assert states(other) == {"report": "queued", "end": "queued"}


def test_no_claim_settles_a_whole_wide_graph(sessions: Callable[[], Connection]) -> None:
    one = sessions()
    flow = Graph()
    root = flow.add("root", max_attempts=1)
    flow.add("end", after=[flow.add("part", after=[root]) for _ in range(5200)])
    root_id = next(iter(Client(one).enqueue_graph(flow).values()))
    claim(one)
    one.execute("select jobq.fail(%s, 1, 'boom')", (root_id,))
    one.execute(SLOW_DISK)
    one.commit()
    claim(one)
    one.execute("drop function public.slow_disk cascade")
    one.commit()
    assert looks(one) > 0, "the rest is left to others"
    settled(one)
    assert states(one) == {"root": "dead", "part": "cancelled", "end": "cancelled"}
    back = one.execute("select count(*) from jobq.redrive_tree(%s)", (root_id,)).fetchone()
    assert back == (5202,)
    assert looks(one) == 0, "each waits for one that tells of its end"


def test_who_enqueues_waits_for_no_parent(sessions: Callable[[], Connection]) -> None:
    one, two = sessions(), sessions()
    parent = enqueue(one, "parent")
    claim(one)
    one.commit()
    one.execute("select jobq.save_step(%s, 1, 'half', '1')", (parent,))
    enqueue(two, "child", parent)
    two.execute("select jobq_private.resolve()")
    two.commit()
    assert looks(two) == 1, "the parent's row is somebody's: it cannot be marked yet"
    one.execute("select jobq.complete(%s, 1)", (parent,))
    one.commit()
    settled(two)
    assert states(two)["child"] == "queued"


def test_a_child_that_somebody_holds_is_released_later(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    parent = enqueue(one, "parent")
    child = enqueue(one, "child", parent)
    claim(one)
    one.commit()
    two.execute("select from jobq_private.job where job_id = %s for update", (child,))
    assert exchange(one, parent) == {}, "nobody waits for the child's row"
    one.commit()
    assert looks(one) == 1
    two.rollback()
    settled(one)
    assert states(one)["child"] == "queued"


def test_a_parent_whose_end_is_undone_releases_nobody(
    sessions: Callable[[], Connection],
) -> None:
    one = sessions()
    parent = enqueue(one, "parent")
    enqueue(one, "child", parent)
    claim(one)
    one.commit()
    assert set(exchange(one, parent)) == {"child"}
    one.rollback()
    assert states(one) == {"parent": "running", "child": "blocked"}


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_snapshot_that_is_too_old_leaves_the_release_to_others(
    sessions: Callable[[], Connection], isolation: str
) -> None:
    one, two = sessions(), sessions()
    parents = [enqueue(one, "p1"), enqueue(one, "p2")]
    enqueue(one, "child", *parents)
    claim(one)
    one.commit()
    one.execute(f"set transaction isolation level {isolation}")
    exchange(one, parents[0])
    exchange(two, parents[1])
    two.commit()
    one.commit()
    settled(two)
    assert states(two)["child"] == "queued"


def test_a_redrive_beside_a_new_child_strands_nobody(
    sessions: Callable[[], Connection],
) -> None:
    """The parent is marked as awaited on its way back, whoever saw what."""
    one, two = sessions(), sessions()
    parent = enqueue(one, "parent")
    claim(one)
    one.execute("select jobq.fail(%s, 1, 'boom', retryable => false)", (parent,))
    one.commit()
    one.execute("select jobq.redrive(%s)", (parent,))
    enqueue(two, "child", parent, failure="wait")
    two.execute("select jobq_private.resolve()")
    two.commit()
    one.commit()
    claim(one)
    one.execute("select jobq.complete(%s, 2)", (parent,))
    one.commit()
    settled(one)
    assert states(one)["child"] == "queued"


def test_batches_take_no_place_in_the_lock_table(sessions: Callable[[], Connection]) -> None:
    """Neither who adds members to many batches in one transaction, nor who ends them."""
    one = sessions()
    locks = """
        select count(*) from pg_locks
        where pid = pg_backend_pid() and locktype = 'advisory' and granted
    """
    one.execute("create temp table b on commit drop as select jobq.open_batch() as id")
    one.execute("insert into b select jobq.open_batch() from generate_series(1, 1500)")
    one.execute("select jobq.enqueue('m', batch_id => id) from b")
    one.execute("select jobq.seal_batch(id) from b")
    row = one.execute(locks).fetchone()
    assert row is not None
    assert row[0] < 100, "of those who add"
    one.execute(
        "select jobq.complete_many(array_agg(job_id), array_agg(attempt))"
        " from jobq.claim(%s, 'w', 10000)",
        (QUEUE,),
    )
    for _ in range(100):
        one.execute("select jobq_private.resolve()")
    assert one.execute(
        "select count(*) from jobq_private.batch where ended_at is null"
    ).fetchone() == (0,)
    row = one.execute(locks).fetchone()
    assert row is not None
    assert row[0] < 100, "of who ends them"


def test_the_last_members_that_end_at_once_end_the_batch(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    client = Client(one)
    batch = client.open_batch(on_success={"kind": "report"})
    members = [client.enqueue(kind, batch_id=batch).job_id for kind in ("m1", "m2")]
    client.seal_batch(batch)
    one.commit()
    claim(one)
    one.commit()
    exchange(one, members[0])
    exchange(two, members[1])
    one.commit()
    two.commit()
    settled(one)
    assert states(one)["report"] == "queued"
    assert client.batch(batch).succeeded == 2


def test_a_member_that_dies_while_its_batch_is_looked_at_starts_the_job_for_it(
    sessions: Callable[[], Connection],
) -> None:
    """Of 60 batches whose last member dies under the eyes of another session, each starts it."""
    one, two = sessions(), sessions()
    one.autocommit = two.autocommit = True
    client = Client(one)
    for _ in range(60):
        batch = client.open_batch(on_first_death={"kind": "alarm"})
        client.enqueue("member", batch_id=batch)
        client.seal_batch(batch)
        [(job_id, attempt)] = one.execute(
            "select job_id, attempt from jobq.claim('{default}', 'w', kinds => '{member}')"
        ).fetchall()
        with ThreadPoolExecutor(1) as pool:
            died = pool.submit(one.execute, FAIL, [job_id, attempt])
            while not died.done():
                two.execute("select jobq_private.settle_batch(%s)", [batch])
        two.execute("select jobq_private.settle_batch(%s)", [batch])
    found = one.execute("select state, count(*) from jobq.job where kind = 'alarm' group by 1")
    assert found.fetchall() == [("queued", 60)]


def test_a_redrive_that_is_not_committed_yet_holds_its_batch_up(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    client = Client(one)
    batch = client.open_batch(on_success={"kind": "report"})
    dead, other = (client.enqueue(kind, batch_id=batch).job_id for kind in ("m1", "m2"))
    client.seal_batch(batch)
    claim(one)
    one.execute("select jobq.fail(%s, 1, 'boom', retryable => false)", (dead,))
    one.commit()
    two.execute("select jobq.redrive(%s)", (dead,))
    assert exchange(one, other) == {}
    one.commit()
    assert client.batch(batch).ended_at is None, "a member is on its way back"
    one.commit()
    two.commit()
    settled(one)
    assert states(one)["report"] == "blocked"
    claim(one)
    one.execute("select jobq.complete(%s, 2)", (dead,))
    settled(one)
    assert states(one)["report"] == "queued"


def test_claims_find_what_a_wide_fan_in_has_released(
    sessions: Callable[[], Connection],
) -> None:
    one = sessions()
    flow = Graph()
    flow.add("end", after=[flow.add("part") for _ in range(2500)])
    Client(one).enqueue_graph(flow)
    one.execute(
        "select jobq.complete_many(array_agg(job_id), array_agg(attempt))"
        " from jobq.claim(%s, 'w', 2500)",
        (QUEUE,),
    )
    one.commit()

    def is_found() -> bool:
        found = set(claim(one))
        one.commit()
        return found == {"end"}

    until(is_found)


def test_a_parent_that_somebody_holds_delays_only_its_part_of_a_wide_fan_in(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    parents = [job.job_id for job in Client(one).enqueue_many([{"kind": "part"}] * 2500)]
    one.commit()
    held = parents[1200]
    two.execute("select from jobq_private.job where job_id = %s for update", (held,))
    enqueue(one, "end", *parents)
    marked = "select count(*) from jobq_private.job where is_awaited"
    for _ in range(100):
        one.execute("select jobq_private.resolve()")
        one.commit()
        if one.execute(marked).fetchone() == (2499,):
            break
    assert one.execute(marked).fetchone() == (2499,)
    one.commit()
    assert looks(one) == 1
    two.rollback()
    one.execute(
        "select jobq.complete_many(array_agg(job_id), array_agg(attempt))"
        " from jobq.claim(%s, 'w', 2500)",
        (QUEUE,),
    )
    one.commit()
    settled(one)
    assert states(one)["end"] == "queued"


def waits_for_a_lock(observer: Connection, connection: Connection) -> bool:
    row = observer.execute(
        "select from pg_stat_activity where pid = %s and wait_event_type = 'Lock'",
        (connection.info.backend_pid,),
    ).fetchone()
    observer.commit()
    return row is not None


def dead_tree(one: Connection) -> tuple[UUID, UUID]:
    """Make a parent that is dead, and a child that nobody has cancelled yet."""
    parent = enqueue(one, "parent")
    child = enqueue(one, "child", parent)
    claim(one)
    one.commit()
    one.execute("select jobq.fail(%s, 1, 'boom', retryable => false)", (parent,))
    one.commit()
    return parent, child


def test_a_redrive_of_a_tree_takes_what_is_being_cancelled_with_it(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    parent, child = dead_tree(one)
    one.execute("select jobq_private.resolve()")
    two.execute("set lock_timeout = '100ms'")
    two.commit()
    with pytest.raises(psycopg.errors.LockNotAvailable):
        two.execute("select jobq.redrive_tree(%s)", (parent,))
    two.rollback()
    one.commit()
    back = {row[0] for row in two.execute("select jobq.redrive_tree(%s)", (parent,))}
    two.commit()
    assert back == {parent, child}
    assert states(one) == {"parent": "queued", "child": "blocked"}


def test_a_child_of_a_tree_that_is_redriven_is_not_cancelled(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    parent, _child = dead_tree(one)
    two.execute("select jobq.redrive_tree(%s)", (parent,))
    one.execute("select jobq_private.resolve()")
    one.commit()
    two.commit()
    settled(one)
    assert states(one) == {"parent": "queued", "child": "blocked"}


def test_a_tree_is_cancelled_though_a_job_of_it_ends_without_a_trace(
    sessions: Callable[[], Connection],
) -> None:
    one, two, three = sessions(), sessions(), sessions()
    one.execute("select jobq.put_kind('leaf', keep_succeeded => '0')")
    parent = enqueue(one, "parent")
    leaf, _other = enqueue(one, "leaf", parent), enqueue(one, "other", parent)
    claim(one)
    exchange(one, parent)
    one.commit()
    one.execute("select jobq.complete(%s, 1)", (leaf,))
    with ThreadPoolExecutor(1) as pool:
        cancelled = pool.submit(lambda: Client(two).cancel_tree(parent))
        until(lambda: waits_for_a_lock(three, two))
        one.commit()
        assert [done.outcome for done in cancelled.result()] == ["cancel_requested"]
    two.commit()


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_an_old_snapshot_adds_no_member_to_a_batch_that_has_ended(
    sessions: Callable[[], Connection], isolation: str
) -> None:
    one, two = sessions(), sessions()
    batch = Client(one).open_batch(on_end={"kind": "end"})
    one.commit()
    two.execute(f"set transaction isolation level {isolation}")
    two.execute("select 1")
    Client(one).seal_batch(batch)
    one.commit()
    settled(one)
    assert states(one) == {"end": "queued"}
    with pytest.raises(psycopg.errors.SerializationFailure):
        two.execute("select jobq.enqueue('late', batch_id => %s)", (batch,))
    two.rollback()


def test_a_name_that_two_add_to_a_graph_at_once_is_refused_to_the_second(
    sessions: Callable[[], Connection],
) -> None:
    one, two, three = sessions(), sessions(), sessions()
    first = enqueue(one, "first")
    more = Graph()
    more.add("part", name="part")
    ids = Client(one).enqueue_graph(more, graph_of=first)
    one.commit()
    again = Graph()
    again.add("part", name="part#2", after=[ids["part"]])
    Client(one).enqueue_graph(again, graph_of=first)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(lambda: Client(two).enqueue_graph(again, graph_of=first))
        until(lambda: waits_for_a_lock(three, two))
        one.commit()
        with pytest.raises(InvalidArgument):
            second.result()
    two.rollback()


def test_a_parent_of_the_same_transaction_leaves_a_trace(
    sessions: Callable[[], Connection],
) -> None:
    """Whatever its kind keeps, and though nobody has looked at the child when it ends."""
    one = sessions()
    one.execute("select jobq.put_kind('parent', keep_succeeded => '0')")
    one.commit()
    client = Client(one)
    parent = client.enqueue("parent").job_id
    client.enqueue("child", after=[parent], after_failure="wait")
    one.commit()
    claim(one, 1)
    exchange(one, parent)
    one.commit()
    settled(one)
    assert set(states(one)) == {"parent", "child"}
    assert states(one)["child"] in ("queued", "running")


@pytest.mark.parametrize(
    ("failure", "state"),
    [("cancel", "cancelled"), ("wait", "cancelled"), ("run", "queued")],
)
def test_a_parent_that_ends_without_a_trace_before_anybody_looks_is_gone(
    sessions: Callable[[], Connection], failure: str, state: str
) -> None:
    one = sessions()
    one.execute("select jobq.put_kind('parent', keep_succeeded => '0')")
    parent = enqueue(one, "parent")
    claim(one)
    one.commit()
    child = enqueue(one, "child", parent, failure=failure)
    below = enqueue(one, "below", child)
    one.execute("select jobq.complete(%s, 1)", (parent,))
    one.commit()
    settled(one)
    client = Client(one)
    [given] = client.list_inputs(child)
    assert (given.job_id, given.kind, given.state, given.result) == (
        parent,
        None,
        "gone",
        None,
    )
    assert client.get(child).state == state
    if state == "cancelled":
        assert client.get(child).last_error_code == "PARENT_GONE"
        assert client.get(below).last_error_code == "PARENT_FAILED"
        assert {row[0] for row in one.execute("select jobq.redrive_tree(%s)", (child,))} == {
            child, below,
        }  # fmt: skip
        one.commit()
        settled(one)
        assert states(one) == {"child": "cancelled", "below": "cancelled"}


def test_a_batch_does_not_end_while_a_member_is_on_its_way(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    batch = Client(one).open_batch(on_end={"kind": "end"})
    one.commit()
    Client(two).enqueue("late", batch_id=batch)
    Client(one).seal_batch(batch)
    one.commit()
    one.execute("select jobq_private.resolve()")
    one.commit()
    assert states(one)["end"] == "blocked"
    two.commit()
    assert claim(one) == {"late": Client(one).list_jobs(kind="late")[0].job_id}


def test_parents_are_kept_while_a_job_that_waited_for_them_is(
    connect: Callable[[], Connection],
) -> None:
    connection = connect()
    connection.execute("select jobq.configure(retention => '2 days', key_retention => '1 day')")
    parent, stranger = enqueue(connection, "parent"), enqueue(connection, "stranger")
    other = enqueue(connection, "other")
    child = enqueue(connection, "child", parent, other)
    claim(connection)
    for job_id in (parent, stranger):
        connection.execute("select jobq.complete(%s, 1, '7')", (job_id,))
    connection.execute(
        "set session_replication_role = replica; update jobq_private.job_archive"
        " set finished_at = finished_at - interval '9 days', job_id = job_id;"
        " set session_replication_role = origin"
    )

    def maintain() -> None:
        for _ in range(12):
            connection.execute("select jobq.maintain()")

    maintain()
    assert "stranger" not in states(connection)
    assert states(connection)["parent"] == "succeeded"
    partitions = connection.execute(
        "select count(*) from pg_class where relname ~ '^job_archive_[0-9]'"
    ).fetchone()
    maintain()
    assert (
        partitions
        == connection.execute(
            "select count(*) from pg_class where relname ~ '^job_archive_[0-9]'"
        ).fetchone()
    ), "partitions are not made and dropped again and again"
    connection.execute("select jobq.delete_many(%s)", ([child],))
    maintain()
    assert "parent" not in states(connection)


def make_tenant(connection: Connection) -> None:
    """Make the role of a tenant, of the whole server, if it is not there."""
    connection.execute(
        "do $$ begin if not exists (select from pg_roles where rolname = 'tenant') then"
        " create role tenant; end if; end $$; grant jobq_worker to tenant"
    )


@pytest.mark.prove
def test_a_day_of_which_many_jobs_are_needed_holds_up_no_other(
    connect: Callable[[], Connection],
) -> None:
    connection = connect()
    connection.execute("select jobq.configure(retention => '2 days', key_retention => '1 day')")
    [batch] = connection.execute("select jobq.open_batch()").fetchone() or ()
    connection.execute("select jobq.enqueue('member', batch_id => %s)", [batch])
    connection.execute("select jobq.enqueue('stranger')")
    connection.execute(
        "select jobq.complete(job_id, attempt) from jobq.claim('{default}', 'w', 10)"
    )
    connection.execute(
        """
        set session_replication_role = replica;
        update jobq_private.job_archive
        set finished_at = finished_at - interval '9 days' where kind = 'member';
        insert into jobq_private.job_archive
        select (jsonb_populate_record(
            a, jsonb_build_object(
                'job_id', gen_random_uuid(), 'batch_id', case when n > 0 then a.batch_id end,
                'finished_at', a.finished_at - case when n < 0 then interval '1 day' else '0' end
            )
        )).*
        from jobq_private.job_archive as a, generate_series(-10, 10000) as n
        where a.kind = 'member';
        set session_replication_role = origin
        """
    )
    days = "select finished_at::date - now()::date, count(*) from jobq_private.job_archive"
    days += " where kind = 'member' group by 1 order by 1"

    def maintain() -> list[Any]:
        while connection.execute("select from jobq.maintain() where has_more").fetchall():
            pass
        return connection.execute(days).fetchall()

    # A vacuum of a partition puts its end off.
    until(lambda: len(maintain()) == 1, "for the end of the day before")
    assert maintain() == [(-9, 10002)], "the day before goes, this one stays whole"
    failed = connection.execute("table jobq_private.failed_task").fetchall()
    assert not failed
    connection.execute(
        "set session_replication_role = replica;"
        " update jobq_private.job_archive set batch_id = null"
        " where kind = 'member' and job_id in (select job_id from jobq_private.job_archive"
        " where kind = 'member' order by job_id limit 9000);"
        " set session_replication_role = origin"
    )
    until(lambda: maintain()[0][1] < 10000, "for the end of what is not needed")
    [(_, left)] = maintain()
    assert left in (1001, 1002), "the needed ones stay in a partition of their own"
    connection.execute("update jobq_private.batch set ended_at = now()")
    until(lambda: not maintain(), "for the end of the day")
    assert maintain() == []


def test_who_sees_one_queue_forgets_nothing_that_trees_in_others_need(
    connect: Callable[[], Connection],
) -> None:
    connection, tenant = connect(), connect()
    connection.execute("select jobq.configure(retention => '2 days', key_retention => '1 day')")
    make_tenant(connection)
    connection.execute(
        "select jobq.put_queue('theirs'), jobq.grant_queue('tenant', 'mine', 'work')"
    )
    flow = Graph()
    flow.add("child", after=[flow.add("parent", queue="mine"), flow.add("other")])
    Client(connection).enqueue_graph(flow)
    connection.execute("select jobq.claim('{mine}', 'w')")
    connection.execute("select jobq.complete(job_id, 1, '7') from jobq.job where kind = 'parent'")
    connection.execute("begin isolation level repeatable read")
    connection.execute("select jobq.emit('paid')")
    connection.execute("commit")
    long_ago = "jobq_private.id_floor(now() - interval '9 days')"
    connection.execute(
        "set session_replication_role = replica;"
        " update jobq_private.job_archive set finished_at = finished_at - interval '9 days',"
        f" prune_at = now() - interval '1 day';"
        f" update jobq_private.edge set child = {long_ago};"
        f" update jobq_private.node set job_id = {long_ago} where name = 'child';"
        f" update jobq_private.job set job_id = {long_ago} where kind = 'child';"
        " set session_replication_role = origin"
    )
    connection.execute("select jobq.enforce_queue_grants()")
    tenant.execute("set session authorization tenant")
    for _ in range(3):
        tenant.execute("select jobq.maintain()")
    kept = (
        "select (select count(*) from jobq_private.edge), (select count(*) from jobq_private.node),"
        " (select count(*) from jobq_private.pending where about = 'event'),"
        " (select count(*) from jobq_private.job_archive)"
    )
    assert connection.execute(kept).fetchone() == (2, 3, 1, 1)


def test_a_parent_that_grants_hide_is_neither_named_nor_said_to_be_gone(
    connect: Callable[[], Connection],
) -> None:
    connection, tenant = connect(), connect()
    make_tenant(connection)
    connection.execute(
        "select jobq.put_queue('theirs'), jobq.grant_queue('tenant', 'mine', 'work')"
    )
    flow = Graph()
    parents = [
        flow.add("seen", queue="mine"),
        flow.add("hidden", queue="theirs"),
        flow.add("deleted", queue="mine"),
    ]
    flow.add("child", after=parents, after_failure="run", queue="mine")
    ids = Client(connection).enqueue_graph(flow)
    connection.execute("select jobq.delete_many(%s)", ([ids["deleted"]],))
    connection.execute("select jobq.enforce_queue_grants()")
    tenant.execute("set session authorization tenant")

    def inputs(caller: Connection) -> dict[UUID, tuple[Any, ...]]:
        found = Client(caller).list_inputs(ids["child"])
        return {given.job_id: (given.name, given.kind, given.state) for given in found}

    assert inputs(connection) == {
        ids["seen"]: ("seen", "seen", "queued"),
        ids["hidden"]: ("hidden", "hidden", "queued"),
        ids["deleted"]: (None, None, "gone"),
    }
    assert inputs(tenant) == {
        ids["seen"]: ("seen", "seen", "queued"),
        ids["hidden"]: (None, None, "hidden"),
        ids["deleted"]: (None, None, "hidden"),
    }
    lines = list(drawn(Client(tenant).graph(ids["child"])))
    assert [line.split()[0] for line in lines] == ["seen", "child", "and"]


def test_two_who_add_jobs_between_blocked_ones_close_no_ring(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    flow = Graph()
    start = flow.add("start")
    flow.add("x", after=[start])
    flow.add("y", after=[start])
    ids = Client(one).enqueue_graph(flow)
    one.commit()

    def between(connection: Connection, above: str, below: str) -> None:
        more = Graph()
        more.add(f"{above} to {below}", name=f"{above}{below}", after=[above], before=[below])
        Client(connection).enqueue_graph(more, graph_of=ids["start"])

    between(one, "x", "y")
    with ThreadPoolExecutor() as pool:
        second = pool.submit(between, two, "y", "x")
        until(lambda: is_waiting(one, two))
        one.commit()
        with pytest.raises(InvalidArgument, match="waits for"):
            second.result()
    two.rollback()
    two.execute("set transaction isolation level repeatable read")
    with pytest.raises(InvalidArgument, match="read committed"):
        between(two, "y", "x")


def is_waiting(observer: Connection, waiting: Connection) -> bool:
    """Whether a session waits for a lock."""
    query = "select cardinality(pg_blocking_pids(%s)) > 0"
    row = observer.execute(query, (waiting.info.backend_pid,)).fetchone()
    return row is not None and bool(row[0])


registry = Registry()


@registry.handler("number")
def number(n: int) -> int:
    return n


@registry.handler("total")
async def total(_payload: Any, context: JobContext) -> int:
    return sum(parent.result for parent in await context.inputs())


@registry.handler("total in a thread")
def total_in_a_thread(_payload: Any, context: JobContext) -> int:
    return sum(parent.result for parent in context.inputs())


@registry.handler("total in a transaction", transactional=True)
def total_in_a_transaction(_payload: Any, context: JobContext, connection: Connection) -> int:
    assert connection.execute("select 1").fetchone()
    return sum(parent.result for parent in context.inputs())


@registry.handler("total in a process", process=True)
def total_in_a_process(_payload: Any, context: JobContext) -> int:
    return sum(parent.result for parent in context.inputs())


TOTALS = ("total", "total in a thread", "total in a transaction", "total in a process")


async def test_handlers_get_what_their_parents_have_returned(database: str) -> None:
    async with AsyncClient(database) as client, Worker(database, registry):
        parents = [(await client.enqueue("number", n)).job_id for n in (1, 2, 3)]
        jobs = [(await client.enqueue(kind, after=parents)).job_id for kind in TOTALS]
        results = [await client.result(job_id, timeout=60) for job_id in jobs]
    assert results == [6, 6, 6, 6]


def test_inputs_in_a_test_of_ones_own(connect: Callable[[], Connection]) -> None:
    connection = connect()
    client = Client(connection)
    parent = client.enqueue("number", 5).job_id
    client.enqueue("total", after=[parent])
    assert [ran.result for ran in run_due(connection, registry)] == [5, 5]


def test_a_job_that_joins_a_graph_keeps_the_one_below_blocked(
    sessions: Callable[[], Connection],
) -> None:
    one, two = sessions(), sessions()
    client = Client(one)
    flow = Graph()
    flow.add("below", after=[flow.add("above")])
    ids = client.enqueue_graph(flow)
    one.commit()
    claim(one)
    one.commit()
    more = Graph()
    more.add("part", before=["below"])
    Client(two).enqueue_graph(more, graph_of=ids["above"])
    assert exchange(one, ids["above"]) == {}, "nobody waits for who adds a job"
    one.commit()
    two.commit()
    settled(one)
    assert states(one) == {"above": "succeeded", "below": "blocked", "part": "queued"}
    with pytest.raises(IllegalState):
        Client(two).enqueue_graph(more, graph_of=ids["above"])


def test_a_builder_names_jobs_and_draws_what_it_has_made(
    connect: Callable[[], Connection],
) -> None:
    client = Client(connect())
    flow = Graph()
    fetch = flow.add("fetch", {"url": "a"})
    resized = [flow.add("resize", n, after=[fetch], queue="q") for n in range(2)]
    flow.add("report", after=resized)
    with pytest.raises(InvalidArgument):
        flow.add("fetch", name="resize#2")
    ids = client.enqueue_graph(flow)
    assert list(ids) == ["fetch", "resize", "resize#2", "report"]
    assert list(drawn(client.graph(ids["resize"]))) == [
        f"fetch  queued  {ids['fetch']}",
        f"  resize *  blocked, waits for 1  {ids['resize']}",
        f"    report  blocked, waits for 2  {ids['report']}",
        f"  resize#2  blocked, waits for 1  {ids['resize#2']}",
        "    report (above)",
    ]
    assert [done.outcome for done in client.cancel_tree(ids["report"])] == ["cancelled"] * 4
    assert len(client.redrive_tree(ids["fetch"], "all")) == 4
    with pytest.raises(InvalidArgument, match="a waits for b waits for a"):
        client.enqueue_graph(
            {
                "jobs": [
                    {"name": "a", "kind": "k", "after": ["b"]},
                    {"name": "b", "kind": "k", "after": ["a"]},
                ]
            }
        )


def test_a_job_to_wait_for_that_cannot_be_meant_is_refused(
    connect: Callable[[], Connection],
) -> None:
    client, flow, other = Client(connect()), Graph(), Graph()
    stranger = other.add("fetch")
    parent = client.enqueue("parent").job_id
    for refused in (
        lambda: client.enqueue("k", after=str(parent)),
        lambda: client.enqueue("k", after_failure="zz"),  # type: ignore[arg-type]
        lambda: flow.add("report", after="fetch"),
        lambda: flow.add("report", after=[stranger]),
        lambda: flow.add("report", before=[stranger]),
    ):
        with pytest.raises(InvalidArgument, match=r"list|after_failure|another graph"):
            refused()
    assert flow.jobs == []
