"""How a console behaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Where the server mounts the console.
PATH: Final = "/console"

# What the console asks for ends after this: a page that would load the database is refused.
PATIENCE: Final = 2.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that says who its users are.

    Attributes:
        header: the header that names the user; heeded from the server's known proxies alone.
        scopes: what its users may do, some of read and operate.
    """

    header: str
    scopes: tuple[str, ...] = ("read",)


@dataclass(frozen=True, slots=True)
class Options:
    """How a console behaves.

    Attributes:
        pool_size: at most as many connections for each role that it acts as.
        hides_payloads: whether payloads, results, metadata and log lines stay unseen.
        proxy: who else says who a user is, if somebody does.
        longest: seconds until a session ends, whatever happens in it.
        idle: seconds after which a session ends in which nothing happens.
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
        """The console's path as browsers know it."""
        return self.prefix + PATH
