"""Commands for jobs: enqueue, list, show, explain, redrive, work."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, get_args
from uuid import UUID

import click

from jobq.calls.options import EnqueueOptions
from jobq.models import Job, JobPage, State
from jobq_cli.declared import calling, limited
from jobq_cli.parameters import (
    AS_JSON,
    DATABASE,
    LONGEST_DELAY,
    PAYLOAD,
    Seconds,
    argument,
    as_span,
    limit,
    moment,
    option,
    options_of,
)
from jobq_cli.terminal import asking, plain, say, show_json, show_rows, show_table
from jobq_cli.tree import drawn
from jobq_operations.visible import in_line


@click.command(
    params=[
        argument("kind"),
        PAYLOAD,
        *options_of(EnqueueOptions),
        option("--delay", type=Seconds(0, LONGEST_DELAY), callback=as_span,
               help="Start after this many seconds."),
        option("--wait", type=Seconds(0), help="Wait this long for the result and print it."),
        DATABASE,
    ]
)  # fmt: skip
def enqueue(
    *,
    kind: str,
    payload: Any,  # noqa: ANN401 - any JSON
    delay: timedelta | None,
    run_at: datetime | None,
    wait: float | None,
    database_url: str,
    **options: Any,  # noqa: ANN401 - the options of enqueue() that have its names
) -> None:
    """Enqueue a job of KIND with PAYLOAD (JSON, or - for standard input). Prints its id."""
    if delay is not None:
        if run_at is not None:
            raise click.UsageError("--delay and --run-at cannot be used together")
        run_at = datetime.now(UTC) + delay
    with asking(database_url) as client:
        job = client.enqueue(kind, payload, run_at=run_at, **options)
        say(job.job_id)
        if not job.created:
            say("the job already existed", err=True)
        if wait is not None:
            try:
                say(json.dumps(client.result(job.job_id, timeout=wait)))
            except TimeoutError as error:
                raise click.ClickException(str(error)) from error


@click.command(
    params=[
        option("--state", type=click.Choice(get_args(State)), help="Only jobs in this state."),
        option("--kind", help="Only jobs of this kind."),
        option("--queue", help="Only jobs of this queue."),
        limit(20),
        option("--before", type=click.UUID, help="Only jobs enqueued before this one."),
        option("--follow", is_flag=True, help="Continue: print new and changed jobs."),
        AS_JSON,
        DATABASE,
    ]
)
def jobs(
    *,
    limit: int,
    before: UUID | None,
    follow: bool,
    is_json: bool,
    database_url: str,
    **filters: Any,  # noqa: ANN401 - click has checked them
) -> None:
    """List jobs, newest first. A search stops after 100,000 jobs and prints how to continue.

    With --follow it polls each second, and prints new jobs and changes of the newest --limit jobs.
    """
    with asking(database_url) as client:
        look = partial(client.list_jobs, **filters, max_jobs=limit)
        found = look(before=before)
        list_found(found, is_json=is_json)
        if found.cursor and len(found) < limit:
            say(f"searched 100,000 jobs; continue with --before {found.cursor}", err=True)
        seen = {job.job_id: without_lease(job) for job in found}
        while follow:
            sys.stdout.flush()
            time.sleep(1)
            newest = pages(look, max(seen, default=None))
            list_found(
                [job for job in newest if seen.get(job.job_id) != without_lease(job)][::-1],
                is_json=is_json,
                is_more=True,
            )
            seen = {job.job_id: without_lease(job) for job in newest}


def without_lease(job: Job) -> Job:
    """Return a job without the columns that heartbeats change."""
    return replace(job, heartbeat_at=None, lease_expires_at=None)


def pages(look: Callable[..., JobPage], last: UUID | None) -> list[Job]:
    """Return the newest pages of jobs, back to the last one seen.

    A page that is not full is the last: it may have searched 100,000 jobs.
    """
    newest: list[Job] = []
    page = look()
    while page and page.cursor == page[-1].job_id and (last is None or page.cursor > last):
        newest += page
        page = look(before=page.cursor)
    return newest + page


def list_found(found: Sequence[Job], *, is_json: bool, is_more: bool = False) -> None:
    """Print jobs, one per line, with a header unless earlier jobs were printed."""
    show_rows(
        found,
        () if is_more else ("job_id", "kind", "queue", "state", "attempts", "run_at", "last error"),
        lambda job: (
            job.job_id, job.kind, job.queue, job.state, f"{job.attempts}/{job.max_attempts}",
            f"{job.run_at:%Y-%m-%d %H:%M:%S%z}", job.last_error_code or "",
        ),
        is_json=is_json,
    )  # fmt: skip


@click.command(params=[argument("job_id"), AS_JSON, DATABASE])
def show(job_id: str, is_json: bool, database_url: str) -> None:
    """Show a job with its attempts, steps, tree and log."""
    with asking(database_url) as client:
        job = client.get(job_id)
        attempts = client.attempts(job_id)
        steps = client.list_steps(job_id)
        logs = client.logs(job_id)
        graph = client.graph(job_id)
    if is_json:
        parts: dict[str, Sequence[Any]] = {"attempts": attempts, "steps": steps, "logs": logs}
        lists = {name: list(map(asdict, rows)) for name, rows in parts.items()}
        show_json([asdict(job) | lists | {"graph": graph}])
        return
    for name, value in asdict(job).items():
        if value not in (None, {}):
            say(f"{name:<20} {plain(value)}".replace("\n", "\n" + " " * 21))
    if attempts:
        say("")
        rows = [
            (a.attempt, a.state, a.started_at, a.duration or "", a.worker or "", a.error or "")
            for a in attempts
        ]
        show_table(("attempt", "state", "started_at", "duration", "worker", "error"), rows)
    if steps:
        say("")
        done = [(s.name, s.attempt, s.saved_at, plain(s.value)) for s in steps]
        show_table(("step", "attempt", "saved_at", "value"), done)
    if graph["edges"]:
        say("")
        for branch in drawn(graph):
            say(in_line(branch))
    if logs:
        say("")
    for line in logs:
        text = f"{line.logged_at:%H:%M:%S.%f} {line.level:<5} {line.message}"
        say(text.replace("\n", "\n" + " " * 22))


explain = calling(
    "explain",
    "explain",
    "Explain why a job is not running.",
    argument("job_id"),
    AS_JSON,
    lines=lambda reasons: [f"{each.reason}: {each.explanation}" for each in reasons],
)


@click.command(
    params=[
        argument("job_ids", nargs=-1, metavar="[JOB_ID]..."),
        option("--queue", help="Dead jobs of this queue."),
        option("--kind", help="Dead jobs of this kind."),
        option("--error-code", help="Dead jobs whose last error has this code."),
        moment("--since", "Dead since this time, in UTC."),
        limit(1000, 100_000, "max_jobs"),
        option("--max-attempts", type=int,
               help="Attempts from now on, for one JOB_ID.  [default: as before]"),
        option("--latest", is_flag=True, help="Use the current version of the endpoint."),
        option("--dry-run", is_flag=True, help="Only print the selected jobs."),
        option("--tree", type=click.Choice(("failed", "downstream", "all")),
               help="Jobs of the tree of JOB_ID: failed ones, the job and those waiting for it, or"
               " all."),
        DATABASE,
    ]
)  # fmt: skip
def redrive(
    *,
    job_ids: tuple[str, ...],
    tree: str | None,
    latest: bool,
    dry_run: bool,
    max_jobs: int,
    max_attempts: int | None,
    database_url: str,
    **filters: Any,  # noqa: ANN401 - those of redrive_many()
) -> None:
    """Run dead or cancelled jobs again, by JOB_ID or by options.

    With several JOB_IDs only dead jobs are redriven. Options filter them further.
    """
    is_filtered = any(value is not None for value in filters.values())
    is_one = len(job_ids) == 1 and not is_filtered and not dry_run
    if not job_ids and not is_filtered:
        raise click.UsageError("pass a JOB_ID or at least one option")
    if max_attempts is not None and (not is_one or tree is not None):
        raise click.UsageError("--max-attempts requires one JOB_ID")
    if tree is not None and (not is_one or latest):
        raise click.UsageError("--tree requires one JOB_ID and no other options")
    redriven: Iterable[object]
    with asking(database_url) as client:
        if tree is not None:
            redriven = client.redrive_tree(job_ids[0], tree)
        elif is_one:
            client.redrive(job_ids[0], latest=latest, max_attempts=max_attempts)
            redriven = job_ids
        else:
            filters |= {"job_ids": job_ids or None, "max_jobs": max_jobs}
            redriven = limited("redrive_many")(client, **filters, dry_run=dry_run, latest=latest)
        for job_id in redriven:
            say(job_id)


rerun = calling(
    "rerun",
    lambda client, job_ids: [client.rerun(job_id) for job_id in job_ids],
    "Enqueue copies of finished jobs. Prints the ids of the copies.",
    argument("job_ids", nargs=-1, required=True, metavar="JOB_ID..."),
    lines=lambda copies: copies,
)


@click.command(
    params=[
        option(
            "--queue",
            "queues",
            multiple=True,
            default=("default",),
            help="Queue to serve. Repeatable.",
        ),
        limit(100, 10_000, "max_jobs", of="jobs per call"),
        option("--until-empty", is_flag=True, help="Continue until no job is due."),
        AS_JSON,
        DATABASE,
    ]
)
def work(
    *, queues: tuple[str, ...], max_jobs: int, until_empty: bool, is_json: bool, database_url: str
) -> None:
    """Run due jobs whose kinds are database functions, with the rights of the login."""
    with asking(database_url) as client:
        while True:
            ended = client.work(queues, max_jobs)
            show_rows(ended, ("job_id", "kind", "state"), is_json=is_json)
            if not (ended and until_empty):
                break
