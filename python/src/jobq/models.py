"""Rows of the database as frozen records.

Unknown columns are ignored, so that an older client works with a newer database.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args
from uuid import UUID

from psycopg import AsyncCursor, Cursor

T = TypeVar("T")

Json: TypeAlias = Any
"""Any JSON value."""

State = Literal["blocked", "queued", "running", "retrying", "succeeded", "dead", "cancelled"]
Privilege = Literal["enqueue", "work"]
STATES: Final[tuple[State, ...]] = get_args(State)
"""Every state of a job."""

AfterFailure = Literal["cancel", "wait", "run"]
"""What happens to a job if one of its parents is dead or cancelled."""

CancelOutcome = Literal["cancelled", "cancel_requested", "already_finished"]
RedriveOutcome = Literal["queued", "blocked"]


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The result of an enqueue.

    Attributes:
        job_id: the new job, or the existing one with the same key.
        created: whether this call created it.
    """

    job_id: UUID
    created: bool


@dataclass(frozen=True, slots=True)
class Steered:
    """The result of cancelling one of many jobs.

    Attributes:
        job_id: the job.
        outcome: ``cancelled`` or ``cancel_requested``; the job's state if nothing was done.
    """

    job_id: UUID
    outcome: str


@dataclass(frozen=True, slots=True)
class EndpointStats:
    """Recent deliveries to an endpoint.

    Attributes:
        since: start of the period; at most the newest 1,000 attempts count.
        attempts: number of ended attempts.
        success_rate: share of successful ones; None without attempts.
        p50_ms: median duration; None without attempts.
        failures: number of failures by code.
    """

    since: datetime
    attempts: int
    succeeded: int
    failed: int
    success_rate: float | None
    p50_ms: int | None
    p95_ms: int | None
    p99_ms: int | None
    failures: dict[str, int]


@dataclass(frozen=True, slots=True)
class Worked:
    """The result of a job that is a database function.

    Attributes:
        job_id: the job.
        kind: its kind.
        state: ``succeeded``, ``retrying``, ``dead`` or ``cancelled``; ``queued`` if it was
            released; ``lost`` if its function itself released or ended it.
    """

    job_id: UUID
    kind: str
    state: str


@dataclass(frozen=True, slots=True)
class Job:
    """A job, live or archived: a row of the view ``jobq.job``.

    Attributes:
        attempt: number of claims; the fencing token of the last claim.
        attempts: number of attempts that count toward ``max_attempts``.
        timeout: timeout of each attempt.
        lease: how long a claim is valid without a heartbeat.
        finished_at: None while the job is live.
        delivery_version: version of the endpoint; None if a handler runs the job.
        expires_at: no attempt starts after this time.
        batch_id: its batch, if any.
        updated_at: when its state last changed.
    """

    job_id: UUID
    kind: str
    queue: str
    state: State
    previous_state: State | None
    payload: Json
    result: Json
    run_at: datetime
    priority: int
    attempt: int
    attempts: int
    max_attempts: int
    timeout: timedelta
    lease: timedelta
    worker: str | None
    claimed_at: datetime | None
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    cancel_requested_at: datetime | None
    cancel_reason: str | None
    idempotency_key: str | None
    dedup_key: str | None
    concurrency_key: str | None
    last_error_code: str | None
    last_error: str | None
    metadata: dict[str, Json]
    progress: Json
    schedule_id: UUID | None
    slot_at: datetime | None
    region: str
    created_at: datetime
    finished_at: datetime | None
    delivery_version: int | None
    expires_at: datetime | None
    batch_id: UUID | None
    cost: Decimal
    updated_at: datetime

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended."""
        return self.finished_at is not None


class JobPage(list[Job]):
    """Jobs, newest first.

    Attributes:
        cursor: ``before`` of the next page; None on the last page. A page can have few jobs or
            none and still a cursor, because each page searches at most 100,000 jobs.
    """

    def __init__(self, jobs: Iterable[Job], cursor: UUID | None) -> None:
        super().__init__(jobs)
        self.cursor = cursor


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of one concurrency key, and the number of its running jobs."""

    queue: str
    concurrency_key: str
    max_running: int | None
    rate_limit: int | None
    rate_period: timedelta | None
    rate_burst: int | None
    running: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget per calendar period, and the amount spent.

    Attributes:
        scope_type: ``queue`` or ``kind``.
        scope: name of the queue or kind.
        concurrency_key: only of this key.
        each_key: whether each key has its own budget.
        period: ``day``, ``week`` or ``month``.
        spent: cost charged in this period, including ``reserved``; None in the row of a budget of
            each key, because each key has its own row.
        reserved: cost reserved by running jobs.
        next_period_at: when the next period begins.
    """

    scope_type: str
    scope: str
    concurrency_key: str | None
    each_key: bool
    amount: Decimal
    period: str
    time_zone: str
    spent: Decimal | None
    reserved: Decimal | None
    next_period_at: datetime


@dataclass(frozen=True, slots=True)
class Subscription:
    """A kind that has subscribed to an event.

    Attributes:
        queue: queue of its jobs; None means the kind's.
    """

    event: str
    kind: str
    queue: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DeclaredKind:
    """A declared kind. None means that the queue's setting or the default applies.

    Attributes:
        concurrency_key: path of each job's concurrency key in the payload.
        cost: path of each job's cost in the payload.
        ordered: whether jobs of a key run one at a time, in order.
        on_dead: ``continue``, or ``hold``: a dead job of an ordered kind holds its key.
        keep_succeeded: how long succeeded jobs are kept; 0 keeps nothing.
        run: the database function that runs its jobs; None if workers do.
        is_endpoint: whether its jobs are deliveries.
        version: version of the program that declared it, if given.
        paused_at: when it was paused; None if it is not paused.
        pause_reason: reason given by the caller.
        dedup_key: path of each job's dedup key in the payload, or several.
        dead_letter_kind: kind of the job that is enqueued when a job dies.
    """

    kind: str
    queue: str | None
    priority: int | None
    max_attempts: int | None
    timeout: timedelta | None
    lease: timedelta | None
    retry_preset: str | None
    retry_strategy: str | None
    retry_initial_delay: timedelta | None
    retry_max_delay: timedelta | None
    retry_jitter: float | None
    dedup: str | None
    dedup_period: timedelta | None
    dedup_max_wait: timedelta | None
    reuse_key_after_failure: bool | None
    concurrency_key: list[str] | None
    max_running: int | None
    rate_limit: int | None
    rate_period: timedelta | None
    rate_burst: int | None
    key_max_running: int | None
    key_rate_limit: int | None
    key_rate_period: timedelta | None
    key_rate_burst: int | None
    ordered: bool | None
    on_dead: str | None
    keep_succeeded: timedelta | None
    keep_dead: timedelta | None
    keep_cancelled: timedelta | None
    run: str | None
    retry_on: list[str] | None
    is_endpoint: bool
    payload_schema: dict[str, Json] | None
    version: int | None
    updated_at: datetime
    cost: list[str] | None
    paused_at: datetime | None
    pause_reason: str | None
    dedup_key: list[str] | list[list[str | None]] | None
    dead_letter_kind: str | None


@dataclass(frozen=True, slots=True)
class DeclaredQueue:
    """A declared queue. None means that the default applies.

    Attributes:
        ordered: whether jobs of a key run one at a time, in order.
        on_dead: ``continue``, or ``hold``: a dead job of an ordered queue holds its key.
    """

    queue: str
    priority: int | None
    max_attempts: int | None
    timeout: timedelta | None
    lease: timedelta | None
    retry_preset: str | None
    max_depth: int | None
    max_running: int | None
    rate_limit: int | None
    rate_period: timedelta | None
    rate_burst: int | None
    key_max_running: int | None
    key_rate_limit: int | None
    key_rate_period: timedelta | None
    key_rate_burst: int | None
    ordered: bool | None
    on_dead: str | None
    paused_at: datetime | None
    pause_reason: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A worker in the database's list.

    Attributes:
        is_live: whether it was seen within the last minute.
        jobs: number of its running jobs.
        except_kinds: kinds that it has seen and has no handler for.
        release: release of its program.
        stuck: number of slots occupied by hanging handlers.
    """

    worker: str
    queues: list[str]
    started_at: datetime
    seen_at: datetime
    is_live: bool
    jobs: int
    region: str
    except_kinds: list[str]
    release: str | None
    stuck: int


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job as its worker receives it; ``attempt`` is the fencing token."""

    job_id: UUID
    attempt: int
    kind: str
    payload: Json
    metadata: dict[str, Json]
    queue: str
    max_attempts: int
    timeout: timedelta
    lease_expires_at: datetime
    run_at: datetime
    created_at: datetime
    idempotency_key: str | None
    lease: timedelta
    delivery_version: int | None
    is_awaited: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a job: ``state`` is the state after it, or running.

    Attributes:
        error_details: more information about a failure, such as ``status_code``.
    """

    job_id: UUID
    attempt: int
    state: State
    started_at: datetime
    finished_at: datetime | None
    duration: timedelta | None
    worker: str | None
    error_code: str | None
    error: str | None
    result: Json
    error_details: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a handler logged; ``level`` is DEBUG, INFO, WARN or ERROR."""

    attempt: int
    logged_at: datetime
    level: str
    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a step, and the attempt that recorded it."""

    name: str
    value: Json
    attempt: int
    saved_at: datetime


@dataclass(frozen=True, slots=True)
class Input:
    """The state and result of a parent.

    Attributes:
        job_id: the parent.
        name: its name in the graph, if any.
        kind: None without a record of it, for example for a deleted job.
        state: ``gone`` without a record; ``hidden`` if grants by queue hide the parent.
        result: its result; None unless it has succeeded.
        after_failure: what happens to the child if the parent is dead or cancelled.
    """

    job_id: UUID
    name: str | None
    kind: str | None
    state: State | Literal["gone", "hidden"]
    result: Json
    after_failure: AfterFailure


@dataclass(frozen=True, slots=True)
class Batch:
    """Progress of a batch.

    Attributes:
        sealed_at: when it was sealed.
        ended_at: when the last member ended.
        members: total number, followed by the number in each state.
        on_success: the job to run when all have succeeded, if any; likewise the others.
    """

    opened_at: datetime
    sealed_at: datetime | None
    ended_at: datetime | None
    members: int
    blocked: int
    queued: int
    running: int
    retrying: int
    succeeded: int
    dead: int
    cancelled: int
    on_success: UUID | None
    on_end: UUID | None
    on_first_death: UUID | None


@dataclass(frozen=True, slots=True)
class CancelledBatch:
    """The outcome of cancelling a batch: how many members, and how many still wait."""

    cancelled: int
    requested: int
    remaining: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """A reason why a job is not running: a code and a sentence."""

    reason: str
    explanation: str


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Statistics of a queue.

    Attributes:
        queued: jobs that could run now.
        scheduled: jobs that are not due yet.
        oldest_runnable: how long the oldest queued job has been due.
        finished_last_minute: jobs that ended within the last minute.
        waiting_keys: concurrency keys with work, by priority.
        closed_keys: those that cannot start a job now.
        is_exact: whether ``queued``, ``scheduled`` and ``retrying`` are current. If more than
            10,000 jobs wait in a queue (fewer with many queues), they are the counts of the last
            maintenance, about a minute ago.
        blocked: jobs that wait for other jobs.
    """

    queue: str
    queued: int
    scheduled: int
    running: int
    retrying: int
    dead: int
    oldest_runnable: timedelta | None
    finished_last_minute: int
    is_paused: bool
    waiting_keys: int
    closed_keys: int
    is_exact: bool = True
    blocked: int = 0


@dataclass(frozen=True, slots=True)
class QueueGrant:
    """A grant by queue, effective when such grants are enforced.

    Attributes:
        grantee: the role.
        queue: a queue, or ``*`` for all.
        privilege: ``enqueue`` or ``work``.
    """

    grantee: str
    queue: str
    privilege: Privilege


ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def words_of(*kinds: type) -> dict[str, str]:
    """Return the descriptions of attributes from the docstrings of classes."""
    found = {}
    for kind in kinds:
        for name, text in ATTRIBUTE.findall(inspect.getdoc(kind) or ""):
            plain = " ".join(text.replace("`", "").split())
            found[name] = f"{plain[0].upper()}{plain[1:]}"
    return found


class _RecordMaker(Generic[T]):
    """A row factory of psycopg for a record class."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._names = [f.name for f in fields(kind)]  # type: ignore[arg-type]

    def __call__(self, cursor: Cursor[Any] | AsyncCursor[Any]) -> Callable[[Sequence[Any]], T]:
        """Return a function that converts a row of this cursor to a record."""
        kind = self._kind
        columns = [column.name for column in cursor.description or ()]
        if columns == self._names:
            return lambda row: kind(*row)
        places = [columns.index(name) for name in self._names if name in columns]
        return lambda row: kind(*[row[place] for place in places])


@cache
def record(kind: type[T]) -> _RecordMaker[T]:
    """Return a row factory for a record class, by the names of columns."""
    return _RecordMaker(kind)
