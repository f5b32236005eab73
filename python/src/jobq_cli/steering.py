"""Commands that change, cancel and delete jobs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import click

from jobq.client import Client
from jobq_cli.parameters import DATABASE, Json, argument, limit, moment, option, reason
from jobq_cli.terminal import asking, say

# What selects jobs.
WHICH: Final = (
    argument("job_ids", nargs=-1, metavar="[JOB_ID]..."),
    option("--queue", help="Jobs of this queue."),
    option("--kind", help="Jobs of this kind."),
    option("--metadata", type=Json(), help="Jobs whose metadata contains this JSON."),
    limit(1000, 100_000, "max_jobs", of="jobs, oldest first"),
    option("--dry-run", is_flag=True, help="Only print the selected jobs."),
    reason("stored in the audit log"),
)


def chosen(which: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that select jobs; at least one is required."""
    ids = list(which.pop("job_ids")) or None
    if ids is None and not any(which[name] for name in ("queue", "kind", "metadata")):
        raise click.UsageError("pass a JOB_ID, or --queue, --kind or --metadata")
    return which | {"job_ids": ids}


@click.command(
    params=[
        *WHICH,
        option("--now", "run_now", is_flag=True, help="Run as soon as a worker is available."),
        moment("--run-at", "Start at this time or later, in UTC."),
        option("--priority", type=int, help="Priority; higher values run first."),
        option("--to-queue", help="Move to this queue."),
        option("--timeout", help="Timeout of each attempt, such as '30 s'."),
        moment("--expires-at", "Start no attempt from this time on, in UTC."),
        option("--max-attempts", type=int, help="Maximum number of failed attempts, in total."),
        option("--payload", type=Json(), help="New payload (JSON or -) of jobs that never ran."),
        DATABASE,
    ]
)
def change(
    *,
    run_now: bool,
    run_at: datetime | None,
    database_url: str,
    **given: Any,  # noqa: ANN401 - the options of `choosing`, and the changes
) -> None:
    """Change waiting jobs, by JOB_ID or options. Prints their ids."""
    names = ("priority", "to_queue", "timeout", "expires_at", "max_attempts", "payload")
    changes = {name: given.pop(name) for name in names} | {"run_at": run_at}
    if not run_now and all(change is None for change in changes.values()):
        raise click.UsageError("pass at least one change")
    if run_now and run_at is not None:
        raise click.UsageError("--now and --run-at cannot be used together")
    jobs = chosen(given)
    with asking(database_url) as client:
        changed = client.change_many(run_now=run_now, **changes, **jobs)
    show_ids(changed, jobs["max_jobs"])


@click.command(
    params=[
        *WHICH,
        option("--state", type=click.Choice(("blocked", "queued", "retrying", "running"))),
        DATABASE,
    ]
)
def cancel(*, state: str | None, database_url: str, **which: Any) -> None:  # noqa: ANN401
    """Cancel jobs, by JOB_ID or options. Workers cancel running jobs."""
    jobs = chosen(which)
    with asking(database_url) as client:
        if is_one(jobs, state):
            cancel_one(client, jobs["job_ids"][0], jobs["reason"])
            return
        outcomes = client.cancel_many(state=state, **jobs)
    show_ids([f"{job.job_id} {job.outcome}" for job in outcomes], jobs["max_jobs"])


def is_one(jobs: dict[str, Any], state: str | None) -> bool:
    """Whether one job is selected, by its id only."""
    others = (state, jobs["queue"], jobs["kind"], jobs["metadata"], jobs["dry_run"])
    return len(jobs["job_ids"] or ()) == 1 and not any(others)


def cancel_one(client: Client, job_id: str, reason: str | None) -> None:
    """Cancel one job and print the outcome. Exit status 1 if it had already ended."""
    outcome = client.cancel(job_id, reason)
    say(outcome)
    if outcome == "already_finished":
        sys.exit(1)


@click.command(
    params=[
        *WHICH,
        option(
            "--state",
            type=click.Choice(("blocked", "queued", "retrying", "succeeded", "dead", "cancelled")),
            help="Only jobs in this state; by default waiting jobs.",
        ),
        DATABASE,
    ]
)
def delete(*, state: str | None, database_url: str, **which: Any) -> None:  # noqa: ANN401
    """Delete waiting or finished jobs with their history. Prints their ids."""
    jobs = chosen(which)
    with asking(database_url) as client:
        deleted = client.delete_many(state=state, **jobs)
    show_ids(deleted, jobs["max_jobs"])


def show_ids(lines: Sequence[object], limit: int) -> None:
    """Print one line per job, and a remark if the limit is reached."""
    for line in lines:
        say(line)
    if len(lines) == limit:
        say(f"limit of {limit} jobs reached; there may be more (--limit)", err=True)
