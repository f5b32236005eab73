"""Whether the queue and the repo can be used, for /ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jobq_operations.reachability import ready

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
    url = client.conninfo
    if url is None:
        raise TypeError("a ping needs a client that was made of a URL")
    queue, repo = ready(url)
    return Ping(queue if part == "queue" else repo)
