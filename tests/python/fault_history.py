"""What a run has left behind, and whether it keeps the promise.

Handlers write down their starts and ends; workers, what they were told of an outcome, and
when they had no answer; the run, whom it hurt. The rest is what the database says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVER = float("inf")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a handler.

    Attributes:
        job: whose.
        number: of the attempt.
        pid: the worker's.
        started_at: by the machine's monotonic clock, in seconds, as all moments here.
        ended_at: when the handler returned.
        told_at: when the worker was told that the success is recorded.
    """

    job: str
    number: int
    pid: int
    started_at: float
    ended_at: float = EVER
    told_at: float = EVER


@dataclass(frozen=True, slots=True)
class Trouble:
    """A time in which leases may have run out, or a process has died.

    Attributes:
        since: when it began.
        until: when it was over.
        pid: the worker that had it; None where all did.
    """

    since: float
    until: float
    pid: int | None = None

    def hit(self, attempt: Attempt) -> bool:
        """Whether it can be why an attempt's result was not recorded."""
        is_theirs = self.pid in (None, attempt.pid)
        return is_theirs and attempt.started_at <= self.until and self.since <= attempt.told_at


@dataclass(frozen=True, slots=True)
class Stored:
    """A job as the database has it in the end."""

    key: str
    job: str
    state: str
    attempt: int
    is_finished: bool


@dataclass
class Journal:
    """What the workers of a run have written down."""

    attempts: list[Attempt] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    twice: int = 0

    @classmethod
    def read(cls, lines: Iterable[str]) -> Journal:
        """Read what probe.py has written.

        Args:
            lines: ``start``, ``end`` and ``told`` with job, attempt, process and moment;
                ``trouble`` with the process, and when it began and ended.
        """
        journal = cls()
        moments: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
        pids: dict[tuple[str, int], int] = {}
        for line in lines:
            what, *words = line.split()
            if what == "trouble":
                pid, since, until = words
                journal.troubles.append(Trouble(float(since), float(until), int(pid)))
                continue
            job, number, pid, moment = words
            attempt = job, int(number)
            journal.twice += what == "start" and attempt in pids
            pids.setdefault(attempt, int(pid))
            moments[what].setdefault(attempt, float(moment))
        journal.attempts = [
            Attempt(
                *attempt, pids[attempt], moment,
                moments["end"].get(attempt, EVER), moments["told"].get(attempt, EVER),
            )
            for attempt, moment in moments["start"].items()
        ]  # fmt: skip
        return journal

    @property
    def ends(self) -> list[float]:
        """When handlers returned, in order."""
        return sorted(a.ended_at for a in self.attempts if a.ended_at < EVER)

    @property
    def stall(self) -> float:
        """The longest time, in seconds, in which no handler returned."""
        return max((b - a for a, b in pairwise(self.ends)), default=0.0)

    def repeats(self) -> Iterator[tuple[Attempt, Attempt]]:
        """Yield each attempt that came after another one of its job, and that other one."""
        by_job: dict[str, list[Attempt]] = defaultdict(list)
        for attempt in sorted(self.attempts, key=lambda a: a.number):
            by_job[attempt.job].append(attempt)
        for attempts in by_job.values():
            yield from pairwise(attempts)


def may_repeat(journal: Journal, troubles: Iterable[Trouble]) -> set[tuple[str, int]]:
    """Return the attempts after which their jobs may run once more.

    These are the ones that a process held, their outcome not known to be recorded, when it
    died, or while it had trouble.
    """
    known = [*journal.troubles, *troubles]
    return {(a.job, a.number) for a in journal.attempts if any(t.hit(a) for t in known)}


def problems_of(
    journal: Journal,
    troubles: Iterable[Trouble],
    acknowledged: dict[str, str],
    stored: Iterable[Stored],
) -> Iterator[str]:
    """Yield everything that must not be.

    Args:
        journal: what the workers say.
        troubles: what the run did to them.
        acknowledged: the job of each key that a producer was told of.
        stored: all jobs in the end.
    """
    jobs = list(stored)
    by_key = {job.key: job for job in jobs}
    if len(by_key) != len(jobs):
        yield f"{len(jobs) - len(by_key)} keys have two jobs"
    if lost := lost_of(acknowledged, jobs):
        yield f"lost: {lost[:5]}"
    if unsuccessful := Counter(job.state for job in jobs if job.state != "succeeded"):
        yield f"did not succeed: {dict(unsuccessful)}"
    if journal.twice:
        yield f"{journal.twice} attempts ran twice"
    last = {job.job: job.attempt for job in jobs}
    if any(a.number > last.get(a.job, 0) for a in journal.attempts):
        yield "an attempt ran that the history does not have"
    ran = {a.job for a in journal.attempts if a.ended_at < EVER}
    if unran := [j for j in jobs if j.state == "succeeded" and j.job not in ran]:
        yield f"{len(unran)} succeeded without having run"
    allowed = may_repeat(journal, troubles)
    causeless = [f"{b.job} {b.number}" for a, b in journal.repeats()
                 if (a.job, a.number) not in allowed]  # fmt: skip
    if causeless:
        yield f"{len(causeless)} attempts repeat what nothing disturbed: {causeless[:5]}"


def lost_of(acknowledged: dict[str, str], stored: Iterable[Stored]) -> list[str]:
    """Return the acknowledged keys whose jobs are missing or have not finished."""
    finished = {job.key: job.job for job in stored if job.is_finished}
    return [key for key, job in acknowledged.items() if finished.get(key) != job]
