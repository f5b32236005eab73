"""Settings of the console."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Where the server mounts the console.
PATH: Final = "/console"

# Timeout of the console's queries, so that no page can load the database.
PATIENCE: Final = 2.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that authenticates users.

    Attributes:
        header: the header with the user's name; used only from known proxies.
        scopes: the scopes of its users: read, operate or both.
    """

    header: str
    scopes: tuple[str, ...] = ("read",)


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the console.

    Attributes:
        pool_size: maximum number of connections per role.
        hides_payloads: whether to hide payloads, results, metadata and log lines.
        proxy: the proxy that authenticates users, if any.
        longest: maximum duration of a session in seconds.
        idle: seconds without a request after which a session ends.
        prefix: the path under which a proxy serves this server, such as "/jobs"; the proxy removes
            it from requests, and the console adds it to its links.
    """

    pool_size: int = 4
    hides_payloads: bool = False
    proxy: Proxy | None = None
    longest: float = 12 * 3600.0
    idle: float = 2 * 3600.0
    prefix: str = ""

    @property
    def base(self) -> str:
        """The console's path in browsers, including the prefix."""
        return self.prefix + PATH
