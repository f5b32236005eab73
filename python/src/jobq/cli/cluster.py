"""Several databases that are one queue: `jobq cluster`."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from jobq import router
from jobq.cli.terminal import Seconds, Url, as_json, database, plainly, say, show_json, show_rows

__all__ = ["cluster"]

MEMBER = ("shard_id", "url", "gets_keys", "state", "lag", "queued", "running")
shards_option = click.option(
    "--shard",
    "shards",
    type=Url(),
    multiple=True,
    required=True,
    help="A shard's URL, again and again.",
)
login = click.option(
    "--login",
    default="",
    envvar="JOBQ_SHARD_LOGIN",
    show_envvar=True,
    help="Who asks the shards, as 'user=... password=...'; by default who asks the router.",
)


@click.group()
def cluster() -> None:
    """Make a router of several databases, add to them, and compare them.

    The router is a database of PostgreSQL 15 or newer with PL/Proxy, named by --database.
    """


@cluster.command()
@shards_option
@database
def init(shards: tuple[str, ...], database_url: str) -> None:
    """Make the router, and give each shard its number; again after an upgrade of the shards."""
    with plainly():
        numbers = router.init(database_url, shards)
    say(f"the router knows the shards {', '.join(map(str, numbers))}")


@cluster.command()
@click.argument("shard", type=Url())
@click.option("--wait", type=Seconds(0), default=30, help="Seconds until it gets new keys.")
@login
@database
def add(shard: str, wait: float, login: str, database_url: str) -> None:
    """Have SHARD, a URL, get new keys too, once clients and routers have learnt of it."""
    with plainly():
        number = router.add(database_url, shard, login, wait)
        missing = router.check(database_url, login)
    say(f"it is shard {number}, and gets new keys in {wait:g} s")
    for each in missing:
        say(f"{each.type} {each.name} {each.finding}")


@cluster.command("list")
@as_json
@login
@database
def list_(is_json: bool, login: str, database_url: str) -> None:
    """List the shards, and how each one stands."""
    with plainly():
        found = [asdict(member) for member in router.members(database_url, login)]
    show_rows(found, MEMBER, is_json=is_json)


@cluster.command()
@as_json
@login
@database
def check(is_json: bool, login: str, database_url: str) -> None:
    """Say where kinds, queues, endpoints, limits, schedules, settings and version differ.

    Exits with 1 if anything does.
    """
    with plainly():
        found = router.check(database_url, login)
    if is_json:
        show_json(asdict(each) for each in found)
    else:
        for each in found:
            say(f"{each.type} {each.name} {each.finding}")
        if not found:
            say("the shards agree")
    sys.exit(1 if found else 0)
