"""Keys of the HTTP API: made here, shown once, stored as SHA-256."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from jobq_http.auth import SCOPES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import psycopg

PREFIX_LENGTH = 12


def create_key(
    connection: psycopg.Connection[Any],
    name: str,
    scopes: Sequence[str] = SCOPES,
    *,
    expires_at: datetime | None = None,
    requests_per_second: int | None = None,
) -> str:
    """Make a key, store its SHA-256 in the caller's transaction, and return it.

    Args:
        connection: a connection of a user who may act as jobq_operator.
        name: what logs and lists call it; never used before.
        scopes: some of produce, work, operate and read.
        expires_at: when it stops working; None for never.
        requests_per_second: its limit; None for the server's.

    Returns:
        The key, 256 random bits, which cannot be shown again.

    Raises:
        psycopg.Error: the name is taken (JQ004), or an argument refused (22023).
    """
    key = f"jobq_{secrets.token_urlsafe(32)}"
    connection.execute(
        "select jobq_http.create_api_key("
        "%(name)s, %(key_hash)s, %(prefix)s, %(scopes)s, %(expires_at)s, %(rate)s)",
        {
            "name": name,
            "key_hash": hashlib.sha256(key.encode()).digest(),
            "prefix": key[:PREFIX_LENGTH],
            "scopes": list(scopes),
            "expires_at": expires_at,
            "rate": requests_per_second,
        },
    )
    return key
