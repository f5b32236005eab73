"""Opens connections that have a name and detect a lost peer quickly."""

from __future__ import annotations

import asyncio
import inspect
import logging
import select
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Final, TypeVar

import msgspec
import psycopg
from psycopg import AsyncConnection, Connection, errors
from psycopg.abc import AdaptContext
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import Diagnostic
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from jobq.errors import DatabaseUnavailable

T = TypeVar("T")

logger = logging.getLogger("jobq.client")

# Detects a lost peer within 10 seconds: while data is in flight by the user timeout
# (milliseconds), else by keepalives (seconds: 4 + 2 * 2).
_PATIENCE: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 8000,
}

# The same for the server, so that it releases what a lost client holds. During a statement,
# above all a wait for a lock, it checks its client every 5 s.
_SERVER_PATIENCE: Final = (
    "-c tcp_keepalives_idle=4 -c tcp_keepalives_interval=2 "
    "-c tcp_keepalives_count=2 -c tcp_user_timeout=8000 "
    "-c client_connection_check_interval=5000"
)

# jobq's own calls need no stricter isolation, so they avoid serialization failures. They read
# times and intervals, and write strings, in the default styles, and need the server's warnings.
OWN_CALLS: Final = (
    r"-c default_transaction_isolation=read\ committed -c datestyle=ISO -c intervalstyle=postgres "
    "-c standard_conforming_strings=on -c client_min_messages=warning"
)


def conninfo(url: str, name: str, *, is_pooled: bool = False, is_handler: bool = False) -> str:
    """Return a connection string with a name, timeouts and settings.

    Parameters of the URL take precedence, except settings that jobq's own calls depend on. A pooler
    allows no server settings. A handler's connection has those of the database.
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
    """Raise DatabaseUnavailable if no standby has confirmed a commit: its outcome is unknown.

    If the wait for a synchronous standby is cancelled, the commit succeeds with a warning, but a
    failover may undo it.
    """
    states: list[str | None] = []

    def note(notice: Diagnostic) -> None:
        states.append(notice.sqlstate)

    connection.add_notice_handler(note)
    try:
        yield
    finally:
        connection.remove_notice_handler(note)
    if "01000" in states:
        raise DatabaseUnavailable("the commit is not confirmed by a standby", sqlstate="01000")


@contextmanager
def renewed(connection: Connection[Any] | AsyncConnection[Any]) -> Iterator[None]:
    """Close a read-only connection, so that another is opened.

    It would stay read-only: its session keeps the setting that the database had when it began, or
    its server has become a standby.
    """
    try:
        yield
    except errors.ReadOnlySqlTransaction:
        connection.pgconn.finish()
        raise


def use_json(context: AdaptContext) -> None:
    """Read JSON with msgspec, several times as fast as the standard library."""
    set_json_loads(msgspec.json.decode, context)


def configure(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    """Configure a connection for a client: decode JSON, and log the warnings of jobq."""
    use_json(connection)
    connection.add_notice_handler(_log_warning)


def _log_warning(notice: Diagnostic) -> None:
    if (notice.sqlstate or "").startswith("JQ"):
        logger.warning("%s (%s)", notice.message_primary, notice.message_detail)


# Code for both kinds of connections is written once, as coroutines. With blocking calls, they
# never suspend.


async def awaited(answer: Any) -> Any:  # noqa: ANN401 - whatever was called
    """Return a result, awaited if it is awaitable."""
    return await answer if inspect.isawaitable(answer) else answer


async def entered(stack: AsyncExitStack, context: Any) -> Any:  # noqa: ANN401 - of either sort
    """Enter a context manager of either kind, until the end of the stack."""
    if hasattr(context, "__aenter__"):
        return await stack.enter_async_context(context)
    return stack.enter_context(context)


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coroutine.close()
    raise RuntimeError("a call that waits has suspended")


# A pool checks a connection before use. It makes no round trip, but looks for unread data, which
# a server sends when it closes a connection. A server that stops closes all of them, and these
# are skipped at once: psycopg's own `check` pauses longer after each, so calls would fail long
# after the server is back.


class Pool(ConnectionPool[Connection[Any]]):
    """A pool that returns no connection that the server has closed."""

    def getconn(self, timeout: float | None = None) -> Connection[Any]:
        """Return a connection that is open as far as known."""
        return finished(_open_connection(self, super().getconn, timeout))


class AsyncPool(AsyncConnectionPool[AsyncConnection[Any]]):
    """The same for asynchronous connections; ``configure`` is a plain function, too."""

    def __init__(self, *args: Any, configure: Callable[[Any], None], **options: Any) -> None:  # noqa: ANN401 - psycopg's
        async def configured(connection: AsyncConnection[Any]) -> None:
            configure(connection)

        super().__init__(*args, configure=configured, **options)

    async def getconn(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as in the base class
    ) -> AsyncConnection[Any]:
        """Return a connection that is open as far as known, unless the caller was cancelled."""
        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        connection: AsyncConnection[Any] = await _open_connection(self, super().getconn, timeout)
        # The pool waits by asyncio.wait_for(), which forgets a cancellation in Python 3.11 if the
        # connection comes at the same moment.
        if task is not None and task.cancelling() > before:
            await self.putconn(connection)
            raise asyncio.CancelledError
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
            if _has_unread_data(connection):
                await awaited(pool.check_connection(connection))
        except BaseException as error:
            await awaited(pool.putconn(connection))
            if not isinstance(error, psycopg.Error):
                raise
        else:
            return connection


def _has_unread_data(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
