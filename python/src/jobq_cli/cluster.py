"""`jobq cluster`: several databases as one queue."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import click

from jobq_cli.declared import calling, group
from jobq_cli.parameters import AS_JSON, DATABASE, Seconds, Url, argument, option
from jobq_cli.terminal import plainly, say, show_json
from jobq_operations.visible import in_line
from jobq_sharding import router

SHARD_ID: Final = argument("shard_id", type=int)
LOGIN: Final = option(
    "--login",
    default="",
    envvar="JOBQ_SHARD_LOGIN",
    show_envvar=True,
    help="Login for the shards, as 'user=... password=...'; by default that of the router.",
)


@contextmanager
def routing(url: str) -> Iterator[str]:
    """Yield a router's URL, and report errors."""
    with plainly():
        yield url


def wait(words: str) -> click.Option:
    """Return the option `--wait`."""
    return option("--wait", type=Seconds(0), default=30, help=words)


def initialized(url: str, *, shards: tuple[str, ...]) -> list[str]:
    """Create or update the router."""
    return [f"the router has the shards {', '.join(map(str, router.init(url, shards)))}"]


def added(url: str, *, login: str, wait: float, **given: Any) -> list[str]:  # noqa: ANN401
    """Add a shard; return its number, and what it lacks."""
    number = router.add(url, login=login, wait=wait, **given)
    missing = router.check(url, login)
    lines = (f"{each.type} {each.name} {each.finding}" for each in missing)
    return [f"added as shard {number}; it receives new keys in {wait:g} s", *lines]


def drained(url: str, *, shard_id: int, login: str, wait: float) -> list[str]:
    """Drain a shard."""
    router.drain(url, shard_id, login, wait)
    rest = "jobq cluster list shows its jobs"
    return [f"shard {shard_id} receives no new keys in {wait:g} s; {rest}"]


def moved(url: str, *, shard_id: int, successor: int, login: str) -> list[str]:
    """Move jobs; return how many, and what is left."""
    jobs, left = router.move(url, shard_id, successor, login)
    still = (f"shard {shard_id} still has {each.count} {each.type}" for each in left)
    return [f"{jobs} jobs moved to shard {successor}", *still]


def removed(url: str, *, shard_id: int, login: str, forget_keys: bool) -> list[str]:
    """Remove a shard; return what is forgotten."""
    successor, left = router.remove(url, shard_id, login, forget_keys=forget_keys)
    forgotten = (f"forgotten: {each.count} {each.type}" for each in left)
    return [f"shard {shard_id} is removed; its ids lead to shard {successor}", *forgotten]


@click.command(params=[AS_JSON, LOGIN, DATABASE])
def check(is_json: bool, login: str, database_url: str) -> None:
    """Compare kinds, queues, endpoints, limits, schedules, settings and versions.

    Exits with 1 if the shards differ.
    """
    with plainly():
        found = router.check(database_url, login)
    if is_json:
        show_json(found)
    else:
        for each in found:
            say(in_line(f"{each.type} {each.name} {each.finding}"))
        if not found:
            say("the shards are identical")
    sys.exit(1 if found else 0)


own: Final = partial(calling, opens=routing)
lined: Final = partial(own, lines=list)
# fmt: off
cluster = group(
    "cluster",
    "Create a router for several databases, add shards, and compare them.\n\n"
    "The router (--database) is a database of PostgreSQL 15 or later with PL/Proxy.",
    lined("init", initialized,
          "Create the router and number the shards. Repeat after an upgrade of the shards.",
          option("--shard", "shards", type=Url(), multiple=True, required=True,
                 help="URL of a shard. Repeatable.")),
    lined("add", added,
          "Add the shard with the URL SHARD. It receives new keys after --wait.\n\n"
          "Its workers must run: they must serve the queues that workers of the other shards"
          " serve.",
          argument("shard", type=Url()), wait("Seconds until it receives new keys."),
          option("--without-workers", is_flag=True,
                 help="Also if no live worker there serves the queues."), LOGIN),
    lined("drain", drained,
          "Send no new keys to the shard SHARD_ID. Its jobs continue until they have ended.",
          SHARD_ID, wait("Seconds until it receives no new keys."), LOGIN),
    lined("move", moved,
          "Move waiting jobs off the drained shard SHARD_ID. Repeat it after an interruption, or to"
          " move jobs that were running.\n\nJobs keep their id, keys, times and attempts. Running"
          " jobs stay, and jobs that others refer to.",
          SHARD_ID, option("--to", "successor", type=int, required=True,
                           help="Shard that takes the jobs."), LOGIN),
    lined("remove", removed,
          "Remove the drained shard SHARD_ID, if it has no unfinished jobs and no schedules.\n\n"
          "Its finished jobs are not reachable through the cluster afterwards. The database"
          " remains.",
          SHARD_ID, option("--forget-keys", is_flag=True,
                           help="Also if idempotency keys are still valid."), LOGIN),
    own("list", router.members, "List the shards and their states.", LOGIN,
        rows=("shard_id", "url", "gets_keys", "state", "lag", "queued", "running")),
    check,
)
# fmt: on
