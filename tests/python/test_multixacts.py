"""jobq's own work makes no multixact, however many sessions are at it at once.

PostgreSQL keeps the members of all multixacts of a server in one bounded space, and writes
nothing more when that is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]

SESSIONS = 64
SLOTS = 1024
CALLS = """
    select * from jobq.exchange(
        array[%(queue)s], %(queue)s, 9, (%(ids)s::uuid[])[1:1], '{1}',
        failures => (
            select jsonb_agg(jsonb_build_object(
                'job_id', job_id, 'attempt', 1, 'error', 'e', 'retryable', n = 1
            ))
            from unnest((%(ids)s::uuid[])[2:3]) with ordinality as f (job_id, n)
        )
    );
    select jobq.release((%(ids)s::uuid[])[4], 1);
    select * from jobq.heartbeat(%(queue)s, (%(ids)s::uuid[])[5:6], '{1,1}');
    select jobq.cancel((%(ids)s::uuid[])[5]);
    select jobq.redrive((%(ids)s::uuid[])[3]);
    select jobq.cancel(jobq.enqueue('k', queue => %(queue)s, run_at => now() + '1 h'));
    select * from jobq_internal.recover(10);
"""


@pytest.mark.prove
def test_sessions_at_once_make_no_multixact(connect: Connect) -> None:
    watcher = connect()
    watcher.execute("select jobq.put_kind('k', retry_initial_delay => '1 h')")
    sessions = in_slots_of_their_own(connect)
    held = [claimed(session) for session in sessions]
    before = multixacts(watcher)
    for session, ids in zip(sessions, held, strict=True):
        session.execute("begin")
        call(session, ids)
    for session in sessions:
        session.execute("commit")
    assert multixacts(watcher) == before
    assert watcher.execute("select count(*) from jobq.job").fetchone() == (8 * SESSIONS,)


def test_the_members_that_are_kept_are_told(connect: Connect) -> None:
    """Two hundred multixacts are read: all of them, or a sample where other tests made more.

    This test makes but 19 of many then, so that a sample is off by a few in a hundred.
    """
    watcher = connect()
    for session in [connect() for _ in range(20)]:
        session.execute("begin; select from jobq_private.setting for key share")
    _, made = multixacts(watcher)
    [[told]] = watcher.execute("select jobq_private.multixact_members()")
    [[shown]] = watcher.execute(
        "select finding from jobq.health() where subject = 'multixact_members' and is_ok"
    )
    assert told == pytest.approx(int(made), rel=0.2)
    assert str(told) in shown


def in_slots_of_their_own(connect: Connect) -> list[Connection]:
    """Return connections whose pids differ in the bits that say which rows they refer to."""
    return list(dict(slots(connect)).values())


def slots(connect: Connect) -> Iterator[tuple[int, Connection]]:
    """Connect until there are enough slots, and give each connection with its slot."""
    found: set[int] = set()
    while len(found) < SESSIONS:
        connection = connect()
        slot = connection.info.backend_pid % SLOTS
        found.add(slot)
        yield slot, connection


def claimed(session: Connection) -> list[Any]:
    """Claim six jobs of the session's own queue."""
    queue = str(session.info.backend_pid)
    for _ in range(7):
        session.execute("select jobq.enqueue('k', queue => %s)", [queue])
    query = "select job_id from jobq.claim(array[%s], %s, 6)"
    return [row[0] for row in session.execute(query, [queue, queue])]


def call(session: Connection, ids: list[Any]) -> None:
    """Change the state of jobs in every way that workers and operators do."""
    given = {"queue": str(session.info.backend_pid), "ids": ids}
    for statement in CALLS.strip().rstrip(";").split(";"):
        session.execute(statement, given)


def multixacts(watcher: Connection) -> Any:
    """Return how many multixacts were ever made on the server, and how many members."""
    watcher.execute("checkpoint")
    query = "select next_multixact_id, next_multi_offset from pg_control_checkpoint()"
    return watcher.execute(query).fetchone()
