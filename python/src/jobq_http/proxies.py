"""Headers of trusted proxies: the client's address, and whether it used TLS."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class Proxies(ProxyHeadersMiddleware):
    """Uses X-Forwarded-For and X-Forwarded-Proto, but only from given networks.

    In the application's scope, `jobq.is_proxied` is whether a proxy sent the request.
    """

    def __init__(self, app: Any, networks: Sequence[str]) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(app, [str(ip_network(network)) for network in networks])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        """Pass a request on with its client's address and scheme."""
        scope["jobq.is_proxied"] = (scope.get("client") or ("",))[0] in self.trusted_hosts
        await super().__call__(scope, receive, send)
