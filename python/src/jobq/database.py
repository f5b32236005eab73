"""How connections are opened: named, and quick to notice that the other end is gone."""

from __future__ import annotations

import inspect
import logging
import select
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import psycopg
from psycopg import AsyncConnection, Connection, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from jobq.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from contextlib import AsyncExitStack

    from psycopg.abc import AdaptContext
    from psycopg.errors import Diagnostic

T = TypeVar("T")

logger = logging.getLogger("jobq.client")

# A peer that is gone is noticed within 10 seconds: while data is under way by the user
# timeout (milliseconds), else by keepalives (seconds: 4 + 2 * 2).
_PATIENCE: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 8000,
}

# The same at the server's end, so that it lets go of what a lost client holds; and in the
# middle of a statement, a wait for a lock above all, it looks for its client every 5 s.
_SERVER_PATIENCE: Final = (
    "-c tcp_keepalives_idle=4 -c tcp_keepalives_interval=2 "
    "-c tcp_keepalives_count=2 -c tcp_user_timeout=8000 "
    "-c client_connection_check_interval=5000"
)

# jobq's own calls need no more isolation, and are spared the serialization failures of the
# levels above; they read times and intervals, and write strings, as is the default, and hear
# the server's warnings. A handler's connection has the database's settings.
OWN_CALLS: Final = (
    r"-c default_transaction_isolation=read\ committed -c datestyle=ISO -c intervalstyle=postgres "
    "-c standard_conforming_strings=on -c client_min_messages=warning"
)


def conninfo(url: str, name: str, *, is_pooled: bool = False, is_handler: bool = False) -> str:
    """Return a connection string that says who connects and how patiently.

    What the URL says itself is kept, but for the settings that jobq's own calls depend on.

    Args:
        url: a libpq URL or connection string; may be empty, for libpq's environment.
        name: the application_name.
        is_pooled: whether a pooler is in between, which does not take server settings.
        is_handler: whether a handler will use it, and not jobq's own calls alone.
    """
    given = conninfo_to_dict(url)
    parameters = {"application_name": name, **_PATIENCE, **given}
    if not is_handler:
        parameters["client_encoding"] = "UTF8"
    if not is_pooled:
        own = "" if is_handler else OWN_CALLS
        options = f"{_SERVER_PATIENCE} {given.get('options') or ''} {own}"
        parameters["options"] = options.strip()
    return make_conninfo("", **parameters)


@contextmanager
def confirmed(connection: Connection[Any] | AsyncConnection[Any]) -> Iterator[None]:
    """Take a commit that no standby has confirmed as one whose outcome is not known.

    A commit whose wait for a synchronous standby is cancelled ends as if all were well,
    with a warning; a failover may take it back.

    Raises:
        DatabaseUnavailable: there was such a warning.
    """
    states: list[str | None] = []

    def heed(notice: Diagnostic) -> None:
        states.append(notice.sqlstate)

    connection.add_notice_handler(heed)
    try:
        yield
    finally:
        connection.remove_notice_handler(heed)
    if "01000" in states:
        raise DatabaseUnavailable("the commit is not confirmed by a standby", sqlstate="01000")


@contextmanager
def renewed(connection: Connection[Any] | AsyncConnection[Any]) -> Iterator[None]:
    """Close a connection of ours that may only read, so that another is opened.

    It would stay so: its session has the setting that a database had when it began, or its
    server has become a standby.
    """
    try:
        yield
    except errors.ReadOnlySqlTransaction:
        connection.pgconn.finish()
        raise


def use_json(context: AdaptContext) -> None:
    """Read JSON with msgspec, several times as fast as the standard library."""
    set_json_loads(msgspec.json.decode, context)


async def use_json_async(connection: AsyncConnection[Any]) -> None:
    """Configure a connection of an asynchronous pool as `use_json` does."""
    use_json(connection)


def configure(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    """Configure a connection for a client: as `use_json` does, and log the warnings of jobq."""
    use_json(connection)
    connection.add_notice_handler(_log_warning)


async def configure_async(connection: AsyncConnection[Any]) -> None:
    """Configure a connection of an asynchronous pool as `configure` does."""
    configure(connection)


def _log_warning(notice: Diagnostic) -> None:
    if (notice.sqlstate or "").startswith("JQ"):
        logger.warning("%s (%s)", notice.message_primary, notice.message_detail)


# What clients and pools do is written once, as coroutines. With blocking calls, they never suspend.


async def awaited(answer: Any) -> Any:  # noqa: ANN401 - whatever was called
    """Return the result of a call, or of what it returned to be awaited."""
    return await answer if inspect.isawaitable(answer) else answer


async def entered(stack: AsyncExitStack, context: Any) -> Any:  # noqa: ANN401 - of either sort
    """Enter a context, until the end of the stack."""
    if hasattr(context, "__aenter__"):
        return await stack.enter_async_context(context)
    return stack.enter_context(context)


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in which nothing suspends.

    Raises:
        RuntimeError: something did.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coroutine.close()
    raise RuntimeError("a call that waits has suspended")


# A pool looks before it hands a connection out. A round trip would cost every call one; but a
# server that has closed a connection has said so, and what it said has not been read. A server
# that ends closes all of them, so those are passed over at once: psycopg's own `check` pauses
# for longer after each, and calls would fail long after the server is back.


class Pool(ConnectionPool[Connection[Any]]):
    """A pool that hands out no connection that the server has closed."""

    def getconn(self, timeout: float | None = None) -> Connection[Any]:
        """Return a connection that is open as far as is known here."""
        return finished(_open_connection(self, super().getconn, timeout))


class AsyncPool(AsyncConnectionPool[AsyncConnection[Any]]):
    """The same of asynchronous connections."""

    async def getconn(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as in the base class
    ) -> AsyncConnection[Any]:
        """Return a connection that is open as far as is known here."""
        connection: AsyncConnection[Any] = await _open_connection(self, super().getconn, timeout)
        return connection


async def _open_connection(
    pool: Pool | AsyncPool, getconn: Callable[[float], Any], patience: float | None
) -> Any:  # noqa: ANN401 - the pool's sort of connection
    deadline = time.monotonic() + (pool.timeout if patience is None else patience)
    while True:
        try:
            connection = await awaited(getconn(deadline - time.monotonic()))
        except PoolTimeout as error:
            try:
                reached = await awaited(pool.connection_class.connect(str(pool.conninfo)))
            except psycopg.Error as reason:  # which the pool only logs
                raise reason from error
            await awaited(reached.close())
            raise
        try:
            if _has_something_to_say(connection):
                await awaited(pool.check_connection(connection))
        except BaseException as error:
            await awaited(pool.putconn(connection))
            if not isinstance(error, psycopg.Error):
                raise
        else:
            return connection


def _has_something_to_say(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
