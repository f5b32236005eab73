"""`jobq worker`: run handlers and deliver the jobs of endpoints."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import math
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobq.cli.terminal import Seconds, databases, logged, plainly
from jobq.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence

__all__ = ["worker"]

logger = logging.getLogger("jobq.worker")

LONGEST_NAME = 128


@click.command()
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
@click.option("--release", envvar="JOBQ_RELEASE", show_envvar=True, help="Shown with the worker.")
@click.option("--poll", default=5.0, type=Seconds(0.05, 60), help="Seconds between looks.")
@click.option("--grace", default=30.0, type=Seconds(0), help="Seconds to finish jobs in.")
@click.option("--listen/--no-listen", default=True, help="Be woken by notifications, or poll.")
@click.option("--listen-database", help="The listener's own URL, past a pooler.")
@click.option("--pooled", "is_pooled", is_flag=True, help="A pooler is before the database.")
@click.option("--declare/--no-declare", default=True, help="Declare the kinds at the start.")
@click.option("--until-empty", is_flag=True, help="End when no job is due and none runs.")
@click.option("--watch", "is_watching", is_flag=True, help="Start afresh when code here changes.")
@click.option("--max-jobs", type=click.IntRange(1), help="End with 75 after so many jobs.")
@click.option("--max-bytes", type=click.IntRange(1), help="End with 75 at so much memory.")
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    envvar="JOBQ_METRICS_HOST",
    help="Where to serve /metrics, /healthz and /readyz.",
)
@click.option(
    "--metrics-port",
    default=9091,
    envvar="JOBQ_METRICS_PORT",
    type=click.IntRange(0, 65535),
    help="The port; 0 takes any.",
)
@click.option("--no-metrics", "is_silent", is_flag=True, help="Serve none of them.")
@logged
@databases
def worker(
    *,
    target: str | None,
    is_deliverer: bool,
    queues: tuple[str, ...],
    is_silent: bool,
    is_watching: bool,
    database_urls: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - the parameters of Worker that have their names
) -> None:
    """Run the handlers of TARGET, such as app.jobs:registry, until told to stop.

    Jobs of endpoints are delivered, with TARGET or without. Several databases share the
    places for jobs; one that is away takes none from the others.
    The first SIGTERM or SIGINT lets running jobs finish, the second ends at once.
    Exit status: 0 stopped, 1 failed, 75 to be started afresh, 128 + n killed by signal n.
    """
    if is_watching:
        from jobq.cli.watch import watch  # noqa: PLC0415 - only here

        sys.exit(watch([word for word in sys.argv[1:] if word != "--watch"], Path.cwd()))
    from jobq.worker import ShardedWorker, Worker, loop_factory  # noqa: PLC0415 - only here

    weights = weights_of(queues)
    registry = load_registry(target) if target else Registry()
    is_pooled = options["is_pooled"] or options["listen_database"] is not None
    if len(set(database_urls)) < len(database_urls):
        raise click.BadParameter("a database is given twice", param_hint="--database")
    for option in ("listen_database", "until_empty") if len(database_urls) > 1 else ():
        if options[option]:
            hint = "--" + option.replace("_", "-")
            raise click.BadParameter("only with one database", param_hint=hint)
    if is_silent:
        options["metrics_port"] = None

    async def work() -> int:
        registries = {url: copy(registry) for url in database_urls}
        async with AsyncExitStack() as stack:
            if is_deliverer:
                for url, own in registries.items():
                    await stack.enter_async_context(delivering(own, url, is_pooled))
            if len(registries) > 1:
                return await ShardedWorker(registries, weights, **options).run()
            return await Worker(*registries.popitem(), weights, **options).run()

    # Jobs come and go by the thousand, none of them in cycles: look for those seldom.
    gc.freeze()
    gc.set_threshold(50_000)
    with plainly(), asyncio.Runner(loop_factory=loop_factory()) as runner:
        sys.exit(until_done(runner.get_loop(), work()))


def until_done(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, int]) -> int:
    """Run the loop until the work is done, though handlers stop it.

    A task or a callback that a handler has left behind raises SystemExit out of the loop.
    """
    from jobq.worker import EXIT_FAILED  # noqa: PLC0415 - only here

    task = loop.create_task(work)
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, RuntimeError) as error:
            if task.done() or loop.is_closed():
                raise
            logger.error("a handler would have ended the worker, which goes on: %r", error)  # noqa: TRY400
        except asyncio.CancelledError:
            return EXIT_FAILED


@asynccontextmanager
async def delivering(registry: Registry, database_url: str, is_pooled: bool) -> AsyncIterator[None]:
    """Have a registry deliver the jobs of endpoints, where the extra is installed."""
    try:
        from jobq.delivery import Deliverer  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        logger.info("jobs of endpoints are left to others: jobq[delivery] is not here (%s)", error)
        yield
        return
    async with Deliverer(database_url, is_pooled=is_pooled) as deliverer:
        registry.otherwise(deliverer.deliver, beyond=deliverer.beyond)
        yield


def load_registry(target: str) -> Registry:
    """Import the registry that `module:name` names, from the current folder too."""
    module, _, name = target.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name or "registry")
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise click.BadParameter(str(error), param_hint="TARGET") from error
    if not isinstance(found, Registry):
        raise click.BadParameter(f"{target} is not a jobq.Registry", param_hint="TARGET")
    return found


def weights_of(queues: Sequence[str]) -> list[str] | dict[str, float]:
    """Read queues: names in their order, or names with weights."""
    pairs = [queue.partition("=") for queue in queues]
    if not all(1 <= len(name) <= LONGEST_NAME for name, _, _ in pairs):
        raise click.BadParameter("a name has 1 to 128 characters", param_hint="--queue")
    if any(name == "*" for name, _, _ in pairs):
        raise click.BadParameter("* is no queue: name each, in turn", param_hint="--queue")
    if not any(sign for _, sign, _ in pairs):
        return list(queues)
    try:
        weights = {name: float(weight or 1) for name, _, weight in pairs}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--queue") from error
    if not all(0 < weight < math.inf for weight in weights.values()):
        raise click.BadParameter("a weight is a number above 0", param_hint="--queue")
    return weights
