"""What the queue does, in plain Python: the model that test_model.py holds it against.

A `Queue` is what one session sees: what has been committed, under what the session has
written itself. Each method does what the function of that name should do, and returns
what it should return.

No job here is blocked. What waits is released by whoever looks next, in a transaction of its own,
so that no one order of calls says which state a blocked job is in: test_model_workflows.py holds
what must be true of every order instead, with edges, graphs, batches, steps and events beside
open transactions. Limits, which decide among many claims, have test_model_limits.py.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

LEGAL = {
    ("queued", "running"), ("retrying", "running"), ("running", "succeeded"),
    ("running", "retrying"), ("running", "dead"), ("running", "cancelled"),
    ("running", "queued"), ("queued", "cancelled"), ("retrying", "cancelled"),
    ("queued", "dead"), ("retrying", "dead"), ("dead", "queued"), ("cancelled", "queued"),
}  # fmt: skip
WAITING = ("queued", "retrying")
FINAL = ("succeeded", "dead", "cancelled")
MAX_EXPIRIES = 5
REUSABLE = ("reuse",)

_moments = count()


class Refused(Exception):  # noqa: N818 - named for what happened
    """The queue should refuse; the argument is the SQLSTATE."""


@dataclass(frozen=True, slots=True)
class Request:
    """A job as a caller asks for it."""

    kind: str
    queue: str
    priority: int
    max_attempts: int
    is_due: bool
    idempotency_key: str | None
    dedup_key: str | None
    dedup: str | None

    @property
    def held_dedup(self) -> str | None:
        """The strategy that the stored job has; None where it holds no key."""
        if self.dedup_key is None or self.dedup == "enqueue":
            return None
        return self.dedup or "skip"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the model knows it."""

    job_id: UUID
    request: Request
    run_at: datetime
    is_due: bool
    state: str = "queued"
    previous_state: str | None = None
    attempt: int = 0
    uncounted: int = 0
    expiries: int = 0
    is_expired: bool = False
    is_cancel_requested: bool = False
    finished: int | None = None
    history: tuple[tuple[int, str], ...] = ()

    @property
    def attempts(self) -> int:
        return self.attempt - self.uncounted

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING

    def to(self, state: str) -> Job:
        """Change the state, with all that follows from it."""
        if (self.state, state) not in LEGAL:
            raise Refused("23503")
        if self.state in FINAL:
            return replace(
                self, state=state, previous_state=self.state, uncounted=self.attempt,
                expiries=0, is_cancel_requested=False, finished=None, is_due=True,
            )  # fmt: skip
        changed = replace(self, state=state, previous_state=self.state, is_expired=False)
        if state == "running":
            return replace(changed, attempt=self.attempt + 1)
        if self.state == "running":
            changed = replace(changed, history=(*self.history, (self.attempt, state)))
        if state in FINAL:
            return replace(changed, finished=next(_moments))
        if state == "queued":
            changed = replace(changed, uncounted=self.uncounted + 1)
        if changed.attempts >= self.request.max_attempts:
            raise Refused("JQ002")
        return changed


@dataclass(slots=True)
class Queue:
    """What a session sees, and changes.

    Attributes:
        jobs: by id.
        keys: the jobs of idempotency keys, by kind and key.
        paused: whether a queue is, by name.
        latest: where jobs is a snapshot, what has been committed up to now.
    """

    jobs: ChainMap[UUID, Job] = field(default_factory=ChainMap)
    keys: ChainMap[tuple[str, str], UUID] = field(default_factory=ChainMap)
    paused: ChainMap[str, bool] = field(default_factory=ChainMap)
    latest: Mapping[UUID, Job] | None = None

    def child(self) -> Queue:
        """Return a view whose changes are its own."""
        return Queue(
            self.jobs.new_child(), self.keys.new_child(), self.paused.new_child(), self.latest
        )

    def find(self, job_id: UUID) -> Job:
        if job_id not in self.jobs:
            raise Refused("JQ001")
        return self.jobs[job_id]

    def move(self, job_id: UUID, state: str) -> Job:
        self.jobs[job_id] = self.jobs[job_id].to(state)
        return self.jobs[job_id]

    def live(self) -> list[Job]:
        return [j for j in self.jobs.values() if j.state not in FINAL]

    def holders(self, kind: str, dedup_key: str | None) -> list[Job]:
        """Return the live jobs with a dedup key, as far as the session sees."""
        wanted = (kind, dedup_key)
        return [
            job
            for job in self.live()
            if (job.request.kind, job.request.dedup_key) == wanted and job.request.held_dedup
        ]

    def dedup_holder(self, kind: str, dedup_key: str | None) -> Job | None:
        """Return the job that holds a dedup key in the unique index."""
        return next((j for j in self.holders(kind, dedup_key) if not self.has_gone(j)), None)

    def seen_holder(self, kind: str, dedup_key: str | None) -> Job | None:
        """Return the job that a new one of a dedup key meets.

        That is one which the unique index has, unless there are some that looked at no other: then
        what the session sees counts.
        """
        same = [
            job
            for job in self.live()
            if (job.request.kind, job.request.dedup_key) == (kind, dedup_key)
        ]
        if all(job.request.held_dedup for job in same):
            return self.dedup_holder(kind, dedup_key)
        return min(
            same,
            key=lambda job: (job.state != "running", not job.request.held_dedup, job.job_id),
        )

    def has_gone(self, job: Job) -> bool:
        """Tell whether a job that a snapshot shows as live has finished since.

        A unique index heeds what is committed, not what a snapshot shows.
        """
        if self.latest is None or self.jobs.maps[-1].get(job.job_id) is not job:
            return False
        return self.latest[job.job_id].state in FINAL

    # ---- producers

    def key_holder(self, request: Request) -> UUID | None:
        """Return the job that the request's idempotency key stands for; None if it is free."""
        key = (request.kind, request.idempotency_key or "")
        if not request.idempotency_key or key not in self.keys:
            return None
        holder = self.jobs[self.keys[key]]
        is_free = request.kind in REUSABLE and holder.state in ("dead", "cancelled")
        return None if is_free else holder.job_id

    def holder(self, request: Request) -> UUID | None:
        """Return the job that holds one of the request's keys; None if a new one is made."""
        return self.key_holder(request) or self.merge(request)

    def merge(self, request: Request) -> UUID | None:
        """Return the job that holds the dedup key, which takes the idempotency key too."""
        if not request.held_dedup:
            return None
        while (live := self.seen_holder(request.kind, request.dedup_key)) is not None:
            if request.held_dedup != "replace" or not live.is_waiting:
                if request.idempotency_key:
                    self.keys[request.kind, request.idempotency_key] = live.job_id
                return live.job_id
            self.move(live.job_id, "cancelled")
        return None

    def check_dedup(self, batch: Sequence[Request]) -> None:
        """Refuse a batch of which a job is to replace one that runs."""
        repeated = self.repeated(batch)
        for n, request in enumerate(batch):
            if n in repeated or request.held_dedup != "replace":
                continue
            live = self.seen_holder(request.kind, request.dedup_key)
            if live is not None and not live.is_waiting:
                raise Refused("JQ004")

    def repeated(self, batch: Sequence[Request]) -> set[int]:
        """Return the places of a batch's jobs whose idempotency key stands for another job.

        A batch holds all its idempotency keys before it stores a job.
        """
        firsts: set[tuple[str, str]] = set()
        found: set[int] = set()
        for n, job in enumerate(batch):
            if job.idempotency_key is None:
                continue
            key = (job.kind, job.idempotency_key)
            if key in firsts or self.key_holder(job) is not None:
                found.add(n)
            firsts.add(key)
        return found

    def store(self, request: Request, job_id: UUID, run_at: datetime) -> None:
        self.jobs[job_id] = Job(job_id, request, run_at, request.is_due)
        if request.idempotency_key:
            self.keys[request.kind, request.idempotency_key] = job_id

    def cancel(self, job_id: UUID) -> str:
        job = self.find(job_id)
        if job.state in FINAL:
            return "already_finished"
        if job.state == "running":
            self.jobs[job_id] = replace(job, is_cancel_requested=True)
            return "cancel_requested"
        self.move(job_id, "cancelled")
        return "cancelled"

    # ---- workers

    def claim(
        self,
        queues: Sequence[str],
        max_jobs: int,
        is_locked: Callable[[UUID], bool],
        due_at: Mapping[UUID, datetime],
        touched: Collection[UUID],
    ) -> list[Job]:
        """Claim; what others may still have in hand comes where there is nothing else."""
        claimed: list[Job] = []
        for queue in queues:
            due = [
                job
                for job in self.jobs.values()
                if job.request.queue == queue
                and job.is_waiting
                and job.is_due
                and not self.paused.get(queue, False)
                and not is_locked(job.job_id)
            ]
            free = [job for job in due if job.job_id not in touched] or due
            free.sort(key=lambda job: (-job.request.priority, due_at[job.job_id], job.job_id))
            next_up = free[: max_jobs - len(claimed)]
            claimed += [self.move(job.job_id, "running") for job in next_up]
        return claimed

    def claim_job(self, job_id: UUID, is_locked: Callable[[UUID], bool]) -> list[Job]:
        job = self.jobs.get(job_id)
        can_run = job and job.is_waiting and job.is_due
        if not job or not can_run or self.paused.get(job.request.queue) or is_locked(job_id):
            return []
        return [self.move(job_id, "running")]

    def holds(self, job_id: UUID, attempt: int) -> bool:
        job = self.jobs.get(job_id)
        return job is not None and job.state == "running" and job.attempt == attempt

    def require(self, job_id: UUID, attempt: int) -> Job:
        """Return the job that the attempt holds, or refuse as the queue does."""
        job = self.find(job_id)
        if not self.holds(job_id, attempt):
            raise Refused("JQ003")
        return job

    def heartbeat(self, job_id: UUID, attempt: int, is_locked: Callable[[UUID], bool]) -> str:
        if not self.holds(job_id, attempt):
            return "lost"
        if is_locked(job_id):
            return "held"
        job = self.jobs[job_id]
        self.jobs[job_id] = replace(job, is_expired=False)
        return "cancel_requested" if job.is_cancel_requested else "extended"

    def complete_many(self, held: Iterable[tuple[UUID, int]]) -> list[str]:
        outcomes = []
        for job_id, attempt in held:
            if self.holds(job_id, attempt):
                self.move(job_id, "succeeded")
                outcomes.append("succeeded")
            else:
                outcomes.append("repeated" if self.has_succeeded(job_id, attempt) else "lost")
        return outcomes

    def exchange(
        self, held: Iterable[tuple[UUID, int]], is_locked: Callable[[UUID], bool]
    ) -> list[str]:
        outcomes = []
        for job_id, attempt in held:
            if not self.holds(job_id, attempt):
                outcomes.append("lost")
            elif is_locked(job_id):
                outcomes.append("held")
            else:
                outcomes += self.complete_many([(job_id, attempt)])
        return outcomes

    def has_succeeded(self, job_id: UUID, attempt: int) -> bool:
        job = self.jobs.get(job_id)
        return job is not None and job.state == "succeeded" and job.attempt == attempt

    def complete(self, job_id: UUID, attempt: int) -> bool:
        self.find(job_id)
        if self.has_succeeded(job_id, attempt):
            return False
        self.require(job_id, attempt)
        self.move(job_id, "succeeded")
        return True

    def settle(self, job_id: UUID, *, retryable: bool, is_due: bool, is_expiry: bool) -> str:
        """End a running attempt as failed; return the new state."""
        job = self.jobs[job_id]
        expiries = job.expiries + is_expiry
        if job.is_cancel_requested:
            outcome = "cancelled"
        elif (
            not retryable
            or job.attempts >= job.request.max_attempts
            or (is_expiry and expiries >= MAX_EXPIRIES)
        ):
            outcome = "dead"
        else:
            outcome = "retrying"
        moved = self.move(job_id, outcome)
        due = is_due if outcome == "retrying" else moved.is_due
        self.jobs[job_id] = replace(moved, expiries=expiries, is_due=due)
        return outcome

    def fail(self, job_id: UUID, attempt: int, *, retryable: bool, is_due: bool) -> str:
        self.require(job_id, attempt)
        return self.settle(job_id, retryable=retryable, is_due=is_due, is_expiry=False)

    def write(self, job_id: UUID, attempt: int) -> None:
        """Note that the row is written, though nothing that the model knows changes."""
        self.jobs[job_id] = replace(self.require(job_id, attempt))

    def release(self, job_id: UUID, attempt: int) -> str:
        self.require(job_id, attempt)
        return self.move(
            job_id, "cancelled" if self.jobs[job_id].is_cancel_requested else "queued"
        ).state

    def release_unless_held(
        self, job_id: UUID, attempt: int, is_locked: Callable[[UUID], bool]
    ) -> str | None:
        if not self.holds(job_id, attempt):
            return None
        return "held" if is_locked(job_id) else self.release(job_id, attempt)

    def confirm_cancel(self, job_id: UUID, attempt: int) -> None:
        if not self.require(job_id, attempt).is_cancel_requested:
            raise Refused("JQ002")
        self.move(job_id, "cancelled")

    # ---- operators

    def redrive(self, job_id: UUID) -> None:
        job = self.find(job_id)
        if job.state not in ("dead", "cancelled"):
            raise Refused("JQ002")
        request = job.request
        if self.key_holder(request) not in (None, job_id):
            raise Refused("JQ004")
        if request.held_dedup and self.dedup_holder(request.kind, request.dedup_key):
            raise Refused("JQ004")
        self.requeue(job_id)

    def requeue(self, job_id: UUID) -> None:
        """Put a finished job back, which takes its idempotency key again."""
        request = self.move(job_id, "queued").request
        if request.idempotency_key:
            self.keys[request.kind, request.idempotency_key] = job_id

    def update(self, job_id: UUID, state: str) -> Job:
        """Do as an update of the view does."""
        job = self.jobs[job_id]
        if state == job.state:
            raise Refused("JQ002")
        if job.state in ("dead", "cancelled") and state == "queued":
            self.redrive(job_id)
            return self.jobs[job_id]
        return self.move(job_id, state)

    def redrive_many(self, queue: str, is_locked: Callable[[UUID], bool]) -> set[UUID]:
        """Put back all dead jobs of a queue that may go; of those with one key the first may."""
        free = [
            job
            for job in self.jobs.values()
            if job.state == "dead"
            and job.request.queue == queue
            and not is_locked(job.job_id)
            and self.key_holder(job.request) in (None, job.job_id)
            and not (
                job.request.held_dedup and self.holders(job.request.kind, job.request.dedup_key)
            )
        ]
        keyed: dict[object, Job] = {}
        for job in sorted(free, key=lambda job: job.job_id):
            keyed.setdefault((job.request.kind, job.request.idempotency_key or job.job_id), job)
        chosen: dict[object, Job] = {}
        for job in keyed.values():
            request = job.request
            if request.idempotency_key:
                self.keys[request.kind, request.idempotency_key] = job.job_id
            by = request.dedup_key if request.held_dedup else job.job_id
            chosen.setdefault((request.kind, by), job)
        for job in chosen.values():
            self.move(job.job_id, "queued")
        return {job.job_id for job in chosen.values()}
