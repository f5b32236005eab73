"""`jobq worker`: run handlers and deliver the jobs of endpoints."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource
from psycopg.conninfo import conninfo_to_dict

from jobq.registry import Registry
from jobq_cli.parameters import DATABASES, Seconds, Url, argument, option
from jobq_cli.terminal import logged, plainly

logger = logging.getLogger("jobq.worker")

N = TypeVar("N", int, float)


# fmt: off
OPTIONS: Final = (
    argument("target", required=False),
    option("--deliver/--no-deliver", "is_deliverer", default=True,
           help="Deliver jobs of endpoints (requires the extra `delivery`)."),
    option("--queue", "queues", multiple=True, default=("default",),
           help="Queue to serve, or queue=N for at most N of its jobs at a time, or a pattern"
           " such as 'tenant-*'. Repeatable."),
    option("--weight", "shares", multiple=True,
           help="Claim from queues in random order by weight: queue=weight; 1 by default."
           " Repeatable."),
    option("--concurrency", default=50, type=click.IntRange(1),
           help="Maximum jobs at the same time."),
    option("--processes", type=click.IntRange(1),
           help="Processes for handlers with process=True."),
    option("--name", help="Name of the worker; must be unique."),
    option("--release", envvar="JOBQ_RELEASE", show_envvar=True,
           help="Release name, shown with the worker."),
    option("--poll", default=5.0, type=Seconds(0.05, 60), help="Polling interval in seconds."),
    option("--grace", default=30.0, type=Seconds(0),
           help="How long running jobs may take to finish after SIGTERM, in seconds."),
    option("--sleepy", is_flag=True,
           help="Send no statements while idle: no heartbeat, no polling."),
    option("--listen/--no-listen", default=True, help="Use notifications, or only poll."),
    option("--listen-database", type=Url(),
           help="Direct database URL for LISTEN, bypassing the pooler."),
    option("--pooled", "is_pooled", is_flag=True,
           help="The database is behind a transaction pooler such as PgBouncer."),
    option("--declare/--no-declare", default=True,
           help="Declare the kinds of TARGET at the start."),
    option("--until-empty", is_flag=True,
           help="Exit when no job is due and this worker runs none."),
    option("--watch", "is_watching", is_flag=True,
           help="Restart when code in this directory changes."),
    option("--max-jobs", type=click.IntRange(1),
           help="Exit with status 75 after this many jobs."),
    option("--max-bytes", type=click.IntRange(1),
           help="Exit with status 75 above this memory usage, in bytes."),
    option("--metrics-host", default="127.0.0.1", envvar="JOBQ_METRICS_HOST",
           help="Address for /metrics, /healthz and /readyz."),
    option("--metrics-port", default=9091, envvar="JOBQ_METRICS_PORT",
           type=click.IntRange(0, 65535), help="Port; 0 chooses a free one."),
    option("--no-metrics", "is_silent", is_flag=True, help="Do not serve them."),
    DATABASES,
)
# fmt: on


@click.command(params=list(OPTIONS))
@logged
def worker(
    *,
    target: str | None,
    is_deliverer: bool,
    queues: tuple[str, ...],
    shares: tuple[str, ...],
    is_silent: bool,
    is_watching: bool,
    database_urls: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - the parameters of Worker that have their names
) -> None:
    """Run jobs with the handlers in TARGET (for example app.jobs:registry).

    Jobs of endpoints are delivered with or without TARGET. With several databases, all share
    one concurrency limit; an unreachable database does not reduce it. On the first SIGTERM,
    SIGINT or SIGHUP, running jobs finish. The second ends the worker.
    Exit status: 0 stopped, 1 failed, 75 restart needed, 128 + n killed by signal n.
    """
    if is_watching:
        from jobq_cli.watch import watch  # noqa: PLC0415 - only here

        sys.exit(watch([word for word in sys.argv[1:] if word != "--watch"], Path.cwd()))
    from jobq.worker import Worker, loop_factory  # noqa: PLC0415 - only here
    from jobq_sharding.worker import ShardedWorker  # noqa: PLC0415 - only here

    warn_of_passwords(database_urls)
    names = [queue.partition("=")[0] for queue in queues]
    options["max_in_process"] = numbers(int, [q for q in queues if "=" in q], "--queue")
    weights = numbers(float, shares, "--weight")
    if unknown := weights.keys() - set(names):
        text = f"not among the queues: {', '.join(sorted(unknown))}"
        raise click.BadParameter(text, param_hint="--weight")
    order = {name: weights.get(name, 1.0) for name in names} if weights else names
    registry = load_registry(target) if target else Registry()
    is_pooled = options["is_pooled"] or options["listen_database"] is not None
    registries = {url: copy(registry) for url in database_urls}
    if len(registries) < len(database_urls):
        raise click.BadParameter("the same database is given twice", param_hint="--database")
    if len(registries) > 1 and (options["listen_database"] or options["until_empty"]):
        raise click.UsageError("--listen-database and --until-empty work only with one database")
    if is_silent:
        options["metrics_port"] = None
    try:
        if len(registries) > 1:
            own: Worker | ShardedWorker = ShardedWorker(registries, order, **options)
        else:
            own = Worker(database_urls[0], registries[database_urls[0]], order, **options)
    except ValueError as error:
        raise click.UsageError(str(error)) from error

    async def work() -> int:
        async with AsyncExitStack() as stack:
            for url, handlers in registries.items() if is_deliverer else ():
                await stack.enter_async_context(delivering(handlers, url, is_pooled))
            return await own.run()

    # Jobs create no reference cycles, so collect garbage rarely.
    gc.freeze()
    gc.set_threshold(50_000)
    with plainly(), asyncio.Runner(loop_factory=loop_factory()) as runner:
        sys.exit(until_done(runner.get_loop(), work()))


def take_from_environment(command: click.Command) -> None:
    """Read omitted options from the environment: ``JOBQ_WORKER_QUEUE`` for --queue.

    Not --watch, whose child would watch again.
    """
    for parameter in command.params:
        if parameter.envvar is None and parameter.name != "is_watching":
            name = parameter.opts[0].lstrip("-").replace("-", "_").upper()
            parameter.envvar = f"JOBQ_WORKER_{name}"
        if isinstance(parameter, click.Option) and parameter.envvar is not None:
            parameter.show_envvar = True


take_from_environment(worker)


def warn_of_passwords(database_urls: Sequence[str]) -> None:
    """Warn if the command line contains a password, which other users can read."""
    source = click.get_current_context().get_parameter_source("database_urls")
    if source is ParameterSource.COMMANDLINE and any(
        conninfo_to_dict(url).get("password") for url in database_urls
    ):
        logger.warning(
            "other users of this machine can read the password on the command line (ps):"
            " use DATABASE_URL, or a file by the parameter passfile of the URL"
        )


def until_done(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, int]) -> int:
    """Run the loop until the work is done, even if handlers stop it.

    A task or callback that a handler left may raise SystemExit out of the loop.
    """
    from jobq.worker import EXIT_FAILED  # noqa: PLC0415 - only here

    task = loop.create_task(work)
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, RuntimeError) as error:
            if task.done() or loop.is_closed():
                raise
            logger.error("a handler tried to end the worker, which continues: %r", error)  # noqa: TRY400
        except asyncio.CancelledError:
            return EXIT_FAILED


@asynccontextmanager
async def delivering(registry: Registry, database_url: str, is_pooled: bool) -> AsyncIterator[None]:
    """Let a registry deliver jobs of endpoints if the extra is installed."""
    try:
        from jobq_delivery import Deliverer  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        logger.info(
            "leaving jobs of endpoints to other workers: jobq[delivery] is not installed (%s)",
            error,
        )
        yield
        return
    async with Deliverer(database_url, is_pooled=is_pooled) as deliverer:
        registry.otherwise(deliverer.deliver, beyond=deliverer.beyond)
        yield


def load_registry(target: str) -> Registry:
    """Import the registry `module:name`, also from the current directory."""
    module, _, name = target.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name or "registry")
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise click.BadParameter(str(error), param_hint="TARGET") from error
    if not isinstance(found, Registry):
        raise click.BadParameter(f"{target} is not a jobq.Registry", param_hint="TARGET")
    return found


def numbers(kind: Callable[[str], N], pairs: Sequence[str], hint: str) -> dict[str, N]:
    """Parse ``name=number``."""
    found = {}
    for pair in pairs:
        name, _, number = pair.partition("=")
        try:
            found[name] = kind(number)
        except ValueError as error:
            raise click.BadParameter(f"{pair} is not NAME=NUMBER", param_hint=hint) from error
    return found
