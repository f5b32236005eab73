"""Addresses: deliveries connect only to checked, public addresses.

A host is resolved once, each of its addresses is checked, and the connection goes to a
checked address. So a name cannot resolve to another address after the check.
Operators allow internal targets by name, address, network or socket in JOBQ_DELIVERY_ALLOW,
or everything by ``*``. The rules apply to HTTP, Redis and Kafka.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

from jobq.errors import InvalidArgument

logger = logging.getLogger("jobq.delivery")

ALLOW: Final = "JOBQ_DELIVERY_ALLOW"

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# IANA's registries of special-purpose addresses, as of 2025, including globally reachable ones,
# and multicast. The library's `is_global` has fewer, depending on Python's version.
SPECIAL_IPV4: Final = tuple(
    IPv4Network(text)
    for text in """0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12
    192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16
    192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
    240.0.0.0/4""".split()
)
SPECIAL_IPV6: Final = tuple(
    IPv6Network(text)
    for text in """::/128 ::1/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001:db8::/32
    2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8""".split()
)
GLOBAL_IPV6: Final = IPv6Network("2000::/3")
# IPv6 addresses that carry an IPv4 address in their last 32 bits, or, for 6to4, after 16.
NAT64: Final = IPv6Network("64:ff9b::/96")
COMPATIBLE: Final = IPv6Network("::/96")
SIX_TO_FOUR: Final = IPv6Network("2002::/16")
EVERYTHING: Final = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))
SOCKET: Final = "unix:"
HOST: Final = re.compile(r"(?P<name>[\w-]+(?:\.[\w-]+)*)\.?(?P<port>:[0-9]{1,5})?")
LAST_PORT: Final = 65_535

# A lookup without an answer occupies a thread for seconds, and the event loop has few.
_LOOKUPS: Final = ThreadPoolExecutor(64, "jobq lookup")


class AddressRefused(Exception):  # noqa: N818 - it says what happened
    """The target's address is not public and not allowed."""


async def system_resolve(host: str, port: int) -> list[str]:
    """Resolve a host with the system's resolver."""
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        found = await asyncio.get_running_loop().run_in_executor(_LOOKUPS, look_up)
    except UnicodeError as error:
        raise OSError("the host is no name") from error
    return [str(entry[4][0]) for entry in found]


@dataclass(frozen=True, slots=True)
class Guard:
    """The addresses that deliveries may connect to.

    Attributes:
        networks: allowed networks that are not public.
        hosts: names that are allowed regardless of their addresses, with or without ``:port``.
        resolve: returns the addresses of a host.
        sockets: paths of UNIX sockets that are allowed; an empty one allows all.
    """

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    resolve: Callable[[str, int], Awaitable[list[str]]] = field(default=system_resolve)
    sockets: frozenset[str] = frozenset()
    _lookups: dict[str, asyncio.Future[list[str]]] = field(
        default_factory=dict, init=False, compare=False
    )

    @classmethod
    def allowing(cls, text: str) -> Guard:
        """Create a guard from a list such as ``10.0.0.0/8, hooks.internal, localhost:8080``.

        Raises:
            InvalidArgument: an entry is not a network, host or socket.
        """
        networks: list[Network] = []
        hosts: set[str] = set()
        sockets: set[str] = set()
        for entry in text.replace(",", " ").split():
            if entry == "*":
                logger.warning("deliveries may connect to every address")
                networks += EVERYTHING
                sockets.add("")
            elif entry.startswith(SOCKET):
                sockets.add(socket_of(entry))
            else:
                try:
                    networks.append(ip_network(entry, strict=False))
                except ValueError:
                    hosts.add(host_of(entry))
        return cls(tuple(networks), frozenset(hosts), sockets=frozenset(sockets))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Guard:
        """Create a guard from JOBQ_DELIVERY_ALLOW, as `allowing` does."""
        return cls.allowing(environment.get(ALLOW, ""))

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the checked addresses of a host: a name or an address in any notation.

        Raises:
            AddressRefused: one of them is not public and not allowed.
            OSError: the host cannot be resolved.
        """
        # Once for all deliveries: a lookup without an answer occupies a thread.
        name = ascii_of(host)
        lookup = self._lookups.get(name)
        if lookup is None:
            lookup = self._lookups[name] = asyncio.ensure_future(self.resolve(host, port))
            lookup.add_done_callback(partial(self._end, name))
        found = await asyncio.shield(lookup)
        if not self.hosts.isdisjoint({name, f"{name}:{port}"}):
            return found
        for text in found:
            address = ip_address(text.partition("%")[0])
            if not is_public(address) and not any(address in n for n in self.networks):
                raise AddressRefused(
                    "the target's address is neither public nor in JOBQ_DELIVERY_ALLOW"
                )
        return found

    def _end(self, name: str, lookup: asyncio.Future[list[str]]) -> None:
        del self._lookups[name]
        if not lookup.cancelled():
            lookup.exception()  # all who waited may have given up, and asyncio would log it

    def check_socket(self, path: str) -> None:
        """Check that a UNIX socket is allowed, or raise AddressRefused."""
        if self.sockets.isdisjoint({"", path}):
            raise AddressRefused("the target is a socket of the worker's machine")


def host_of(entry: str) -> str:
    """Parse an allowed host, with or without a port."""
    found = HOST.fullmatch(entry)
    port = (found["port"] or "") if found else ""
    if found is None or int(port[1:] or 0) > LAST_PORT:
        raise InvalidArgument(
            "what deliveries may connect to must be networks, hosts and host:port",
            detail=f"{ALLOW} {entry}",
        )
    return f"{ascii_of(found['name'])}{port}"


def ascii_of(host: str) -> str:
    """Return a host as DNS has it: in lower case, without a final dot, not ASCII as xn--."""
    name = host.lower().rstrip(".")
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return name


def socket_of(entry: str) -> str:
    """Parse the path of an allowed UNIX socket; an empty path allows all."""
    path = entry.removeprefix(SOCKET)
    if path and (not path.startswith("/") or path != os.path.normpath(path)):
        raise InvalidArgument(
            "a socket that deliveries may connect to must be a whole path without detours",
            detail=f"{ALLOW} {entry}",
        )
    return path


def is_public(address: Address) -> bool:
    """Return whether an address is public, including an IPv4 address embedded in it."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in SPECIAL_IPV4)
    carried = carried_by(address)
    if carried is not None:
        return is_public(carried)
    return address in GLOBAL_IPV6 and not any(address in network for network in SPECIAL_IPV6)


def carried_by(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in NAT64 or (address in COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address in SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & 0xFFFFFFFF)
    return None
