"""`jobq keys`: keys of the HTTP API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import click
import psycopg
from psycopg.rows import dict_row

from jobq.calls.call import Call, nothing
from jobq.client import Client
from jobq.database import conninfo
from jobq.errors import translate
from jobq_cli.declared import calling, group
from jobq_cli.parameters import DATABASE, argument, option
from jobq_cli.terminal import plainly, say
from jobq_http.auth import SCOPES, create_key

COLUMNS = (
    "name", "prefix", "scopes", "requests_per_second", "created_at", "expires_at", "revoked_at",
    "last_used_at",
)  # fmt: skip


@click.command(
    params=[
        argument("name"),
        option("--scope", "scopes", multiple=True, required=True, type=click.Choice(SCOPES),
               help="Scope of the key. Repeatable."),
        option("--days", type=click.IntRange(1, 36_500), help="Days until it expires."),
        option("--requests-per-second", type=click.IntRange(1, 2**31 - 1),
               help="Rate limit of the key."),
        DATABASE,
    ]
)  # fmt: skip
def create(*, days: int | None, database_url: str, **given: Any) -> None:  # noqa: ANN401
    """Create the key NAME and print it. It is not shown again."""
    expires_at = datetime.now(UTC) + timedelta(days=days) if days else None
    with plainly(), translate(), psycopg.connect(conninfo(database_url, "jobq")) as connection:
        key = create_key(connection, expires_at=expires_at, **given)
    say(key)


def revoked(client: Client, *, name: str) -> list[str]:
    """Revoke a key."""
    client.run(Call("jobq_http.revoke_api_key", {"name": name}, nothing))
    return [f"{name} is revoked; servers refuse it within 5 seconds"]


# fmt: off
keys = group(
    "keys", "Manage the keys of the HTTP API.", create,
    calling("list", lambda client: client.run(Call("jobq_http.list_api_keys", {}, list, dict_row)),
            "List keys with their prefix, scopes and last use.", rows=COLUMNS),
    calling("revoke", revoked, "Invalidate the key NAME.", argument("name"), lines=list),
)
# fmt: on
