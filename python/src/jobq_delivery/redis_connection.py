"""Connections to Redis: only to checked addresses, with URLs without other settings.

The size of replies is limited: expected ones have some hundred bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from redis._parsers import _AsyncRESP2Parser
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import (
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
    parse_url,
)
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import InvalidResponse

from jobq_delivery.address import Guard

CONNECTIONS: Final = 20
CONNECT_SECONDS: Final = 5
MOST_BYTES: Final = 65_536
MOST_VALUES: Final = 16
SETTINGS: Final = frozenset(
    "host port path db username password client_name health_check_interval".split()
)


class _Parser(_AsyncRESP2Parser):
    """Reads replies; refuses one that is too large or invalid."""

    _values = 0

    async def read_response(self, disable_decoding: bool = False) -> Any:  # noqa: ANN401 - redis's
        self._values = 0
        try:
            return await super().read_response(disable_decoding)
        except (ValueError, LookupError, TypeError) as error:  # what redis reads nonsense as
            raise InvalidResponse(str(error)) from None

    async def _read_response(self, disable_decoding: bool = False) -> Any:  # noqa: ANN401 - redis's
        self._values += 1
        if self._values > MOST_VALUES:
            raise InvalidResponse("the reply has too many values")
        return await super()._read_response(disable_decoding)

    async def _read(self, length: int) -> bytes:
        if not 0 <= length <= MOST_BYTES:
            raise InvalidResponse("the reply is too long")
        return await super()._read(length)  # type: ignore[no-any-return, no-untyped-call, unused-ignore]


class _Guarded(Connection):
    """A connection to a checked address of a host."""

    def __init__(self, *, guard: Guard, **settings: Any) -> None:  # noqa: ANN401 - redis's
        super().__init__(**settings)
        self._guard = guard
        self._address = self.host

    async def _connect(self) -> None:
        failure: OSError = OSError("the host has no address")
        for address in await self._guard.addresses(self.host, self.port):
            self._address = address
            try:
                await super()._connect()  # type: ignore[no-untyped-call]
            except OSError as error:
                failure = error
            else:
                return
        raise failure

    def _connection_arguments(self) -> Mapping[str, Any]:
        arguments = {**super()._connection_arguments(), "host": self._address}
        if "ssl" in arguments:
            arguments["server_hostname"] = self.host
        return arguments


class _GuardedTls(_Guarded, SSLConnection):
    """A connection to a checked address of a host, in TLS under the host's name."""


class _GuardedSocket(UnixDomainSocketConnection):
    """A connection to a socket that the operator allows."""

    def __init__(self, *, guard: Guard, **settings: Any) -> None:  # noqa: ANN401 - redis's
        super().__init__(**settings)
        self._guard = guard

    async def _connect(self) -> None:
        self._guard.check_socket(self.path)
        await super()._connect()  # type: ignore[no-untyped-call]


CLASSES: Final[dict[object, Any]] = {
    None: _Guarded,
    SSLConnection: _GuardedTls,
    UnixDomainSocketConnection: _GuardedSocket,
}


def pool_of(url: str, guard: Guard) -> BlockingConnectionPool:
    """Return the connections to a server; a ValueError if a setting of the URL is not allowed."""
    settings: dict[str, Any] = dict(parse_url(url))
    connection = CLASSES[settings.pop("connection_class", None)]
    if settings.keys() - SETTINGS:
        raise ValueError("the URL holds a setting that it may not")
    return BlockingConnectionPool(
        connection_class=connection,
        guard=guard,
        parser_class=_Parser,
        max_connections=CONNECTIONS,
        timeout=None,
        socket_connect_timeout=CONNECT_SECONDS,
        protocol=2,
        # jobq retries; a retry by the driver could add an entry twice.
        retry=Retry(NoBackoff(), 0),
        **settings,
    )
