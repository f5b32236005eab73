"""Notifications that are taken as they arrive, between the statements of a connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import AsyncConnection, Notify

__all__ = ["Notifications"]


class Notifications:
    """Hands over the notifications of a connection that listens.

    The socket is watched while no statement uses the connection; what arrives with the
    answer to a statement is handed over too.

    Args:
        connection: in autocommit mode; whoever runs a statement on it calls `unwatch`
            before, and `watch` after it.
        on_note: called with the channel and the payload of each.
        on_lost: called when the connection turns out to be lost.
    """

    def __init__(
        self,
        connection: AsyncConnection[Any],
        on_note: Callable[[str, str], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._on_note = on_note
        self._on_lost = on_lost
        self._watched: int | None = None
        connection.add_notify_handler(self._on_notify)

    def watch(self) -> None:
        """Look at the socket from now on."""
        self._watched = self._connection.fileno()
        asyncio.get_running_loop().add_reader(self._watched, self._on_readable)

    def unwatch(self) -> None:
        """Leave the socket to a statement, or for good."""
        if self._watched is not None:
            asyncio.get_running_loop().remove_reader(self._watched)
            self._watched = None

    def _on_readable(self) -> None:
        raw = self._connection.pgconn
        try:
            raw.consume_input()
        except psycopg.Error:
            self.unwatch()
            self._on_lost()
            return
        while note := raw.notifies():
            self._on_note(note.relname.decode(), note.extra.decode())

    def _on_notify(self, note: Notify) -> None:
        """Take a notification that came with the answer to a statement."""
        self._on_note(note.channel, note.payload)
