"""Headers of trusted proxies: the client's address, and whether it used TLS."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class Proxies:
    """Uses X-Forwarded-For and X-Forwarded-Proto, but only from given networks.

    Args:
        app: the application; in its scope, `jobq.is_proxied` is whether a proxy sent the request.
        networks: networks of the proxies.

    Raises:
        ValueError: one is not a network.
    """

    def __init__(self, app: ASGIApp, networks: Sequence[str]) -> None:
        self._networks = [ipaddress.ip_network(network) for network in networks]
        heeding: Any = ProxyHeadersMiddleware
        self._heed: ASGIApp = heeding(app, [str(network) for network in self._networks])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its client's address and scheme."""
        if scope["type"] == "http":
            scope["jobq.is_proxied"] = self._are_at((scope.get("client") or ("",))[0])
        await self._heed(scope, receive, send)

    def _are_at(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)
