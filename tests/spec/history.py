"""What a database has committed, read from its write-ahead log in the order of commits.

A logical replication slot with PostgreSQL's own plugin `pgoutput` sees every committed change of
the recorded tables, whoever made it and by whatever path; the product takes no part in it. The
server needs `wal_level = logical`, and the slot survives its crashes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import tuple_row

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = ("job", "job_archive", "edge")
NAME = "jobq_history"
# Changes that one call of the server decodes.
BATCH = 20_000

Row = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Change:
    """A committed change of one row.

    Attributes:
        table: its name, without the schema.
        operation: ``insert``, ``update`` or ``delete``.
        row: the new values as texts; of a deleted row those of its key. Large values that an
            update has not changed are missing.
    """

    table: str
    operation: str
    row: Row


@dataclass(frozen=True, slots=True)
class Transaction:
    """A committed transaction with all its changes, in their order."""

    xid: int
    changes: tuple[Change, ...]


def record(url: str) -> None:
    """Record from now on what a database commits.

    Args:
        url: of a superuser.

    Raises:
        psycopg.Error: the server's `wal_level` is not logical, or all its slots are taken.
    """
    tables = ", ".join(f"jobq_private.{table}" for table in TABLES)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"create publication {NAME} for table {tables} with (publish_via_partition_root = true)"
        )
        connection.execute(
            "select pg_create_logical_replication_slot("
            "%s || '_' || current_database(), 'pgoutput')",
            (NAME,),
        )


def is_recorded(url: str) -> bool:
    """Whether `record()` was called and the slot still exists; a promoted standby has none.

    Args:
        url: of a superuser.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "select from pg_replication_slots where slot_name = %s || '_' || current_database()",
            (NAME,),
        )
        return found.fetchone() is not None


def transactions(url: str) -> Iterator[Transaction]:
    """Yield what was committed since `record()` or the last call, in order.

    Args:
        url: of a superuser.
    """
    reader = Reader()
    with psycopg.connect(url, autocommit=True, row_factory=tuple_row) as connection:
        while True:
            messages = connection.execute(
                "select data from pg_logical_slot_get_binary_changes("
                "%s || '_' || current_database(), null, %s, 'proto_version', '1',"
                " 'publication_names', %s)",
                (NAME, BATCH, NAME),
                binary=True,
            ).fetchall()
            for (message,) in messages:
                if transaction := reader.read(message):
                    yield transaction
            if not messages:
                return


def forget(url: str) -> None:
    """Stop recording."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots"
            " where slot_name = %s || '_' || current_database()",
            (NAME,),
        )
        connection.execute(f"drop publication if exists {NAME}")


class Reader:
    """Reads messages of pgoutput, version 1.

    The format is in PostgreSQL's manual, chapter "Logical Replication Message Formats".
    """

    def __init__(self) -> None:
        self._tables: dict[int, tuple[str, list[str]]] = {}
        self._xid = 0
        self._changes: list[Change] = []

    def read(self, message: bytes) -> Transaction | None:
        """Read one message; return the transaction that it completes."""
        kind = chr(message[0])
        if kind == "B":
            (self._xid,) = struct.unpack_from("!I", message, 17)
            self._changes = []
        elif kind == "R":
            self._describe(message)
        elif kind in "IUD":
            self._changes.append(self._change(kind, message))
        elif kind == "C" and self._changes:
            return Transaction(self._xid, tuple(self._changes))
        return None

    def _describe(self, message: bytes) -> None:
        (oid,) = struct.unpack_from("!I", message, 1)
        _, name, rest = message[5:].split(b"\0", 2)
        (count,) = struct.unpack_from("!H", rest, 1)
        columns, position = [], 3
        for _ in range(count):
            end = rest.index(b"\0", position + 1)
            columns.append(rest[position + 1 : end].decode())
            position = end + 9
        self._tables[oid] = name.decode(), columns

    def _change(self, kind: str, message: bytes) -> Change:
        (oid,) = struct.unpack_from("!I", message, 1)
        table, columns = self._tables[oid]
        position = 5
        if kind == "U" and message[position : position + 1] in (b"K", b"O"):
            _, position = self._row(message, position + 1, columns)
        row, _ = self._row(message, position + 1, columns)
        return Change(table, {"I": "insert", "U": "update", "D": "delete"}[kind], row)

    @staticmethod
    def _row(message: bytes, position: int, columns: list[str]) -> tuple[Row, int]:
        row: dict[str, Any] = {}
        position += 2
        for column in columns:
            kind = message[position]
            position += 1
            if kind == ord("t"):
                (length,) = struct.unpack_from("!I", message, position)
                row[column] = message[position + 4 : position + 4 + length].decode()
                position += 4 + length
            elif kind == ord("n"):
                row[column] = None
        return row, position
