"""Whether the queue and the repo can be used, for /ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jobq.call import Call
from jobq.errors import JobqError, NotPermitted

if TYPE_CHECKING:
    from jobq.client import Client

__all__ = ["Ping", "ping_of"]


@dataclass(frozen=True, slots=True)
class Ping:
    """``ok``, or ``error(reason)``."""

    text: str

    @property
    def is_ok(self) -> bool:
        """Whether it is ok."""
        return self.text == "ok"


def ping_of(client: Client, part: Literal["queue", "repo"]) -> Ping:
    """Ask the database about one of the two."""
    place = ("queue", "repo").index(part)
    try:
        return Ping(client.run(Call("ready", {}, lambda rows: str(rows[0][place]))))
    except JobqError as error:
        return Ping(f"error({_reason(error)})")


def _reason(error: JobqError) -> str:
    """Return why in a word; never an address or a user."""
    if isinstance(error, NotPermitted):
        return "auth_failed"
    words = str(error).lower()
    if "resolve" in words or "name or service" in words:
        return "dns_error"
    return "timeout" if "timeout" in words or "couldn't get" in words else "unreachable"
