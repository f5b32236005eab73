"""The queue against a model of it, by random calls from sessions with open transactions.

Hypothesis draws calls, transactions that commit, roll back or lose their connection, and
leases that expire; after each step an observer compares all jobs and their history with
the model, and in the end everything must finish.

JOBQ_MODEL_EXAMPLES=5000 looks longer. A failure prints the calls that lead to it; JOBQ_SEED=1
repeats the run, and looks for the shortest such calls. JOBQ_SEED=random draws other calls.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from uuid import UUID

import chance
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from psycopg.types.json import Jsonb
from queue_model import FINAL, LEGAL, Job, Queue, Refused, Request

from catalog import qualified

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

T = TypeVar("T")
EXAMPLES = int(os.environ.get("JOBQ_MODEL_EXAMPLES", "4"))
SESSIONS = 3
QUEUES = ("q1", "q2")
KINDS = ("plain", "reuse")
UNKNOWN = UUID("00000000-0000-7000-8000-000000000000")

PROFILE = settings(
    stateful_step_count=60,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    phases=(Phase.generate, Phase.shrink) if chance.NAME in os.environ else (Phase.generate,),
)

session_numbers = st.integers(0, SESSIONS - 1)
picks = st.integers(0, 30)
staleness = st.sampled_from([0, 0, 0, 0, 1])
many = st.lists(st.tuples(picks, staleness), min_size=1, max_size=3)
requests = st.builds(
    Request,
    kind=st.sampled_from(KINDS),
    queue=st.sampled_from(QUEUES),
    priority=st.sampled_from([0, 0, 0, 5, -32768, 32767]),
    max_attempts=st.integers(1, 3),
    is_due=st.sampled_from([True, True, True, False]),
    idempotency_key=st.sampled_from([None, None, "i1", "i2"]),
    dedup_key=st.sampled_from([None, "d1", "d2"]),
    dedup=st.sampled_from([None, "skip", "replace", "enqueue"]),
).filter(lambda request: request.dedup != "replace" or request.dedup_key is not None)
USUAL = Request("plain", "q1", 0, 2, True, None, None, None)
queue_lists = st.permutations(QUEUES).flatmap(
    lambda queues: st.integers(1, len(queues)).map(lambda n: queues[:n])
)

# Partitions are made a day at a time, under a lock that the sessions would not wait for.
SETUP = """
select jobq.maintain();
select jobq.maintain();
select jobq.maintain();
select jobq.maintain();
select jobq.maintain();
select jobq.maintain();
select jobq.maintain();
select jobq.maintain();
select jobq.maintain();
select jobq.maintain();
select jobq.put_kind('plain', retry_strategy => 'fixed', retry_initial_delay => '1 h',
    retry_max_delay => '1 h', retry_jitter => 0);
select jobq.put_kind('reuse', reuse_key_after_failure => true);
"""
# A vacuum that gives pages back may lock a table for longer than the sessions wait.
KEEP_PAGES = """
select format('alter table %s set (vacuum_truncate = off)', c.oid::regclass)
from pg_class as c where c.relnamespace = 'jobq_private'::regnamespace and c.relkind = 'r'
"""
EMPTY = """
set session_replication_role = replica;
delete from jobq_private.job;
delete from jobq_private.job_archive;
delete from jobq_private.attempt;
delete from jobq_private.idempotency_key;
delete from jobq_private.queue;
delete from jobq_private.worker;
delete from jobq_private.job_log;
delete from jobq_private.schedule;
delete from jobq_private.endpoint_definition;
delete from jobq_private.endpoint;
delete from jobq_private.definition;
delete from jobq_private.api_key;
delete from jobq_private.queue_grant;
delete from jobq_private.kind where kind = 'other';
delete from jobq_private.paused_kind;
"""
JOBS = """
select job_id, kind, queue, priority, run_at, max_attempts, state, previous_state, attempt,
    attempts, cancel_requested_at is not null, lease_expires_at is not null,
    finished_at is not null
from jobq.job where schedule_id is null and kind <> 'other'
"""
HISTORY = """
select job_id, array_agg((attempt::text || ' ' || state) order by started_at, attempt)
from jobq.attempt group by job_id
"""

HOURS_LATER = """
update jobq_private.schedule
set next_run_at = greatest(next_run_at - interval '3 h', last_tick_at + interval '1 h')
where schedule_id in (
    select s.schedule_id from jobq_private.schedule as s
    where s.status = 'active' for update skip locked
)
"""
SLOTS = """
select j.schedule_id, count(*), count(distinct j.slot_at),
    1 + extract(epoch from max(j.slot_at) - min(j.slot_at)) / 3600
from jobq.job as j where j.schedule_id is not null group by j.schedule_id
"""
SCHEDULE = "'%s', 'other', every => '1 h', missed => 'all', dedup => 'enqueue', queue => 'other'"
# The functions of which the model knows only that they leave jobs alone, with arguments.
OTHERS = {
    "act_for": ("'ada'",),
    "authenticate": ("sha256('s1')", "sha256('s2')"),
    "cancel_tree": ("gen_random_uuid()",),
    "enqueue_graph": ("""'{"jobs": [{"name": "a", "kind": "other"}]}'""",),
    "redrive_tree": ("gen_random_uuid()",),
    "rerun": ("gen_random_uuid()",),
    "cancel_batch": ("gen_random_uuid()",),
    "open_batch": ("",),
    "seal_batch": ("gen_random_uuid()",),
    "await_events": ("",),
    "listen_events": ("", "since => now() - interval '1 h', max_events => 1000"),
    "begin_wait": ("'{q1}'", "'{q1,q2}'"),
    "cancel_many": ("array[gen_random_uuid()]",),
    "change_many": ("""'{"priority": 1}', array[gen_random_uuid()]""",),
    "claim_calls": ("'{other}'",),
    "run_calls": (
        "'{pg_catalog,jsonb_strip_nulls}', false, array[gen_random_uuid()], '{1}', '{\"1\"}', 9",
    ),
    "configure": ("retention => '30 days'", "key_retention => '30 days'"),
    "create_api_key": ("'s1', sha256('s1'), 'p', '{read}'", "'s2', sha256('s2'), 'p', '{read}'"),
    "create_schedule": tuple(
        f"{SCHEDULE % name}, starts_at => now() - interval '{hours} h'"
        for name in ("s1", "s2")
        for hours in (1, 3)
    ),
    "delete_definition": tuple(
        f"'{sort}', 's1'" for sort in ("payload_spec", "config", "secret", "endpoint")
    ),
    "delete_kind": ("'other'",),
    "delete_queue": ("'other'",),
    "delete_many": ("array[gen_random_uuid()]",),
    "due_in": ("'{q1,q2}'",),
    "emit": ("'e1'", "'e2', '1'"),
    "end_wait": ("",),
    "grant_queue": ("'jobq_worker', 'other', 'work'",),
    "subscribe": ("'s1', 'other'",),
    "unsubscribe": ("'s1', 'other'",),
    "publish": ("'s1'", "'s1', idempotency_key => 's1'"),
    "pause_kind": ("'other'",),
    "resume_kind": ("'other'",),
    "pause_endpoint": ("'s1'", "'s2', 'because'"),
    "pause_schedule": ("'s1'", "'s2', 'because'"),
    "put_config": ("""'s1', '{"a": 1}'""", """'s2', '{"a": 2}'"""),
    "put_endpoint": (
        """'s1', 'HTTP', '{"url": "{{config.a}}/x", "method": "POST"}', config => 's1'""",
        """'s1', 'HTTP', '{"url": "https://a.example", "method": "POST"}', 's1'""",
    ),
    "put_kind": ("'other'", "'other', max_attempts => 2"),
    "hold_key": ("'other', 'a', now() + interval '1 h', 'because'",),
    "put_budget": ("'queue', 'other', 1000000", "'queue', 'other', null"),
    "spend": ("gen_random_uuid(), 1, 5",),
    "put_limit": ("'other', 'a', 1", "'other', 'a', 2", "'other', 'a'"),
    "put_shard": ("0, 'postgresql://a/b'", "1, 'postgresql://b/b'"),
    "put_epoch": ("1, '{0}'", "2, '{0}'"),
    "put_successor": ("0, 1",),
    "confirm_jobs": ("'{}'",),
    "receive_jobs": ("'[]'",),
    "send_jobs": ("10",),
    "answer": ("gen_random_uuid(), 'q1', true",),
    "ask": ("gen_random_uuid(), 1, 'q1', 'Go on?'",),
    "choose_shard": ("'{0, 1}', 'a'",),
    "rate_limited": (
        "gen_random_uuid(), 1, '1 s'",
        "gen_random_uuid(), 1, '1 s', release => false",
    ),
    "release_key": ("'other', 'a'",),
    "put_payload_spec": ("""'s1', '{"type": "object"}'""",),
    "put_queue": ("'other'", "'other', priority => 3"),
    "put_secret": ("'s1', repeat('c', 40)::bytea, 'k1'",),
    "resume_endpoint": ("'s1'", "'s2'"),
    "resume_schedule": ("'s1'", "'s2'"),
    "retire_schedule": ("'s1'", "'s2'"),
    "retire_worker": ("'w0'", "'w1'"),
    "revise_job": ("'00000000-0000-7000-8000-000000000000', '{}'",),
    "revoke_api_key": ("'s1'", "'s2'"),
    "revoke_queue": ("'jobq_worker', 'other', 'work'",),
    "rotate_secret": ("'s1', 1, repeat('d', 40)::bytea, 'k2'",),
    "run_schedule": ("'s1'",),
    "backfill_schedule": ("'s1', now() - interval '1 h', now(), dry_run => true",),
    "save_step": ("gen_random_uuid(), 1, 'a', '1'",),
    "save_steps": ("array[gen_random_uuid()], '{1}', '{a}', '[1]'",),
    "signal": ("gen_random_uuid(), 'e1'",),
    "send_message": ("gen_random_uuid(), 'e1'",),
    "append": ("gen_random_uuid(), 1, 'a', '[1]'",),
    "append_many": ("array[gen_random_uuid()], '{1}', '{a}', '{1}', '[1]'",),
    "start_children": ("""gen_random_uuid(), 1, '[{"name": "a", "kind": "other"}]'""",),
    "call_children": ("""gen_random_uuid(), 1, '[{"name": "a", "kind": "other"}]'""",),
    "call_many": ("""array[gen_random_uuid()], '{1}', '[[{"name": "a", "kind": "other"}]]'""",),
    "wait_any": ("gen_random_uuid(), 1, 'a', '{e1}'",),
    "fork": ("gen_random_uuid()",),
    "read_streams": ("array[gen_random_uuid()], '{a}', '{1-1}'",),
    "read_stream": ("gen_random_uuid(), 'a'",),
    "await_stream": (
        "coalesce((select max(j.job_id::text) from jobq.job as j)::uuid, gen_random_uuid())",
    ),
    "submit_schedule": ("""'{"name": "s1", "kind": "other", "every": "1 h"}'""",),
    "submit_jobs": ("'[]', '{}'",),
    "test_endpoint": ("'nobody'",),
    "tick": ("", "1"),
    "maintain_in": ("",),
    "update_schedule": ("""'s1', '{"priority": 1}'""", """'s2', '{"priority": 2}'"""),
    "wait": ("coalesce((select max(j.job_id::text) from jobq.job as j)::uuid, gen_random_uuid())",),
    "work": ("'{other}', 1",),
}
# Schedules need both of these, one after the other.
FAVOURED = [*sorted(OTHERS), *(["create_schedule", "tick"] * 6)]
# Those of which it says what they return, or do to jobs.
MODELLED = {
    "cancel", "cancel_execution", "claim", "claim_job", "complete", "complete_many",
    "confirm_cancel", "enqueue", "enqueue_many", "exchange", "fail", "fail_many", "heartbeat",
    "log", "maintain", "pause_queue", "recover", "redrive", "redrive_many", "release",
    "release_many", "resume_queue", "set_progress", "stop_job", "submit_job",
    "wait_for",
}  # fmt: skip
# They change the tables themselves, or all jobs, which no other session may use meanwhile.
APART = {"advance_clock", "enforce_queue_grants", "health"}
CHOOSY = {"listen_events", "put_epoch", "put_successor"}
"""What refuses an isolation level, or a wrong number."""


def in_order(batch: list[Request]) -> list[int]:
    """Return the places of a batch's jobs in the order in which they are stored.

    Those with a dedup key come last, by kind and key.
    """

    def place(n: int) -> tuple[object, ...]:
        job = batch[n]
        if job.dedup_key is None:
            return (False, n)
        return (True, job.kind, job.dedup_key, n)

    return sorted(range(len(batch)), key=place)


@dataclass
class Session:
    """A connection, what it sees, and what the model says of it."""

    connection: psycopg.Connection[tuple[Any, ...]]
    worker: str
    view: Queue | None = None
    seen: Queue | None = None
    claims: list[tuple[UUID, int]] = field(default_factory=list)
    maintains: bool = False
    has_other_writes: bool = False

    def close(self) -> None:
        """Forget the transaction, which has ended."""
        self.view = self.seen = None
        self.maintains = self.has_other_writes = False

    @property
    def is_open(self) -> bool:
        return self.view is not None

    def rows(self, function: str, *arguments: object, casts: str = "") -> list[tuple[Any, ...]]:
        """Call a function of the schema jobq and return its rows."""
        names = casts or ", ".join(["%s"] * len(arguments))
        statement = f"select * from {qualified(function)}({names})"
        return self.connection.execute(statement, arguments).fetchall()


class QueueMachine(RuleBasedStateMachine):
    """Sessions that call the queue's functions, and the model beside them."""

    database: str
    isolation: str
    totals: ClassVar[Counter[str]] = Counter()
    failure: ClassVar[BaseException | None] = None
    foreseen: str | None
    tolerated: tuple[str, ...]

    def __init__(self) -> None:
        super().__init__()
        self.is_sound = True
        self.observer, self.clock, *workers = [self.connect() for _ in range(2 + SESSIONS)]
        for connection in (self.observer, self.clock):
            connection.execute("set default_transaction_isolation = 'read committed'")
        self.clock.execute(EMPTY)
        self.queue = Queue()
        self.sessions = [Session(c, f"w{n}") for n, c in enumerate(workers)]
        self.claimed: set[tuple[UUID, int]] = set()

    @classmethod
    def connect(cls) -> psycopg.Connection[tuple[Any, ...]]:
        connection = psycopg.connect(cls.database, autocommit=True, prepare_threshold=None)
        connection.execute("set lock_timeout = '10ms'")
        connection.execute(f"set default_transaction_isolation = '{cls.isolation}'")
        return connection

    # ---- transactions

    def is_locked_for(self, session: Session) -> Callable[[UUID], bool]:
        """Tell of a job whether another session has written it and not ended."""
        others = [
            other.view.jobs.maps[0]
            for other in self.sessions
            if other is not session and other.view is not None
        ]
        return lambda job_id: any(job_id in written for written in others)

    def others_write(self, session: Session) -> bool:
        return any(
            other is not session
            and other.view is not None
            and (other.has_other_writes or self.has_written(other.view))
            for other in self.sessions
        )

    def can_conflict(self, session: Session) -> bool:
        """Tell whether what others do can make a statement of this session fail."""
        if self.isolation == "serializable":
            return any(other.is_open for other in self.sessions)
        return session.seen is not None or self.others_write(session)

    @staticmethod
    def has_written(view: Queue) -> bool:
        return bool(view.jobs.maps[0] or view.keys.maps[0] or view.paused.maps[0])

    def visible(self, session: Session) -> Queue:
        """Return what a statement of this session sees."""
        if session.view is None:
            return self.queue
        if session.seen is not None:
            return session.view
        # At READ COMMITTED, what is committed now shows under what the session wrote.
        session.view.jobs.maps[1:] = self.queue.jobs.maps
        session.view.keys.maps[1:] = self.queue.keys.maps
        session.view.paused.maps[1:] = self.queue.paused.maps
        return session.view

    def act(self, number: int, act: Callable[[Session, Queue], str]) -> None:
        """Let a session make one call: in its transaction under a savepoint, or by itself.

        `act` calls the database and the model, compares their answers, and returns the
        name to count. What the database refuses leaves both as they were.
        """
        self.is_sound = False
        session = self.sessions[number]
        visible = self.visible(session)
        trial = visible.child()
        claims = len(session.claims)
        refused: str | None = None
        self.foreseen, self.tolerated = None, ()
        if session.is_open:
            session.connection.execute("savepoint s")
        try:
            name = act(session, trial)
            assert self.foreseen is None, f"the queue should refuse with {self.foreseen}"
        except psycopg.Error as error:
            refused = error.sqlstate or repr(error)
            name = self.check_refusal(session, error)
        if refused is None:
            self.merge(visible if session.is_open else self.queue, trial, session)
            if session.is_open:
                session.connection.execute("release savepoint s")
            else:
                self.note_claims(session)
        else:
            del session.claims[claims:]
            if session.is_open and refused == "40001":
                self.end(session, is_commit=False)
            elif session.is_open:
                session.connection.execute("rollback to savepoint s")
        QueueMachine.totals[name] += 1
        self.compare()
        self.is_sound = True

    def check_refusal(self, session: Session, error: psycopg.Error) -> str:
        """Hold a refusal of the database against the model's; return the name to count."""
        if error.sqlstate == "55P03":
            assert self.others_write(session), "waited for a lock that nobody holds"
            return "waited"
        if error.sqlstate == "40001":
            assert self.isolation != "read committed", error
            return "serialization failure"
        if self.tolerated and (error.sqlstate or "").startswith(self.tolerated):
            return "refused otherwise"
        assert error.sqlstate == self.foreseen, f"foreseen: {self.foreseen}, got: {error!r}"
        return f"refused {error.sqlstate}"

    def foresee(self, expected: Callable[[], T]) -> T | None:
        """Return what the model says, before the queue is asked; note that it refuses."""
        try:
            return expected()
        except Refused as refusal:
            self.foreseen = str(refusal)
            return None

    def merge(self, target: Queue, trial: Queue, session: Session) -> None:
        """Put what a trial wrote into the view below it."""
        for job_id in trial.jobs.maps[0]:
            if session.seen is not None or not session.is_open:
                before = (session.seen or self.queue).jobs.get(job_id)
                assert self.queue.jobs.get(job_id) is before or session.is_open, "lost update"
        target.jobs.maps[0].update(trial.jobs.maps[0])
        target.keys.maps[0].update(trial.keys.maps[0])
        target.paused.maps[0].update(trial.paused.maps[0])

    def end(self, session: Session, *, is_commit: bool) -> None:
        """End a session's transaction, in the database and in the model."""
        assert session.view is not None
        written, seen = session.view, session.seen
        session.close()
        try:
            session.connection.execute("commit" if is_commit else "rollback")
        except psycopg.errors.SerializationFailure:
            assert self.isolation == "serializable"
            is_commit = False
        if not is_commit:
            session.claims.clear()
            return
        if seen is not None:
            for job_id in written.jobs.maps[0]:
                was, now = seen.jobs.get(job_id), self.queue.jobs.get(job_id)
                assert was is now, f"an update of {job_id} was lost"
        self.queue.jobs.maps[0].update(written.jobs.maps[0])
        self.queue.keys.maps[0].update(written.keys.maps[0])
        self.queue.paused.maps[0].update(written.paused.maps[0])
        self.note_claims(session)

    def note_claims(self, session: Session) -> None:
        for claim in session.claims:
            assert claim not in self.claimed, f"attempt {claim} was handed out twice"
            self.claimed.add(claim)
        session.claims.clear()

    @initialize(batch=st.lists(requests, min_size=2, max_size=6))
    def start(self, batch: list[Request]) -> None:
        self.enqueue_many(0, batch)

    @rule(number=session_numbers)
    def begin(self, number: int) -> None:
        session = self.sessions[number]
        if session.is_open:
            return
        session.connection.execute("begin")
        session.connection.execute("select 1")
        session.view = self.queue.child()
        if self.isolation != "read committed":
            frozen = Queue(latest=self.queue.jobs)
            frozen.jobs.update(self.queue.jobs)
            frozen.keys.update(self.queue.keys)
            frozen.paused.update(self.queue.paused)
            session.seen, session.view = frozen, frozen.child()

    @rule(number=session_numbers, is_commit=st.booleans())
    def end_transaction(self, number: int, is_commit: bool) -> None:
        if self.sessions[number].is_open:
            self.end(self.sessions[number], is_commit=is_commit)
            self.compare()

    @rule()
    def crash(self) -> None:
        """A client is gone in the middle of its transaction."""
        session = next((s for s in self.sessions if s.is_open), None)
        if session is None:
            return
        pid = session.connection.info.backend_pid
        session.connection.close()
        while self.observer.execute(
            "select 1 from pg_stat_activity where pid = %s", (pid,)
        ).fetchone():
            pass
        session.close()
        session.claims.clear()
        session.connection = self.connect()
        self.compare()

    # ---- choosing

    def pick(self, queue: Queue, pick: int) -> Job | None:
        jobs = list(queue.jobs.values())
        return jobs[pick % len(jobs)] if jobs else None

    def held(self, queue: Queue, chosen: Sequence[tuple[int, int]]) -> tuple[list[UUID], list[int]]:
        """Choose attempts, mostly such as hold their jobs."""
        running = [job for job in queue.jobs.values() if job.state == "running"]
        jobs = running or list(queue.jobs.values())
        found = {
            jobs[pick % len(jobs)].job_id: jobs[pick % len(jobs)].attempt - stale
            for pick, stale in chosen
            if jobs
        }
        return list(found), list(found.values())

    def one(self, queue: Queue, chosen: tuple[int, int]) -> tuple[UUID, int] | None:
        ids, attempts = self.held(queue, [chosen])
        return (ids[0], attempts[0]) if ids else None

    def provide_running(self, number: int) -> None:
        """Claim, where the session sees nothing that runs, so that there is work to settle.

        What Hypothesis draws must not depend on the state, which at SERIALIZABLE is not
        wholly determined: so a call makes its own occasion.
        """
        states = Counter(job.state for job in self.visible(self.sessions[number]).jobs.values())
        if states["queued"] + states["retrying"] + states["running"] < 3:
            self.enqueue(number, USUAL, "enqueue")
        if not states["running"]:
            self.claim(number, list(QUEUES), 2)

    # ---- producers

    def learn(self, session: Session, queue: Queue, ids: Sequence[UUID]) -> None:
        """Take over the times that the database has given to jobs."""
        rows = session.connection.execute(
            "select job_id, run_at from jobq.job where job_id = any(%s)", (list(ids),)
        ).fetchall()
        for job_id, run_at in rows:
            if queue.jobs[job_id].run_at != run_at:  # else it was not written
                queue.jobs[job_id] = replace(queue.jobs[job_id], run_at=run_at)

    def stored(
        self, session: Session, queue: Queue, request: Request, job_id: UUID,
        *, created: bool | None, holder: UUID | None,
    ) -> None:  # fmt: skip
        if created is not None:
            assert created == (holder is None), f"{request}: held by {holder}"
        if holder is not None:
            assert job_id == holder
            return
        assert job_id not in queue.jobs, "an id was given twice"
        row = session.connection.execute(
            "select run_at from jobq.job where job_id = %s", (job_id,)
        ).fetchone()
        assert row is not None, "an acknowledged job is not stored"
        queue.store(request, job_id, row[0])

    ENQUEUE = (
        "%s, '{}', %s, case when %s then null else now() + interval '1 day' end, %s, %s,"
        " null, %s, %s, %s"
    )

    @staticmethod
    def arguments(request: Request) -> tuple[object, ...]:
        return (
            request.kind, request.queue, request.is_due, request.priority,
            request.max_attempts, request.idempotency_key, request.dedup_key, request.dedup,
        )  # fmt: skip

    @staticmethod
    def document(request: Request) -> dict[str, object]:
        return {
            "kind": request.kind, "queue": request.queue, "priority": request.priority,
            "max_attempts": request.max_attempts, "idempotency_key": request.idempotency_key,
            "dedup_key": request.dedup_key, "dedup": request.dedup,
            "run_at": None if request.is_due else "2999-01-01",
        }  # fmt: skip

    @rule(number=session_numbers, request=requests, function=st.sampled_from(["enqueue", "submit"]))
    def enqueue(self, number: int, request: Request, function: str) -> None:
        def act(session: Session, queue: Queue) -> str:
            created: bool | None = None
            self.foresee(lambda: queue.check_dedup([request]))
            if function == "enqueue":
                arguments = self.arguments(request)
                ((job_id,),) = session.rows("enqueue", *arguments, casts=self.ENQUEUE)
            else:
                ((created, job_id),) = session.connection.execute(
                    "select created, (item ->> 'job_id')::uuid from jobq_http.submit_job(%s)",
                    (Jsonb(self.document(request)),),
                ).fetchall()
            holder = queue.holder(request)
            self.stored(session, queue, request, job_id, created=created, holder=holder)
            return function

        self.act(number, act)

    @rule(number=session_numbers, batch=st.lists(requests, min_size=1, max_size=4))
    def enqueue_many(self, number: int, batch: list[Request]) -> None:
        def act(session: Session, queue: Queue) -> str:
            self.foresee(lambda: queue.check_dedup(batch))
            rows = session.rows("enqueue_many", Jsonb([self.document(r) for r in batch]))
            assert [row[0] for row in rows] == list(range(1, len(batch) + 1))
            pairs = list(zip(batch, rows, strict=True))
            repeated = queue.repeated(batch)
            for n in in_order(batch):
                request, (_, job_id, created) = pairs[n]
                if n not in repeated:
                    holder = queue.merge(request)
                    self.stored(session, queue, request, job_id, created=created, holder=holder)
            for n in repeated:
                request, (_, job_id, created) = pairs[n]
                key = (request.kind, request.idempotency_key or "")
                assert (job_id, created) == (queue.keys[key], False)
            return "enqueue_many"

        self.act(number, act)

    @rule(
        number=session_numbers,
        pick=picks,
        function=st.sampled_from(["cancel", "stop_job", "execution"]),
    )
    def cancel(self, number: int, pick: int, function: str) -> None:
        def act(session: Session, queue: Queue) -> str:
            job = self.pick(queue, pick)
            job_id = job.job_id if job else UNKNOWN
            if function != "execution":
                expected = self.foresee(lambda: queue.cancel(job_id))
                ((outcome,),) = session.rows(function, job_id)
                assert outcome == expected
            else:
                found = self.foresee(lambda: queue.find(job_id))
                ((shown,),) = session.rows("cancel_execution", job_id)
                assert found and (shown is not None) == found.is_waiting
                if found.is_waiting:
                    queue.cancel(job_id)
            return "cancel"

        self.act(number, act)

    # ---- workers

    def took(self, session: Session, rows: Sequence[tuple[Any, ...]], expected: list[Job]) -> None:
        """Hold claimed jobs, from job_id and attempt on, against the expected ones."""
        got = [(row[0], row[1]) for row in rows]
        assert got == [(job.job_id, job.attempt) for job in expected]
        session.claims += got

    @staticmethod
    def order(session: Session) -> tuple[dict[UUID, datetime], set[UUID]]:
        """Return when jobs are due, and those which a transaction that was open has touched.

        The session forgets where its last claims ended, which would have it see what was put back
        since then half a second later.
        """
        session.connection.execute(
            "select set_config('jobq.hint_' || (hashtext(q) & 1023), '', false)"
            " from unnest(%s::text[]) as q",
            [list(QUEUES)],
        )
        rows = session.connection.execute(
            """
            select j.job_id, case when j.state = 'running' then 'tomorrow' else j.due_at end, not (
                j.xmax = '0' or j.xmax = j.xmin
                or j.xmax is not distinct from pg_current_xact_id_if_assigned()::xid
                or age(j.xmax) > age(pg_snapshot_xmax(s)::xid)
                and j.xmax <> all (array(select x::xid from pg_snapshot_xip(s) as x))
            )
            from jobq_private.job as j, pg_current_snapshot() as s
            """
        ).fetchall()
        return {row[0]: row[1] for row in rows}, {row[0] for row in rows if row[2]}

    @rule(number=session_numbers, queues=queue_lists, max_jobs=st.integers(0, 4))
    def claim(self, number: int, queues: list[str], max_jobs: int) -> None:
        def act(session: Session, queue: Queue) -> str:
            order_of = self.order(session)
            rows = session.rows("claim", queues, session.worker, max_jobs)
            expected = queue.claim(queues, max_jobs, self.is_locked_for(session), *order_of)
            order = {job.job_id: n for n, job in enumerate(expected)}
            self.took(session, sorted(rows, key=lambda r: order.get(r[0], -1)), expected)
            return "claim" if rows else "claim (nothing)"

        self.act(number, act)

    @rule(number=session_numbers, pick=picks)
    def claim_job(self, number: int, pick: int) -> None:
        def act(session: Session, queue: Queue) -> str:
            job = self.pick(queue, pick)
            if job:
                rows = session.rows("claim_job", job.job_id, session.worker)
                expected = queue.claim_job(job.job_id, self.is_locked_for(session))
                self.took(session, rows, expected)
            return "claim_job"

        self.act(number, act)

    @rule(number=session_numbers, chosen=many)
    def heartbeat(self, number: int, chosen: list[tuple[int, int]]) -> None:
        self.provide_running(number)

        def act(session: Session, queue: Queue) -> str:
            ids, attempts = self.held(queue, chosen)
            rows = session.rows(
                "heartbeat", session.worker, ids, attempts, casts="%s, %s::uuid[], %s::int[]"
            )
            is_locked = self.is_locked_for(session)
            expected = [
                queue.heartbeat(job_id, attempt, is_locked)
                for job_id, attempt in zip(ids, attempts, strict=True)
            ]
            assert [row[2] for row in rows] == expected
            return "heartbeat"

        self.act(number, act)

    @rule(number=session_numbers, chosen=many)
    def complete_many(self, number: int, chosen: list[tuple[int, int]]) -> None:
        self.provide_running(number)

        def act(session: Session, queue: Queue) -> str:
            ids, attempts = self.held(queue, chosen)
            rows = session.rows("complete_many", ids, attempts, casts="%s::uuid[], %s::int[]")
            assert [row[2] for row in rows] == queue.complete_many(zip(ids, attempts, strict=True))
            return "complete_many"

        self.act(number, act)

    @rule(number=session_numbers, chosen=st.tuples(picks, staleness), pick=picks)
    def complete(self, number: int, chosen: tuple[int, int], pick: int) -> None:
        self.provide_running(number)

        def act(session: Session, queue: Queue) -> str:
            pair = self.one(queue, chosen)
            if pick == 7 and (any_job := self.pick(queue, chosen[0])):
                pair = (any_job.job_id, any_job.attempt - chosen[1])
            if pair:
                job_id, attempt = pair
                expected = self.foresee(lambda: queue.complete(job_id, attempt))
                ((done,),) = session.rows("complete", job_id, attempt)
                assert done == expected
            return "complete"

        self.act(number, act)

    @rule(
        number=session_numbers,
        chosen=st.tuples(picks, staleness),
        retryable=st.booleans(),
        is_due=st.booleans(),
    )
    def fail(self, number: int, chosen: tuple[int, int], retryable: bool, is_due: bool) -> None:
        self.provide_running(number)

        def act(session: Session, queue: Queue) -> str:
            pair = self.one(queue, chosen)
            if pair:
                job_id, attempt = pair
                expected = self.foresee(
                    lambda: queue.fail(job_id, attempt, retryable=retryable, is_due=is_due)
                )
                retry_in = "0" if is_due else "1 h"
                ((state,),) = session.rows("fail", *pair, "boom", "E", retryable, retry_in)
                assert state == expected
                self.learn(session, queue, [job_id])
            return "fail"

        self.act(number, act)

    def failures(
        self, queue: Queue, chosen: Sequence[tuple[int, int]], is_due: bool
    ) -> list[dict[str, Any]]:
        ids, attempts = self.held(queue, chosen)
        return [
            {"job_id": str(i), "attempt": a, "error": "boom", "retry_in": "0" if is_due else "1 h"}
            for i, a in zip(ids, attempts, strict=True)
        ]

    def settled(
        self, queue: Queue, failures: Sequence[dict[str, Any]], is_due: bool
    ) -> list[str | None]:
        by_text = {str(job_id): job_id for job_id in queue.jobs}
        outcomes: list[str | None] = []
        for failure in failures:
            job_id, attempt = by_text[str(failure["job_id"])], failure["attempt"]
            outcomes.append(
                queue.settle(job_id, retryable=True, is_due=is_due, is_expiry=False)
                if queue.holds(job_id, attempt)
                else None
            )
        return outcomes

    @rule(number=session_numbers, chosen=many, is_due=st.booleans())
    def fail_many(self, number: int, chosen: list[tuple[int, int]], is_due: bool) -> None:
        self.provide_running(number)

        def act(session: Session, queue: Queue) -> str:
            failures = self.failures(queue, chosen, is_due)
            rows = session.rows("fail_many", Jsonb(failures))
            assert [row[2] for row in rows] == self.settled(queue, failures, is_due)
            self.learn(session, queue, [row[0] for row in rows])
            return "fail_many"

        self.act(number, act)

    @rule(
        number=session_numbers, chosen=st.tuples(picks, staleness),
        function=st.sampled_from(["release", "release_many", "wait_for"]), is_due=st.booleans(),
    )  # fmt: skip
    def release(self, number: int, chosen: tuple[int, int], function: str, is_due: bool) -> None:
        self.provide_running(number)

        def act(session: Session, queue: Queue) -> str:
            pair = self.one(queue, chosen)
            if not pair:
                return "release"
            job_id, attempt = pair
            is_due_now = is_due and function != "wait_for"
            until = "now()" if is_due_now else "now() + interval '1 day'"
            if function == "release_many":
                rows = session.rows(
                    "release_many", [pair[0]], [pair[1]],
                    casts=f"%s::uuid[], %s::int[], {until}",
                )  # fmt: skip
                state = rows[0][2]
                is_locked = self.is_locked_for(session)
                expected = queue.release_unless_held(*pair, is_locked)
            else:
                expected = self.foresee(lambda: queue.release(job_id, attempt))
                if function == "release":
                    ((state,),) = session.rows("release", *pair, casts=f"%s, %s, {until}")
                else:
                    never = "%s, %s, 'never', interval '1 day'"
                    assert session.rows("wait_for", *pair, casts=never) == [("waiting", None)]
                    state = expected
            assert state == expected
            if expected not in (None, "held"):
                queue.jobs[pair[0]] = replace(queue.jobs[pair[0]], is_due=is_due_now)
                self.learn(session, queue, [pair[0]])
            return function

        self.act(number, act)

    @rule(
        number=session_numbers, queues=queue_lists, max_jobs=st.integers(0, 3),
        done=many, failed=many, is_due=st.booleans(),
    )  # fmt: skip
    def exchange(  # noqa: PLR0917
        self,
        number: int,
        queues: list[str],
        max_jobs: int,
        done: list[tuple[int, int]],
        failed: list[tuple[int, int]],
        is_due: bool,
    ) -> None:
        self.provide_running(number)

        def act(session: Session, queue: Queue) -> str:
            ids, attempts = self.held(queue, done)
            failures = self.failures(queue, failed, is_due)
            order_of = self.order(session)
            rows = session.rows(
                "exchange", queues, session.worker, max_jobs, ids, attempts, Jsonb(failures),
                casts="%s, %s, %s, %s::uuid[], %s::int[], null, %s",
            )  # fmt: skip
            is_locked = self.is_locked_for(session)
            outcomes = queue.exchange(zip(ids, attempts, strict=True), is_locked)
            left = [(o, i) for i, o in zip(ids, outcomes, strict=True) if o != "succeeded"]
            by_text = {str(i): i for i in queue.jobs}
            tried = [by_text[str(failure["job_id"])] for failure in failures]
            held = {
                i for i, failure in zip(tried, failures, strict=True)
                if queue.holds(i, failure["attempt"]) and is_locked(i)
            }  # fmt: skip
            states = self.settled(
                queue, [f for i, f in zip(tried, failures, strict=True) if i not in held], is_due
            )
            self.learn(session, queue, [i for i in queue.jobs if queue.jobs[i].state == "retrying"])
            claimed = queue.claim(queues, max_jobs, is_locked, *order_of)
            said = [(row[0], row[1]) for row in rows if row[0] != "claimed"]
            free = iter(states)
            assert said == left + [
                ("held" if i in held else next(free) or "lost", i) for i in tried
            ]
            order = {job.job_id: n for n, job in enumerate(claimed)}
            took = [row[1:] for row in rows if row[0] == "claimed"]
            self.took(session, sorted(took, key=lambda row: order.get(row[0], -1)), claimed)
            return "exchange"

        self.act(number, act)

    @rule(number=session_numbers, chosen=st.tuples(picks, staleness))
    def confirm_cancel(self, number: int, chosen: tuple[int, int]) -> None:
        self.provide_running(number)

        def act(session: Session, queue: Queue) -> str:
            pair = self.one(queue, chosen)
            if pair:
                job_id, attempt = pair
                self.foresee(lambda: queue.confirm_cancel(job_id, attempt))
                session.rows("confirm_cancel", job_id, attempt)
            return "confirm_cancel"

        self.act(number, act)

    @rule(number=session_numbers, chosen=st.tuples(picks, staleness))
    def progress(self, number: int, chosen: tuple[int, int]) -> None:
        self.provide_running(number)

        def act(session: Session, queue: Queue) -> str:
            pair = self.one(queue, chosen)
            if pair:
                job_id, attempt = pair
                self.foresee(lambda: queue.write(job_id, attempt))
                session.rows("set_progress", job_id, attempt, Jsonb(chosen))
            return "set_progress"

        self.act(number, act)

    @rule(number=session_numbers, pick=picks)
    def log(self, number: int, pick: int) -> None:
        def act(session: Session, queue: Queue) -> str:
            job = self.pick(queue, pick)
            job_id = job.job_id if job and pick else UNKNOWN
            self.foresee(lambda: queue.find(job_id))
            attempt = pick % (job.attempt + 1) if job else pick
            session.rows("log", job_id, attempt, "INFO", "a line")
            return "log"

        self.act(number, act)

    # ---- operators, and whoever has psql

    @rule(
        number=session_numbers, max_jobs=st.sampled_from([1000, 1000, 1]),
        expiring=st.integers(0, 2),
    )  # fmt: skip
    def recover(self, number: int, max_jobs: int, expiring: int) -> None:
        self.provide_running(number)

        for pick in range(expiring):
            self.expire_one(pick)

        def act(session: Session, queue: Queue) -> str:
            rows = session.rows("recover", max_jobs)
            is_locked = self.is_locked_for(session)
            expired = {
                job.job_id
                for job in queue.jobs.values()
                if job.is_expired and not is_locked(job.job_id)
            }
            taken = {row[0] for row in rows}
            assert taken <= expired and len(taken) == min(max_jobs, len(expired))
            for job_id, attempt, state in rows:
                assert queue.jobs[job_id].attempt == attempt
                outcome = queue.settle(job_id, retryable=True, is_due=True, is_expiry=True)
                assert state == outcome
            self.learn(session, queue, list(taken))
            return "recover" if rows else "recover (nothing)"

        self.act(number, act)

    @rule(number=session_numbers, expiring=st.integers(0, 2))
    def maintain(self, number: int, expiring: int) -> None:
        for pick in range(expiring):
            self.expire_one(pick)

        def act(session: Session, queue: Queue) -> str:
            tasks = {task: affected for task, affected, _ in session.rows("maintain")}
            if any(other is not session and other.maintains for other in self.sessions):
                assert not tasks, "two sessions maintain at once"
                return "maintain (nothing)"
            is_locked = self.is_locked_for(session)
            expired = [j for j in queue.jobs.values() if j.is_expired and not is_locked(j.job_id)]
            if tasks["recovered"] is None:
                assert self.can_conflict(session), "nothing kept recovery from its work"
                expired = []
            else:
                assert tasks["recovered"] == len(expired)
            for job in expired:
                queue.settle(job.job_id, retryable=True, is_due=True, is_expiry=True)
            self.learn(session, queue, [job.job_id for job in expired])
            session.maintains = session.has_other_writes = session.is_open
            return "maintain"

        self.act(number, act)

    @rule(number=session_numbers, names=st.lists(st.sampled_from(FAVOURED), min_size=1,
          max_size=4), pick=picks)  # fmt: skip
    def others(self, number: int, names: list[str], pick: int) -> None:
        for name in names:
            self.other(number, name, OTHERS[name][pick % len(OTHERS[name])])

    def other(self, number: int, name: str, arguments: str) -> None:
        if name == "tick":
            self.clock.execute(HOURS_LATER)

        def act(session: Session, _queue: Queue) -> str:
            self.tolerated = ("JQ", "22023") if name in CHOOSY else ("JQ",)
            session.connection.execute(f"select * from {qualified(name)}({arguments})")
            session.has_other_writes = session.is_open
            return name

        self.act(number, act)

    @rule(number=session_numbers, pick=picks)
    def redrive(self, number: int, pick: int) -> None:
        def act(session: Session, queue: Queue) -> str:
            finished = [job for job in queue.jobs.values() if job.state in ("dead", "cancelled")]
            job = finished[pick % len(finished)] if finished else self.pick(queue, pick)
            if job:
                job_id = job.job_id
                self.foresee(lambda: queue.redrive(job_id))
                session.rows("redrive", job_id)
                self.learn(session, queue, [job.job_id])
            return "redrive"

        self.act(number, act)

    @rule(number=session_numbers, name=st.sampled_from(QUEUES))
    def redrive_many(self, number: int, name: str) -> None:
        def act(session: Session, queue: Queue) -> str:
            ids = {row[0] for row in session.rows("redrive_many", name)}
            assert ids == queue.redrive_many(name, self.is_locked_for(session))
            self.learn(session, queue, list(ids))
            return "redrive_many"

        self.act(number, act)

    @rule(
        number=session_numbers,
        name=st.sampled_from(QUEUES),
        is_pause=st.sampled_from([False, False, True]),
    )
    def pause(self, number: int, name: str, is_pause: bool) -> None:
        def act(session: Session, queue: Queue) -> str:
            if not is_pause and name not in queue.paused:
                self.foreseen = "JQ007"
            session.rows("pause_queue" if is_pause else "resume_queue", name)
            queue.paused[name] = is_pause
            return "pause"

        self.act(number, act)

    @rule(
        number=session_numbers, pick=picks,
        state=st.sampled_from(sorted({to for _, to in LEGAL})),
    )  # fmt: skip
    def raw_update(self, number: int, pick: int, state: str) -> None:
        def act(session: Session, queue: Queue) -> str:
            job = self.pick(queue, pick)
            if not job:
                return "raw update"
            job_id = job.job_id
            moved = self.foresee(lambda: queue.update(job_id, state))
            done = session.connection.execute(
                "update jobq.job set state = %s where job_id = %s", (state, job_id)
            )
            assert done.rowcount == 1
            if moved and state == "running":
                session.claims.append((job_id, moved.attempt))
            self.learn(session, queue, [job_id])
            return "raw update"

        self.act(number, act)

    # ---- time

    def touch(self, pick: int, assignment: str, **change: Any) -> None:
        """Backdate a job that no open transaction has written."""
        wanted = "running" if "lease" in assignment else "waiting"
        is_locked = self.is_locked_for(Session(self.clock, ""))
        jobs = [
            job
            for job in self.queue.jobs.values()
            if (job.state == "running" if wanted == "running" else job.is_waiting)
            and not is_locked(job.job_id)
        ]
        if not jobs:
            return
        job = jobs[pick % len(jobs)]
        row = self.clock.execute(
            f"update jobq_private.job set {assignment} where job_id = %s returning run_at",
            (job.job_id,),
        ).fetchone()
        assert row is not None
        self.queue.jobs[job.job_id] = replace(job, run_at=row[0], **change)
        self.compare()

    @rule(pick=picks)
    def expire(self, pick: int) -> None:
        self.expire_one(pick)

    def expire_one(self, pick: int) -> None:
        self.touch(pick, "lease_expires_at = clock_timestamp() - interval '1 s'", is_expired=True)

    @rule(pick=picks)
    def become_due(self, pick: int) -> None:
        past = "run_at = clock_timestamp() - interval '1 s', due_at = clock_timestamp()"
        self.touch(pick, past, is_due=True)

    # ---- what must hold

    def compare(self) -> None:
        """Hold everything that is committed against the model."""
        stored = {row[0]: row[1:] for row in self.observer.execute(JOBS)}
        expected = {
            job.job_id: (
                job.request.kind, job.request.queue, job.request.priority, job.run_at,
                job.request.max_attempts, job.state, job.previous_state, job.attempt,
                job.attempts, job.is_cancel_requested, job.state == "running",
                job.state in FINAL,
            )
            for job in self.queue.jobs.values()
        }  # fmt: skip
        assert stored == expected
        histories = dict(self.observer.execute(HISTORY).fetchall())
        for job in self.queue.jobs.values():
            history = [f"{attempt} {state}" for attempt, state in job.history]
            if job.state == "running":
                history.append(f"{job.attempt} running")
            assert histories.get(job.job_id, []) == history
            assert [attempt for attempt, _ in job.history] == [
                *range(1, job.attempt + (job.state != "running"))
            ], "the history has a gap"
            assert 0 <= job.attempts <= job.request.max_attempts
        for schedule, fired, slots, due in self.observer.execute(SLOTS):
            assert fired == slots, f"a slot of {schedule} has fired twice"
            assert fired == due, f"a slot of {schedule} was passed over"

    def teardown(self) -> None:
        failure = sys.exception()
        if isinstance(failure, (AssertionError, psycopg.Error)):
            type(self).failure = type(self).failure or failure
        try:
            if self.is_sound:
                self.finish()
        finally:
            for connection in (self.observer, self.clock, *(s.connection for s in self.sessions)):
                connection.close()

    def finish(self) -> None:
        """Once faults end, all that is due finishes by rounds of recover and claim."""
        for session in self.sessions:
            session.connection.execute("rollback")
            session.connection.execute("select jobq.end_wait()")
            session.close()
        self.compare()
        before = set(self.queue.jobs)
        self.clock.execute("update jobq_private.queue set paused_at = null")
        self.clock.execute("delete from jobq_private.paused_kind")
        self.clock.execute(
            "update jobq_private.job set run_at = now() - interval '1 s',"
            " due_at = case when state <> 'blocked' then now() end where state <> 'running'"
        )
        self.clock.execute(
            "update jobq_private.job set lease_expires_at = now() - interval '1 s'"
            " where state = 'running'"
        )
        worker = Session(self.observer, "last")
        worker.rows("recover", 1000)
        while worker.rows("tick"):
            pass
        rows = worker.rows("claim", [*QUEUES, "other", "default"], worker.worker, 10000)
        done = worker.rows("complete_many", [r[0] for r in rows], [r[1] for r in rows],
                           casts="%s::uuid[], %s::int[]")  # fmt: skip
        assert all(row[2] == "succeeded" for row in done)
        states = dict(self.observer.execute("select job_id, state from jobq.job").fetchall())
        assert before <= set(states), "jobs were lost"
        assert all(state in FINAL for state in states.values()), "something never finishes"


def test_every_function_that_writes_takes_part(database: str) -> None:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select proname from pg_proc"
            " where pronamespace::regnamespace::text in ('jobq', 'jobq_http', 'jobq_internal')"
            " and provolatile = 'v' and prorettype <> 'trigger'::regtype"
        ).fetchall()
    assert {name for (name,) in rows} == {*OTHERS, *MODELLED, *APART}


@pytest.mark.parametrize(
    "level",
    [
        "read committed",
        pytest.param("repeatable read", marks=pytest.mark.prove),
        pytest.param("serializable", marks=pytest.mark.prove),
    ],
)
@pytest.mark.usefixtures("replayed")
@pytest.mark.long
def test_the_queue_does_as_its_model(database: str, level: str) -> None:
    class Machine(QueueMachine):
        pass

    Machine.database, Machine.isolation = database, level
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in filter(str.strip, SETUP.split(";")):
            connection.execute(statement)
        for (statement,) in connection.execute(KEEP_PAGES).fetchall():
            connection.execute(statement)
    seed(f"{chance.seed()} {level}")(Machine)
    try:
        examples = EXAMPLES if level == "read committed" else (EXAMPLES + 1) // 2
        run_state_machine_as_test(Machine, settings=settings(PROFILE, max_examples=examples))
    except BaseException as error:
        error.add_note(f"the shortest calls that lead to it: {chance.NAME}={chance.seed()}")
        if Machine.failure is None or Machine.failure is error:
            raise
        # Hypothesis tells of a failure that does not come again by what it saw then.
        raise Machine.failure from error
