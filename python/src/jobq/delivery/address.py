"""Addresses: deliveries connect only to public ones, and to those that were checked.

A host is resolved once, each of its addresses is checked, and the connection goes to a
checked address: a name that resolves to another address a moment later has no chance.
Operators allow internal targets by name, address or network in JOBQ_DELIVERY_ALLOW.
"""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

__all__ = ["ALLOW", "Address", "AddressRefused", "Guard", "is_public"]

ALLOW: Final = "JOBQ_DELIVERY_ALLOW"

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# IPv6 addresses that carry an IPv4 address in their last 32 bits, or, for 6to4, after 16.
NAT64: Final = IPv6Network("64:ff9b::/96")
COMPATIBLE: Final = IPv6Network("::/96")
SIX_TO_FOUR: Final = IPv6Network("2002::/16")
# Networks for the use of one site, whatever the standard library makes of them.
LOCAL: Final = (IPv6Network("64:ff9b:1::/48"), IPv6Network("2001::/32"), IPv6Network("fec0::/10"))


class AddressRefused(Exception):  # noqa: N818 - it says what happened
    """The target's address is not public, and nobody has allowed it."""


async def system_resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, as the system resolves it.

    Raises:
        OSError: it cannot.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


@dataclass(frozen=True, slots=True)
class Guard:
    """What deliveries may connect to.

    Attributes:
        networks: allowed although they are not public.
        hosts: names that are allowed wherever they lead, with or without ``:port``.
        resolve: returns the addresses of a host.
    """

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    resolve: Callable[[str, int], Awaitable[list[str]]] = field(default=system_resolve)

    @classmethod
    def allowing(cls, text: str) -> Guard:
        """Make a guard of a list such as ``10.0.0.0/8, hooks.internal, localhost:8080``."""
        networks: list[Network] = []
        hosts: set[str] = set()
        for entry in text.replace(",", " ").split():
            try:
                networks.append(ip_network(entry, strict=False))
            except ValueError:
                hosts.add(entry.lower())
        return cls(tuple(networks), frozenset(hosts))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Guard:
        """Make a guard of what JOBQ_DELIVERY_ALLOW allows."""
        return cls.allowing(environment.get(ALLOW, ""))

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses to connect to, each of them checked.

        Args:
            host: a name or an address, in any notation that the system reads.
            port: the port.

        Raises:
            AddressRefused: one of them is not public, and not allowed.
            OSError: the host cannot be resolved.
        """
        found = await self.resolve(host, port)
        name = host.lower().rstrip(".")
        if not self.hosts.isdisjoint({name, f"{name}:{port}"}):
            return found
        for text in found:
            address = ip_address(text.partition("%")[0])
            if not is_public(address) and not any(address in n for n in self.networks):
                raise AddressRefused("the target's address is not public")
        return found


def is_public(address: Address) -> bool:
    """Tell whether an address, and one that it carries, can be anybody's in the internet."""
    if isinstance(address, IPv6Address):
        carried = carried_by(address)
        if carried is not None:
            return is_public(carried)
        if any(address in network for network in LOCAL):
            return False
    return address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or address.is_loopback
        or address.is_link_local
    )


def carried_by(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address stands for."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in NAT64 or (address in COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address in SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & 0xFFFFFFFF)
    return None
