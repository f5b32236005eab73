"""Enqueue in the transaction of a SQLAlchemy session.

    with Session(engine) as session, session.begin():
        session.add(Customer(name="Ada"))
        client_of(session).enqueue("welcome", {"name": "Ada"})

The job exists when the session has committed, and not otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import psycopg
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from jobq.client import AsyncClient, Client
from jobq.errors import InvalidArgument

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

__all__ = ["async_client_of", "client_of"]

T = TypeVar("T")


def client_of(session: Session | Connection) -> Client:
    """Return a client in the session's transaction.

    Args:
        session: a session or a connection of an engine ``postgresql+psycopg://``; pending changes
            are flushed first, so that triggers see them.

    Raises:
        InvalidArgument: the engine has another driver.
    """
    if isinstance(session, Session):
        session.flush()
        session = session.connection()
    return Client(_checked(session.connection.driver_connection, psycopg.Connection))


async def async_client_of(session: AsyncSession | AsyncConnection) -> AsyncClient:
    """Return a client in the transaction of an asynchronous session, as `client_of` does."""
    if isinstance(session, AsyncSession):
        await session.flush()
        session = await session.connection()
    raw = await session.get_raw_connection()
    return AsyncClient(_checked(raw.driver_connection, psycopg.AsyncConnection))


def _checked(connection: object, wanted: type[T]) -> T:
    if isinstance(connection, wanted):
        return connection
    raise InvalidArgument(
        f"the session's driver is {type(connection).__module__.split('.')[0]}",
        hint="create the engine with postgresql+psycopg://",
    )
