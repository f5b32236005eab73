#!/usr/bin/env python3
"""Hold the history of a database against the specification.

    replay.py URL       replay what was recorded there since `history.record()`, and print it

The specification of one job is the relation of `relation.py`, which the model checker uses too,
and what the model says follows from a change: the attempt, the lease, what is counted. Of several
jobs: slots of a limit, and jobs that wait for others. Anything else is a rejected step.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import history
import relation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from history import Change, Row, Transaction

LEGAL = relation.transitions()
# Never change while a job is the same job.
IDENTITY = ("kind", "created_at", "idempotency_key", "schedule_id", "slot_at", "concurrency_key")
# What may change in a finished job: when it is forgotten, and the slot of the foreign key.
ARCHIVE_MAY_CHANGE = {"prune_at"}


@dataclass(slots=True)
class Replay:
    """The state that the specification is in, and what it has rejected.

    Attributes:
        limits: how many jobs of a queue and concurrency key may run at once.
        live: jobs that have not finished, by id.
        finished: the others.
        archived: jobs with a row in the archive. What is deleted there stays in `finished`: its
            row may have moved to another partition, which the recorder does not see.
        waits: the open edges of each child: the parent, and what happens if it fails.
        steps: how many changes of state have been replayed, by (from, to).
        rejected: why, one line for each.
    """

    limits: Mapping[tuple[str, str], int] = field(default_factory=dict)
    live: dict[str, Row] = field(default_factory=dict)
    finished: dict[str, Row] = field(default_factory=dict)
    archived: set[str] = field(default_factory=set)
    waits: dict[str, dict[str, str]] = field(default_factory=dict)
    running: Counter[tuple[str, str]] = field(default_factory=Counter)
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    rejected: list[str] = field(default_factory=list)

    def follow(self, transactions: Iterable[Transaction]) -> Replay:
        """Replay transactions in the order of their commits; return itself."""
        for transaction in transactions:
            where = f"transaction {transaction.xid}"
            touched = {str(change.row.get("job_id")) for change in transaction.changes}
            for change in transaction.changes:
                for problem in self._step(change):
                    self.rejected.append(f"{where}: {problem}")
            for job_id in touched & self.live.keys() & self.archived:
                self.rejected.append(
                    f"transaction {transaction.xid}: {job_id} is live and finished"
                )
        return self

    def _step(self, change: Change) -> Iterator[str]:
        if change.table == "edge":
            self._edge(change)
            return
        row, job_id = change.row, str(change.row["job_id"])
        known = self.live.get(job_id) or self.finished.get(job_id)
        if change.table == "job":
            if change.operation == "delete":
                self._remember(job_id, None)
            else:
                yield from self._check(job_id, known, row)
                self._remember(job_id, {**(known or {}), **row})
                yield from self._check_limits(job_id, self.live[job_id])
        elif change.operation == "delete":
            self.archived.discard(job_id)
        elif change.operation == "update":
            changed = {
                name
                for name, value in row.items()
                if known is not None and known.get(name) != value
            }
            if changed - ARCHIVE_MAY_CHANGE:
                yield f"{job_id} has finished, and {sorted(changed)} changed"
        else:
            yield from self._check(job_id, known, row)
            self.finished[job_id] = {**(known or {}), **row}
            self.archived.add(job_id)

    def _check(self, job_id: str, old: Row | None, new: Row) -> Iterator[str]:
        """Yield what is wrong with a row that comes, or comes to be another."""
        state, attempt = str(new["state"]), int(new["attempt"] or 0)
        if old is None:
            self.steps["", state] += 1
            if state not in relation.BIRTHS or new["previous_state"] is not None or attempt:
                yield f"{job_id} is born {state}, attempt {attempt}"
            return
        yield from self._check_columns(job_id, old, new)
        before, last = str(old["state"]), int(old["attempt"] or 0)
        if before == state:
            if attempt != last:
                yield f"{job_id} is {state} still, and attempt {last} became {attempt}"
            return
        self.steps[before, state] += 1
        if (before, state) not in LEGAL or new["previous_state"] != before:
            yield f"{job_id}: {before} to {state}, recorded as from {new['previous_state']}"
        if attempt != last + (state == "running"):
            yield f"{job_id}: attempt {last} became {attempt} from {before} to {state}"
        yield from self._check_count(job_id, old, new)
        if before == "blocked" and state == "queued" and (left := self._awaited(job_id)):
            yield f"{job_id} is released, and waits for {left}"

    @staticmethod
    def _check_columns(job_id: str, old: Row, new: Row) -> Iterator[str]:
        has_lease = new["lease_expires_at"] is not None
        if has_lease != (new["state"] == "running"):
            yield f"{job_id} is {new['state']}, and its lease is {new['lease_expires_at']}"
        for column in IDENTITY:
            if column in old and column in new and old[column] != new[column]:
                yield f"{job_id}: {column} changed from {old[column]} to {new[column]}"

    @staticmethod
    def _check_count(job_id: str, old: Row, new: Row) -> Iterator[str]:
        before, state = str(old["state"]), str(new["state"])
        attempt, uncounted = int(new["attempt"] or 0), int(new["uncounted"] or 0)
        expected = int(old["uncounted"] or 0) + ((before, state) == ("running", "queued"))
        if before in relation.FINAL:
            expected = attempt
        if uncounted != expected:
            yield f"{job_id}: {uncounted} uncounted attempts from {before} to {state}"
        if attempt - uncounted > int(new["max_attempts"] or 0):
            yield f"{job_id}: attempt {attempt - uncounted} of {new['max_attempts']}"

    def _remember(self, job_id: str, row: Row | None) -> None:
        """Make a row the live one, and count what runs."""
        old = self.live.pop(job_id, None)
        for change, each in ((-1, old), (1, row)):
            if each is not None and each["state"] == "running" and each["concurrency_key"]:
                self.running[str(each["queue"]), str(each["concurrency_key"])] += change
        if row is not None:
            self.live[job_id] = row
            self.finished.pop(job_id, None)
        elif old is not None and job_id not in self.finished:
            self.finished[job_id] = old

    def _check_limits(self, job_id: str, row: Row) -> Iterator[str]:
        key = str(row["queue"]), str(row["concurrency_key"])
        if row["state"] == "running" and self.running[key] > self.limits.get(key, sys.maxsize):
            yield f"{job_id} runs, one of {self.running[key]} of the key {key}"

    def _edge(self, change: Change) -> None:
        child, parent = str(change.row["child"]), str(change.row["parent"])
        if change.operation == "delete" or change.row.get("is_open") != "t":
            self.waits.get(child, {}).pop(parent, None)
        else:
            self.waits.setdefault(child, {})[parent] = str(change.row["after_failure"])

    def _awaited(self, child: str) -> list[str]:
        """Return the parents that have not ended as the child needs it."""
        return [
            parent
            for parent, after_failure in self.waits.get(child, {}).items()
            if parent in self.live
            or (parent in self.finished and after_failure != "run"
                and self.finished[parent]["state"] in ("dead", "cancelled"))
        ]  # fmt: skip

    def __str__(self) -> str:
        changes = ", ".join(f"{a or 'new'} → {b} {n:,}" for (a, b), n in self.steps.most_common())
        lines = [f"{self.steps.total():,} steps replayed, {len(self.rejected)} rejected", changes]
        return "\n".join([*lines, *self.rejected[:20]])


def replay(url: str, limits: Mapping[tuple[str, str], int] | None = None) -> Replay:
    """Replay what a database has recorded.

    Args:
        url: of a superuser.
        limits: how many jobs of a queue and key may run at once, by (queue, key).
    """
    return Replay(limits or {}).follow(history.transactions(url))


if __name__ == "__main__":
    result = replay(sys.argv[1])
    print(result)
    sys.exit(bool(result.rejected))
