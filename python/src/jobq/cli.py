"""The command line: `jobq`, a thin layer over the client, the worker and the HTTP API."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import sys
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from jobq import __version__
from jobq import deploy as sqitch
from jobq.doctor import doctor
from jobq.grants import grants
from jobq.models import State
from jobq.registry import Registry
from jobq.terminal import as_json, asking, database, plain, plainly, say, show_json, show_table
from jobq.timetable import preview, schedules

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence


# The commands of extras, and where they are.
EXTRAS = {"keys": "jobq.http.keys", "secrets": "jobq.delivery.commands"}


class Commands(click.Group):
    """All commands; those of extras are imported when they are asked for, to save memory."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every name; those that `get_command` does not find are not shown."""
        return sorted([*super().list_commands(ctx), *EXTRAS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None where there is none or its extra is not installed."""
        if cmd_name not in EXTRAS:
            return super().get_command(ctx, cmd_name)
        try:
            module = importlib.import_module(EXTRAS[cmd_name])
        except ModuleNotFoundError:
            return None
        found: click.Command = getattr(module, cmd_name)
        return found


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="jobq")
def main() -> None:
    """Run and look after jobs in PostgreSQL."""


@main.command()
@click.argument("kind")
@click.argument("payload", default="{}")
@click.option("--queue", help="Where to, instead of the kind's own queue.")
@click.option("--delay", type=float, help="Seconds from now, before which it does not run.")
@click.option("--priority", type=int, help="Higher runs first.")
@click.option("--max-attempts", type=int, help="How many attempts may fail.")
@click.option("--idempotency-key", help="The same key of a kind gives the same job.")
@click.option("--dedup-key", help="Looks at live jobs of the kind.")
@click.option("--wait", type=float, help="Wait so many seconds for the result, and print it.")
@database
def enqueue(
    kind: str,
    payload: str,
    delay: float | None,
    wait: float | None,
    database_url: str,
    **options: Any,  # noqa: ANN401 - the options of enqueue() that have its names
) -> None:
    """Add a job of KIND with PAYLOAD, a JSON text or - for standard input; print its id."""
    text = sys.stdin.read() if payload == "-" else payload
    try:
        given = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="PAYLOAD") from error
    run_at = None if delay is None else datetime.now(UTC) + timedelta(seconds=delay)
    with asking(database_url) as client:
        job = client.enqueue(kind, given, run_at=run_at, **options)
        click.echo(job.job_id)
        if not job.created:
            click.echo("this job was there already", err=True)
        if wait is not None:
            try:
                click.echo(json.dumps(client.result(job.job_id, timeout=wait)))
            except TimeoutError as error:
                raise click.ClickException(str(error)) from error


@main.command()
@click.option("--state", type=click.Choice(get_args(State)), help="Only jobs in this state.")
@click.option("--kind", help="Only jobs of this kind.")
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--limit", default=20, type=click.IntRange(1, 1000), help="At most so many.")
@as_json
@database
def jobs(
    *,
    state: Any,  # noqa: ANN401 - click has checked it
    kind: str | None,
    queue: str | None,
    limit: int,
    is_json: bool,
    database_url: str,
) -> None:
    """List jobs, newest first."""
    with asking(database_url) as client:
        found = client.list_jobs(state, kind, queue, max_jobs=limit)
    if is_json:
        show_json(asdict(job) for job in found)
        return
    show_table(
        ("job_id", "kind", "queue", "state", "attempts", "run_at", "last error"),
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


@main.command()
@click.argument("job_id")
@database
def show(job_id: str, database_url: str) -> None:
    """Show all that is known of a job, its attempts and its log."""
    with asking(database_url) as client:
        job = client.get(job_id)
        attempts = client.attempts(job_id)
        logs = client.logs(job_id)
    for name, value in asdict(job).items():
        if value not in (None, {}):
            click.echo(f"{name:<20} {plain(value)}")
    if attempts:
        click.echo()
        rows = [
            (a.attempt, a.state, a.started_at, a.duration or "", a.worker or "", a.error or "")
            for a in attempts
        ]
        show_table(("attempt", "state", "started_at", "duration", "worker", "error"), rows)
    if logs:
        click.echo()
    for line in logs:
        click.echo(f"{line.logged_at:%H:%M:%S.%f} {line.level:<5} {line.message}")


@main.command()
@click.argument("job_id")
@database
def explain(job_id: str, database_url: str) -> None:
    """Say why a job is not running."""
    with asking(database_url) as client:
        for reason in client.explain(job_id):
            click.echo(f"{reason.reason}: {reason.explanation}")


@main.command()
@click.argument("job_id")
@click.option("--reason", help="Why; kept with the job.")
@database
def cancel(job_id: str, reason: str | None, database_url: str) -> None:
    """Cancel a job: at once while it waits, by asking its worker while it runs."""
    with asking(database_url) as client:
        outcome = client.cancel(job_id, reason)
    click.echo(outcome)
    if outcome == "already_finished":
        sys.exit(1)


@main.command()
@click.argument("job_id", required=False)
@click.option("--queue", help="Dead jobs of this queue.")
@click.option("--kind", help="Dead jobs of this kind.")
@click.option("--error-code", help="Dead jobs whose last error has this code.")
@click.option("--since", type=click.DateTime(), help="Dead since then, in UTC.")
@click.option("--limit", default=1000, type=click.IntRange(1, 100_000), help="At most so many.")
@database
def redrive(
    *,
    job_id: str | None,
    queue: str | None,
    kind: str | None,
    error_code: str | None,
    since: datetime | None,
    limit: int,
    database_url: str,
) -> None:
    """Run a dead or cancelled job again: JOB_ID, or the dead ones that the options choose."""
    chosen = (queue, kind, error_code, since)
    if (job_id is None) == all(option is None for option in chosen):
        raise click.UsageError("give a JOB_ID, or at least one of the options, and not both")
    moment = None if since is None else since.replace(tzinfo=UTC)
    with asking(database_url) as client:
        if job_id is not None:
            client.redrive(job_id)
            click.echo(job_id)
            return
        for redriven in client.redrive_many(queue, kind, moment, error_code, limit):
            click.echo(redriven)


@main.command()
@as_json
@database
def queues(is_json: bool, database_url: str) -> None:
    """Show how each queue stands."""
    with asking(database_url) as client:
        stats = [asdict(queue) for queue in client.queue_stats()]
    if is_json:
        show_json(stats)
    else:
        names = list(stats[0]) if stats else ["queue"]
        show_table(names, [[plain(queue[name]) for name in names] for queue in stats])


@main.command()
@click.argument("queue")
@click.option("--reason", help="Why; shown by explain.")
@database
def pause(queue: str, reason: str | None, database_url: str) -> None:
    """Stop claims from QUEUE; running jobs go on."""
    with asking(database_url) as client:
        client.pause(queue, reason)


@main.command()
@click.argument("queue")
@database
def resume(queue: str, database_url: str) -> None:
    """Allow claims from QUEUE again."""
    with asking(database_url) as client:
        client.resume(queue)


@main.command()
@click.option("--verify", "is_verify", is_flag=True, help="Only check that all is in place.")
@click.option("--adopt", "is_adopt", is_flag=True, help="Take over what jobq.sql installed.")
@database
def deploy(is_verify: bool, is_adopt: bool, database_url: str) -> None:
    """Bring the database to this version's schema, with Sqitch."""
    with plainly():
        if is_verify or is_adopt:
            act = sqitch.verify if is_verify else sqitch.adopt
            click.echo(act(database_url).rstrip())
        else:
            sqitch.deploy(database_url, say)


@main.command()
@click.argument("target", required=False)
@click.option(
    "--deliver/--no-deliver",
    "is_deliverer",
    default=True,
    help="Deliver jobs of endpoints; needs the extra `delivery`.",
)
@click.option(
    "--queue",
    "queues",
    multiple=True,
    default=("default",),
    help="A queue to serve, or queue=weight; repeat for more.",
)
@click.option("--concurrency", default=50, type=click.IntRange(1), help="Jobs at a time.")
@click.option("--processes", type=click.IntRange(1), help="Processes for work on the CPU.")
@click.option("--name", help="The worker's name; unique.")
@click.option("--poll", default=5.0, type=click.FloatRange(0.05, 60), help="Seconds between looks.")
@click.option("--grace", default=30.0, type=click.FloatRange(0), help="Seconds to finish jobs in.")
@click.option("--listen/--no-listen", default=True, help="Be woken by notifications, or poll.")
@click.option("--listen-database", help="The listener's own URL, past a pooler.")
@click.option("--pooled", "is_pooled", is_flag=True, help="A pooler is before the database.")
@click.option("--declare/--no-declare", default=True, help="Declare the kinds at the start.")
@click.option("--max-jobs", type=click.IntRange(1), help="End with 75 after so many jobs.")
@click.option("--max-bytes", type=click.IntRange(1), help="End with 75 at so much memory.")
@click.option("--metrics-host", default="127.0.0.1", help="Where to serve /metrics and /healthz.")
@click.option(
    "--metrics-port", default=9091, type=click.IntRange(0, 65535), help="The port; 0 takes any."
)
@click.option("--log-format", default="pretty", type=click.Choice(("pretty", "json")))
@click.option("--log-level", default="info", type=click.Choice(("debug", "info", "warning")))
@database
def worker(
    *,
    target: str | None,
    is_deliverer: bool,
    queues: tuple[str, ...],
    log_format: Any,  # noqa: ANN401 - click has checked it
    log_level: str,
    database_url: str,
    **options: Any,  # noqa: ANN401 - the parameters of Worker that have their names
) -> None:
    """Run the handlers of TARGET, such as app.jobs:registry, until told to stop.

    Jobs of endpoints are delivered, with TARGET or without.
    The first SIGTERM or SIGINT lets running jobs finish, the second ends at once.
    Exit status: 0 stopped, 1 failed, 75 to be started afresh, 128 + n killed by signal n.
    """
    from jobq.worker import Worker, configure_logging, loop_factory  # noqa: PLC0415 - only here

    configure_logging(log_format, logging.getLevelNamesMapping()[log_level.upper()])
    registry = load_registry(target) if target else Registry()
    weights = weights_of(queues)

    async def work() -> int:
        async with AsyncExitStack() as stack:
            if is_deliverer:
                await stack.enter_async_context(delivering(registry, database_url))
            return await Worker(database_url, registry, weights, **options).run()

    # Jobs come and go by the thousand, none of them in cycles: look for those seldom.
    gc.freeze()
    gc.set_threshold(50_000)
    with plainly(), asyncio.Runner(loop_factory=loop_factory()) as runner:
        sys.exit(runner.run(work()))


@asynccontextmanager
async def delivering(registry: Registry, database_url: str) -> AsyncIterator[None]:
    """Have a registry deliver the jobs of endpoints, where the extra is installed."""
    try:
        from jobq.delivery import Deliverer  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        yield
        return
    async with Deliverer(database_url) as deliverer:
        registry.otherwise(deliverer.deliver)
        yield


def load_registry(target: str) -> Registry:
    """Import the registry that `module:name` names, from the current folder too."""
    module, _, name = target.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name or "registry")
    except (ImportError, AttributeError) as error:
        raise click.BadParameter(str(error), param_hint="TARGET") from error
    if not isinstance(found, Registry):
        raise click.BadParameter(f"{target} is not a jobq.Registry", param_hint="TARGET")
    return found


def weights_of(queues: Sequence[str]) -> list[str] | dict[str, float]:
    """Read queues: names in their order, or names with weights."""
    if not any("=" in queue for queue in queues):
        return list(queues)
    pairs = (queue.partition("=") for queue in queues)
    try:
        return {name: float(weight or 1) for name, _, weight in pairs}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--queue") from error


@main.command()
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option("--port", default=8080, type=click.IntRange(0, 65535), help="The port.")
@database
def http(host: str, port: int, database_url: str) -> None:
    """Serve the HTTP API."""
    with needing("http"):
        from jobq.http import serve  # noqa: PLC0415 - an extra
    serve(database_url, host, port)


@main.command()
@click.option("--exit", "is_brief", is_flag=True, help="End after the examples.")
@click.option("--port", default=8080, type=click.IntRange(1, 65535), help="The API's port.")
@click.option("--database", "database_url", envvar="DATABASE_URL", help="Instead of a private one.")
def run(is_brief: bool, port: int, database_url: str | None) -> None:
    """Set everything up, run the example jobs, and keep serving."""
    with needing("http,examples,embedded"):
        from jobq.run import RunError, run  # noqa: PLC0415 - extras
    try:
        with plainly():
            sys.exit(run(database_url, folder=Path(".jobq"), port=port, is_brief=is_brief, say=say))
    except RunError as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def needing(extras: str) -> Iterator[None]:
    """Say which extras a command needs when they are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is missing; install it with: pip install 'jobq[{extras}]'"
        ) from error


main.add_command(doctor)
main.add_command(grants)
main.add_command(schedules)
main.add_command(preview)

if __name__ == "__main__":
    main()
