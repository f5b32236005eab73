"""Commands that change, cancel and delete jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import click

from jobq.client import Client
from jobq_cli.declared import calling, limited
from jobq_cli.parameters import Json, argument, limit, moment, option, reason
from jobq_cli.terminal import say

# What selects jobs.
WHICH: Final = (
    argument(
        "job_ids",
        nargs=-1,
        metavar="[JOB_ID]...",
        callback=lambda _context, _parameter, ids: list(ids) or None,
    ),
    option("--queue", help="Jobs of this queue."),
    option("--kind", help="Jobs of this kind."),
    option("--metadata", type=Json(), help="Jobs whose metadata contains this JSON."),
    limit(1000, 100_000, "max_jobs", of="jobs, oldest first"),
    option("--dry-run", is_flag=True, help="Only print the selected jobs."),
    reason("stored in the audit log"),
)


def selecting(method: str) -> Callable[..., Any]:
    """Return `limited` of a method, which refuses a call without jobs."""
    call = limited(method)

    def checked(client: Client, **given: Any) -> Any:  # noqa: ANN401
        if not any(given[name] for name in ("job_ids", "queue", "kind", "metadata")):
            raise click.UsageError("pass a JOB_ID, --queue, --kind or --metadata")
        return call(client, **given)

    return checked


def cancelled(client: Client, **given: Any) -> Iterable[object]:  # noqa: ANN401
    """Cancel one job by its id, or many. Exit with 1 if the one had already finished."""
    job_ids = given["job_ids"] or []
    others = ("queue", "kind", "metadata", "state", "dry_run")
    if len(job_ids) != 1 or any(given[name] for name in others):
        return [f"{job.job_id} {job.outcome}" for job in selecting("cancel_many")(client, **given)]
    outcome = client.cancel(job_ids[0], given["reason"])
    if outcome == "already_finished":
        say(outcome)
        sys.exit(1)
    return [outcome]


own: Final = partial(calling, lines=list)
# fmt: off
change = own(
    "change", selecting("change_many"),
    "Change waiting jobs, by JOB_ID or options. Prints their ids.", *WHICH,
    option("--now", "run_now", is_flag=True, help="Run as soon as a worker is available."),
    moment("--run-at", "Start at this time or later, in UTC."),
    option("--priority", type=int, help="Priority; higher values run first."),
    option("--to-queue", help="Move to this queue."),
    option("--timeout", help="Timeout of each attempt, such as '30 s'."),
    moment("--expires-at", "Start no attempt from this time on, in UTC."),
    option("--max-attempts", type=int, help="Maximum number of failed attempts, in total."),
    option("--payload", type=Json(), help="New payload (JSON or -) of jobs that never ran."))
cancel = own(
    "cancel", cancelled,
    "Cancel jobs, by JOB_ID or options. Workers cancel running jobs.", *WHICH,
    option("--state", type=click.Choice(("blocked", "queued", "retrying", "running")),
           help="Only jobs in this state."))
delete = own(
    "delete", selecting("delete_many"),
    "Delete waiting or finished jobs with their history. Prints their ids.", *WHICH,
    option("--state",
           type=click.Choice(("blocked", "queued", "retrying", "succeeded", "dead", "cancelled")),
           help="Only jobs in this state; by default waiting jobs."))
# fmt: on
