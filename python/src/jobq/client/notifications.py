"""Receives notifications as they arrive, between the statements of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import AsyncConnection, Notify


class Notifications:
    """Passes on the notifications of a listening connection.

    It watches the socket while no statement uses the connection.

    Args:
        connection: in autocommit mode. Call `unwatch` before a statement, and `watch` after it.
        on_note: called with the channel and the payload of each notification.
        on_lost: called when the connection is lost.
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
        """Watch the socket from now on."""
        self._watched = self._connection.fileno()
        asyncio.get_running_loop().add_reader(self._watched, self._on_readable)

    def unwatch(self) -> None:
        """Stop watching, for a statement or for good."""
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
        """Receive a notification that came with the result of a statement."""
        self._on_note(note.channel, note.payload)
