"""Jobs on the command line: enqueue, look at and redrive them."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import click

from jobq.cli.terminal import (
    LONGEST_DELAY,
    Seconds,
    as_json,
    asking,
    database,
    in_utc,
    parsed,
    plain,
    say,
    show_json,
    show_table,
)
from jobq.cli.tree import drawn
from jobq.models import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from jobq.models import Job, JobPage

__all__ = ["enqueue", "explain", "jobs", "redrive", "show"]


@click.command()
@click.argument("kind")
@click.argument("payload", default="{}", callback=parsed)
@click.option("--queue", help="Where to, instead of the kind's own queue.")
@click.option(
    "--delay",
    type=Seconds(0, LONGEST_DELAY),
    help="Seconds from now, before which it does not run.",
)
@click.option("--run-at", type=click.DateTime(), callback=in_utc, help="Not before then, in UTC.")
@click.option(
    "--expires-at", type=click.DateTime(), callback=in_utc, help="No attempt begins then, in UTC."
)
@click.option("--priority", type=int, help="Higher runs first.")
@click.option("--timeout", help="Of each attempt, such as '30 s'.")
@click.option("--max-attempts", type=int, help="How many attempts may fail.")
@click.option("--idempotency-key", help="The same key of a kind gives the same job.")
@click.option("--dedup-key", help="Looks at live jobs of the kind.")
@click.option(
    "--dedup",
    type=click.Choice(("skip", "enqueue", "replace", "debounce", "throttle")),
    help="What follows where a live job has the key.",
)
@click.option("--metadata", callback=parsed, help="A JSON object that handlers see.")
@click.option("--concurrency-key", help="For whom it runs: keys take turns and have limits.")
@click.option("--after", multiple=True, help="A job that it waits for; may be given again.")
@click.option(
    "--after-failure",
    type=click.Choice(("cancel", "wait", "run")),
    help="What follows where one of them is dead or cancelled.",
)
@click.option("--batch-id", help="The batch that it becomes a member of.")
@click.option("--wait", type=Seconds(0), help="Wait so many seconds for the result, and print it.")
@database
def enqueue(
    *,
    kind: str,
    payload: Any,  # noqa: ANN401 - any JSON
    delay: float | None,
    run_at: datetime | None,
    wait: float | None,
    database_url: str,
    **options: Any,  # noqa: ANN401 - the options of enqueue() that have its names
) -> None:
    """Add a job of KIND with PAYLOAD, a JSON text or - for standard input; print its id."""
    if delay is not None:
        if run_at is not None:
            raise click.UsageError("give --delay or --run-at, and not both")
        run_at = datetime.now(UTC) + timedelta(seconds=delay)
    with asking(database_url) as client:
        job = client.enqueue(kind, payload, run_at=run_at, **options)
        say(job.job_id)
        if not job.created:
            say("this job was there already", err=True)
        if wait is not None:
            try:
                say(json.dumps(client.result(job.job_id, timeout=wait)))
            except TimeoutError as error:
                raise click.ClickException(str(error)) from error


@click.command()
@click.option("--state", type=click.Choice(get_args(State)), help="Only jobs in this state.")
@click.option("--kind", help="Only jobs of this kind.")
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--limit", default=20, type=click.IntRange(1, 1000), help="At most so many.")
@click.option("--before", type=click.UUID, help="Only jobs made before this one.")
@click.option("--follow", is_flag=True, help="Go on: print jobs when they come or change.")
@as_json
@database
def jobs(
    *,
    state: Any,  # noqa: ANN401 - click has checked it
    kind: str | None,
    queue: str | None,
    limit: int,
    before: UUID | None,
    follow: bool,
    is_json: bool,
    database_url: str,
) -> None:
    """List jobs, newest first; a search that looks at 100,000 jobs in vain says how to go on.

    With --follow it looks again each second, and prints every new job, and what has changed of
    the newest --limit jobs, as it is then.
    """
    with asking(database_url) as client:
        found = client.list_jobs(state, kind, queue, before, max_jobs=limit)
        list_found(found, is_json=is_json)
        if found.cursor and len(found) < limit:
            say(f"looked at 100,000 jobs; go on with --before {found.cursor}", err=True)
        seen = {job.job_id: without_lease(job) for job in found}
        while follow:
            sys.stdout.flush()
            time.sleep(1)
            look = partial(client.list_jobs, state, kind, queue, max_jobs=limit)
            newest = pages(look, max(seen, default=None))
            list_found(
                [job for job in newest if seen.get(job.job_id) != without_lease(job)][::-1],
                is_json=is_json,
                is_more=True,
            )
            seen = {job.job_id: without_lease(job) for job in newest}


def without_lease(job: Job) -> Job:
    """Return a job without what each heartbeat changes."""
    return replace(job, heartbeat_at=None, lease_expires_at=None)


def pages(look: Callable[..., JobPage], last: UUID | None) -> list[Job]:
    """Return a page of the newest jobs, and as many full ones as it takes to reach the last seen.

    A page that is not full ends them: it may have looked at 100,000 jobs in vain.
    """
    newest: list[Job] = []
    page = look()
    while page and page.cursor == page[-1].job_id and (last is None or page.cursor > last):
        newest += page
        page = look(page.cursor)
    return newest + page


def list_found(found: Sequence[Job], *, is_json: bool, is_more: bool = False) -> None:
    """Print jobs, a line for each; under their names, unless there are more above."""
    if is_json:
        show_json(asdict(job) for job in found)
        return
    show_table(
        () if is_more else ("job_id", "kind", "queue", "state", "attempts", "run_at", "last error"),
        [
            (
                job.job_id,
                job.kind,
                job.queue,
                job.state,
                f"{job.attempts}/{job.max_attempts}",
                f"{job.run_at:%Y-%m-%d %H:%M:%S%z}",
                job.last_error_code or "",
            )
            for job in found
        ],
    )


@click.command()
@click.argument("job_id")
@as_json
@database
def show(job_id: str, is_json: bool, database_url: str) -> None:
    """Show all that is known of a job: its attempts, its steps, its tree and its log."""
    with asking(database_url) as client:
        job = client.get(job_id)
        attempts = client.attempts(job_id)
        steps = client.list_steps(job_id)
        logs = client.logs(job_id)
        graph = client.graph(job_id)
    if is_json:
        parts = {
            "attempts": map(asdict, attempts),
            "steps": map(asdict, steps),
            "logs": map(asdict, logs),
        }
        show_json(
            [asdict(job) | {name: list(rows) for name, rows in parts.items()} | {"graph": graph}]
        )
        return
    for name, value in asdict(job).items():
        if value not in (None, {}):
            say(f"{name:<20} {plain(value)}")
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
            say(branch)
    if logs:
        say("")
    for line in logs:
        say(f"{line.logged_at:%H:%M:%S.%f} {line.level:<5} {line.message}")


@click.command()
@click.argument("job_id")
@as_json
@database
def explain(job_id: str, is_json: bool, database_url: str) -> None:
    """Say why a job is not running."""
    with asking(database_url) as client:
        reasons = client.explain(job_id)
    if is_json:
        show_json(asdict(reason) for reason in reasons)
        return
    for reason in reasons:
        say(f"{reason.reason}: {reason.explanation}")


@click.command()
@click.argument("job_ids", nargs=-1, metavar="[JOB_ID]...")
@click.option("--queue", help="Dead jobs of this queue.")
@click.option("--kind", help="Dead jobs of this kind.")
@click.option("--error-code", help="Dead jobs whose last error has this code.")
@click.option("--since", type=click.DateTime(), callback=in_utc, help="Dead since then, in UTC.")
@click.option("--limit", default=1000, type=click.IntRange(1, 100_000), help="At most so many.")
@click.option("--latest", is_flag=True, help="Deliver by the endpoint as it is now.")
@click.option("--dry-run", is_flag=True, help="Only say which jobs the options choose.")
@click.option(
    "--tree",
    type=click.Choice(("failed", "downstream", "all")),
    help="Jobs of the tree of JOB_ID: what failed, itself and what waits for it, or all.",
)
@database
def redrive(
    *,
    job_ids: tuple[str, ...],
    tree: str | None,
    queue: str | None,
    kind: str | None,
    error_code: str | None,
    since: datetime | None,
    limit: int,
    latest: bool,
    dry_run: bool,
    database_url: str,
) -> None:
    """Run a dead or cancelled job again: JOB_ID, or those dead ones that the options choose.

    Of many JOB_IDs those go back that are dead; options beside them narrow that down.
    """
    is_filtered = any(option is not None for option in (queue, kind, error_code, since))
    is_one = len(job_ids) == 1 and not is_filtered and not dry_run
    if not job_ids and not is_filtered:
        raise click.UsageError("give a JOB_ID, or at least one of the options")
    if tree is not None and (not is_one or latest):
        raise click.UsageError("--tree goes with one JOB_ID alone")
    redriven: Iterable[object]
    with asking(database_url) as client:
        if tree is not None:
            redriven = client.redrive_tree(job_ids[0], tree)
        elif is_one:
            client.redrive(job_ids[0], latest=latest)
            redriven = job_ids
        else:
            redriven = client.redrive_many(
                queue,
                kind,
                since,
                error_code,
                limit,
                job_ids=job_ids or None,
                dry_run=dry_run,
                latest=latest,
            )
        for job_id in redriven:
            say(job_id)
