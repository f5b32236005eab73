"""`jobq cluster`: several databases as one queue."""

from __future__ import annotations

import sys

import click

from jobq_cli.parameters import AS_JSON, DATABASE, Seconds, Url, argument, option
from jobq_cli.terminal import plainly, say, show_json, show_rows
from jobq_sharding import router

MEMBER = ("shard_id", "url", "gets_keys", "state", "lag", "queued", "running")
SHARDS = option(
    "--shard",
    "shards",
    type=Url(),
    multiple=True,
    required=True,
    help="URL of a shard. Repeatable.",
)
LOGIN = option(
    "--login",
    default="",
    envvar="JOBQ_SHARD_LOGIN",
    show_envvar=True,
    help="Login for the shards, as 'user=... password=...'; by default that of the router.",
)


@click.group()
def cluster() -> None:
    """Create a router for several databases, add shards, and compare them.

    The router (--database) is a database of PostgreSQL 15 or later with PL/Proxy.
    """


@cluster.command(params=[SHARDS, DATABASE])
def init(shards: tuple[str, ...], database_url: str) -> None:
    """Create the router and number the shards. Repeat after an upgrade of the shards."""
    with plainly():
        numbers = router.init(database_url, shards)
    say(f"the router has the shards {', '.join(map(str, numbers))}")


@cluster.command(
    params=[
        argument("shard", type=Url()),
        option("--wait", type=Seconds(0), default=30, help="Seconds until it receives new keys."),
        option(
            "--without-workers",
            is_flag=True,
            help="Also if no live worker there serves the queues.",
        ),
        LOGIN,
        DATABASE,
    ]
)
def add(shard: str, wait: float, without_workers: bool, login: str, database_url: str) -> None:
    """Add the shard with the URL SHARD. It receives new keys after --wait.

    Its workers must run: they must serve the queues that workers of the other shards serve.
    """
    with plainly():
        number = router.add(database_url, shard, login, wait, without_workers=without_workers)
        missing = router.check(database_url, login)
    say(f"added as shard {number}; it receives new keys in {wait:g} s")
    for each in missing:
        say(f"{each.type} {each.name} {each.finding}")


@cluster.command(
    params=[
        argument("shard_id", type=int),
        option(
            "--wait", type=Seconds(0), default=30, help="Seconds until it receives no new keys."
        ),
        LOGIN,
        DATABASE,
    ]
)
def drain(shard_id: int, wait: float, login: str, database_url: str) -> None:
    """Send no new keys to the shard SHARD_ID. Its jobs continue until they have ended."""
    with plainly():
        router.drain(database_url, shard_id, login, wait)
    say(f"shard {shard_id} receives no new keys in {wait:g} s; jobq cluster list shows its jobs")


@cluster.command(
    params=[
        argument("shard_id", type=int),
        option("--to", "successor", type=int, required=True, help="Shard that takes the jobs."),
        LOGIN,
        DATABASE,
    ]
)
def move(shard_id: int, successor: int, login: str, database_url: str) -> None:
    """Move waiting jobs off the drained shard SHARD_ID. Repeat after an interruption, or for more.

    Jobs keep their id, keys, times and attempts. Running jobs stay, and jobs that others refer to.
    """
    with plainly():
        moved, left = router.move(database_url, shard_id, successor, login)
    say(f"{moved} jobs moved to shard {successor}")
    for each in left:
        say(f"shard {shard_id} still has {each.count} {each.type}")


@cluster.command(
    params=[
        argument("shard_id", type=int),
        option("--forget-keys", is_flag=True, help="Also if idempotency keys are still valid."),
        LOGIN,
        DATABASE,
    ]
)
def remove(shard_id: int, forget_keys: bool, login: str, database_url: str) -> None:
    """Remove the drained shard SHARD_ID, if it has no unfinished jobs and no schedules.

    Its finished jobs are not reachable through the cluster afterwards. The database remains.
    """
    with plainly():
        successor, left = router.remove(database_url, shard_id, login, forget_keys=forget_keys)
    say(f"shard {shard_id} is removed; its ids lead to shard {successor}")
    for each in left:
        say(f"forgotten: {each.count} {each.type}")


@cluster.command("list", params=[AS_JSON, LOGIN, DATABASE])
def list_(is_json: bool, login: str, database_url: str) -> None:
    """List the shards and their states."""
    with plainly():
        found = router.members(database_url, login)
    show_rows(found, MEMBER, is_json=is_json)


@cluster.command(params=[AS_JSON, LOGIN, DATABASE])
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
            say(f"{each.type} {each.name} {each.finding}")
        if not found:
            say("the shards are identical")
    sys.exit(1 if found else 0)
