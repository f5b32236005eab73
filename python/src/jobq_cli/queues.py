"""Commands for queues, kinds, workers and grants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final, get_args

import click

from jobq.calls.options import CommonOptions, KindOptions, LimitOptions
from jobq.client import Client
from jobq.errors import NotFound
from jobq.models import DeclaredKind, DeclaredQueue, Privilege, QueueStats
from jobq_cli.declared import calling, group
from jobq_cli.parameters import AS_JSON, DATABASE, argument, option, options_of, reason
from jobq_cli.terminal import asking, plain, say, show_json, show_rows, show_table

QUEUE: Final = argument("queue")
ONE_QUEUE: Final = argument("queue", required=False)
KIND: Final = argument("kind")
GRANT: Final = (
    argument("grantee", metavar="ROLE"),
    QUEUE,
    argument("privilege", type=click.Choice(get_args(Privilege))),
)

NESTED: Final = "repeat the option for the path of a nested member"


@click.command(
    params=[
        option("--declared", "is_declared", is_flag=True, help="Show the declarations instead."),
        AS_JSON,
        DATABASE,
    ]
)
def queues(is_declared: bool, is_json: bool, database_url: str) -> None:
    """Show statistics of each queue."""
    with asking(database_url) as client:
        if is_declared:
            show_declared(client.list_queues(), "queue", is_json=is_json)
            return
        found = [asdict(queue) for queue in sickest_first(client.queue_stats())]
    show_rows(found, list(found[0]) if found else ["queue"], is_json=is_json)


@click.command(params=[AS_JSON, DATABASE])
def kinds(is_json: bool, database_url: str) -> None:
    """List the declared kinds, with the settings, limits and pauses that they have."""
    with asking(database_url) as client:
        show_declared(client.list_kinds(), "kind", is_json=is_json)


def show_declared(
    found: Sequence[DeclaredKind] | Sequence[DeclaredQueue], first: str, *, is_json: bool
) -> None:
    """Print declarations; in a table without payload schemas and what none of them sets."""
    rows = [asdict(each) for each in found]
    names = [name for name in (rows or [{}])[0] if any(row[name] is not None for row in rows)]
    names = [name for name in names if name != "payload_schema"]
    show_rows(rows, names or [first], is_json=is_json)


def sickest_first(found: Iterable[QueueStats]) -> list[QueueStats]:
    """Sort queues by the longest wait, then by the number of dead jobs."""
    waited = timedelta()
    return sorted(
        found, key=lambda q: (-(q.oldest_runnable or waited), -q.dead, -q.queued, q.queue)
    )


def one_of(queue: str | None, kind: str | None) -> None:
    """Check that a queue or a kind is given."""
    if (queue is None) == (kind is None):
        raise click.UsageError("pass a QUEUE or --kind")


def pause_known(
    client: Client, *, queue: str | None, kind: str | None, reason: str | None, is_new: bool
) -> None:
    """Pause a queue or a kind. Refuse a queue, and warn of a kind, that is not known."""
    one_of(queue, kind)
    if kind is not None:
        is_declared = any(each.kind == kind for each in client.list_kinds())
        if not is_declared and not client.list_jobs(kind=kind, max_jobs=1):
            say(f"warning: kind {kind} is not declared and has no recent jobs", err=True)
        client.pause_kind(kind, reason)
        return
    known = {"*", "default", *(stats.queue for stats in client.queue_stats())}
    if not is_new and queue not in known:
        raise NotFound(
            "queue not found",
            code="QUEUE_NOT_FOUND",
            detail=f"queue {queue}",
            hint="check the name: jobq queues; to pause a queue before its first job, pass --new",
        )
    client.pause(str(queue), reason)


def resume_one(client: Client, *, queue: str | None, kind: str | None) -> None:
    """Resume a queue or a kind."""
    one_of(queue, kind)
    if kind is not None:
        client.resume_kind(kind)
    else:
        client.resume(str(queue))


@click.command(
    params=[
        argument("kind", required=False),
        option("--queue", help="Queue.  [default: the kind's queue]"),
        AS_JSON,
        DATABASE,
    ]
)
def settings(kind: str | None, queue: str | None, is_json: bool, database_url: str) -> None:
    """Show the effective settings of KIND: from the kind, the queue or the defaults."""
    with asking(database_url) as client:
        found = client.settings(kind, queue)
    if is_json:
        show_json([found])
    else:
        show_table((), [(name, plain(found[name])) for name in sorted(found)])


def put_kind(client: Client, *, kind: str, **options: Any) -> None:  # noqa: ANN401
    """Declare a kind; an option for a list that is not given is an empty tuple."""
    client.put_kind(kind, **{name: value for name, value in options.items() if value != ()})


def names_of(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path of names, without the syntax of arrays in SQL or JSON."""
    for name in given:
        if set(name) & set("{}[],"):
            raise click.BadParameter(f"{name!r} is not a name, such as user_id; {NESTED}")
    return given


def path_option(flag: str, words: str) -> click.Option:
    """Return an option that is a path in the payload."""
    return option(flag, multiple=True, callback=names_of, metavar="NAME", help=f"{words} {NESTED}.")


# fmt: off
pause = calling(
    "pause", pause_known, "Pause QUEUE, or all queues ('*'). Running jobs continue.",
    ONE_QUEUE, option("--kind", help="Pause the jobs of this kind instead, in all queues."),
    reason(),
    option("--new", "is_new", is_flag=True, help="Also if the queue is neither declared nor used."))
resume = calling(
    "resume", resume_one, "Resume QUEUE; '*' ends a pause of all queues.",
    ONE_QUEUE, option("--kind", help="Resume the jobs of this kind."))
workers = calling(
    "workers", "list_workers", "List workers and their jobs.",
    rows=("worker", "queues", "is_live", "seen_at", "jobs", "release", "except_kinds"))
declare = calling(
    "declare", put_kind,
    "Declare KIND, replacing its declaration. Omitted options get their defaults.",
    KIND, *options_of(
        LimitOptions, CommonOptions, KindOptions, but=("concurrency_key", "cost", "dedup_key")),
    path_option("--concurrency-key",
                "Member of the payload with the concurrency key, such as customer_id;"),
    path_option("--cost", "Member of the payload with the cost, such as tokens;"),
    path_option("--dedup-key", "Member of the payload with the dedup key, such as user_id;"
                " for several members, or the whole payload, use SQL or Python;"))
delete_kind = calling(
    "delete-kind", "delete_kind",
    "Delete the declaration of KIND. It must have no live jobs and schedules.", KIND)
grants = group(
    "grants", "Manage which roles may use which queues. Only the owner may change grants.",
    calling("list", "list_queue_grants", "List the grants.",
            rows=("grantee", "queue", "privilege")),
    calling("grant", "grant_queue",
            "Let ROLE enqueue to or work QUEUE ('*' for all).", *GRANT),
    calling("revoke", "revoke_queue", "Remove a grant.", *GRANT),
    calling("enforce", "enforce_queue_grants", "Restrict every login to the queues granted to it.",
            option("--off", "enforced", is_flag=True,
                   callback=lambda _context, _parameter, is_off: not is_off,
                   help="Stop enforcing: all roles may use all queues.")),
)
# fmt: on
