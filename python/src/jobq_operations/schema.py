"""Compare the schema of a database with a release, and replace what differs.

The release is installed beside the schema, under other names, in a transaction that is rolled back.
So both are compared as PostgreSQL stores them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg
from psycopg import sql

Connection = psycopg.Connection[tuple[Any, ...]]

_SHADOW: Final = "jobq_shadow"
_SCHEMA: Final = re.compile(r"\bjobq(_http|_internal|_private)?\b")
_PARTS: Final = ("schema", "table", "column", "sequence", "type", "row of jobq_private.transition")
"""Objects with data, which only Sqitch changes."""
_ROWS: Final = ("error", "route", "transition")
"""Tables whose rows belong to the release."""
_RELEASE: Final = re.compile(r"^select jobq_private\.record_release\('(\w+)'\);$", re.MULTILINE)
_CONDITIONAL: Final = re.compile(
    r"^(?:select [^\n]* <= '\{(?P<until>[\d,]+)\}' as is_older \\gset\n)?"
    r"\\if :is_\w+\n.*?^\\endif\n",
    re.MULTILINE | re.DOTALL,
)
_SCHEMAS: Final = re.compile(
    r"^-- Deploy jobq:schemas .*?(?=^reset role)", re.MULTILINE | re.DOTALL
)
_TABLE: Final = re.compile(r"\bjobq(?:_\w+)?\.\w+")
_LOCK_PATIENCE: Final = "set local statement_timeout = '800ms'"
_ROUNDS: Final = 4
"""Replacing a view drops its dependents, which are created in the next round."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An object that differs from the release.

    Attributes:
        object: its kind and name.
        wanted: the statement that creates it; None if the release does not have it.
        found: the statement that creates the present one; None if it is missing.
    """

    object: str
    wanted: str | None
    found: str | None

    @property
    def holds_data(self) -> bool:
        """Whether it is an object with data, or a part of one."""
        return self.object.startswith(_PARTS)

    @property
    def is_detail(self) -> bool:
        """Whether it is a property of another object."""
        return self.object.startswith(("owner", "grant", "comment"))

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.object} is missing"
        return f"{self.object} is {'not of this release' if self.wanted is None else 'another'}"


@dataclass(frozen=True, slots=True)
class Release:
    """The objects of a release.

    Attributes:
        objects: the statement that creates each object, in the order of creation.
        restored: the same statements after a dump and restore, which can change their text.
        kept: objects that may differ.
    """

    objects: dict[str, str]
    restored: dict[str, str]
    kept: frozenset[str] = frozenset()

    def keeping(self, kept: Iterable[Difference]) -> Release:
        """Return the release with differences that stay."""
        return replace(self, kept=frozenset(each.object for each in kept))

    def differences(self, found: dict[str, str]) -> list[Difference]:
        """Return the differences in the order of creation, unknown objects last."""
        names = [*self.objects, *(name for name in found if name not in self.objects)]
        return [
            Difference(name, self.objects.get(name), found.get(name))
            for name in names
            if name not in self.kept
            and found.get(name) not in (self.objects.get(name), self.restored.get(name, ...))
        ]


class Unmendable(Exception):  # noqa: N818 - a list of differences
    """The differences cannot be removed without changing objects with data."""

    def __init__(self, differences: Iterable[Difference]) -> None:
        self.differences = list(differences)
        super().__init__("; ".join(map(str, self.differences)))


def statements(script: str) -> str:
    """Return a script for psql as statements for the caller's transaction."""
    flags = re.MULTILINE | re.IGNORECASE
    return re.sub(r"^(\\.*|.* \\gset|begin;|commit;)$", "", script, flags=flags)


def of_features(script: str, core: str) -> str:
    """Return the part of a script for psql that applies if a release of the core is installed."""

    def kept(block: re.Match[str]) -> str:
        return block[0] if block["until"] and numbers(core) <= numbers(block["until"]) else ""

    return _CONDITIONAL.sub(kept, script)


def numbers(version: str) -> list[int]:
    """Return the numbers of a version, for comparison."""
    return [int(number) for number in re.findall(r"\d+", version)]


def compare(connection: Connection, script: str) -> tuple[Release, list[Difference]]:
    """Return the objects of a release, and the differences of the database.

    The user may create schemas; the changes are rolled back.
    """
    with connection.transaction(force_rollback=True):
        connection.execute(_in_shadow(statements(script)).encode())
        connection.execute("reset role")
        found = _objects(connection, _SHADOW, "jobq")
        release = Release(_objects(connection, _SHADOW, _SHADOW), {})
        if release.differences(found):
            _remake(connection, release.objects)
            release = Release(release.objects, _objects(connection, _SHADOW, _SHADOW))
    return release, release.differences(found)


def _in_shadow(text: str) -> str:
    return _SCHEMA.sub(rf"{_SHADOW}\1", text)


def _remake(connection: Connection, objects: dict[str, str]) -> None:
    """Create objects from PostgreSQL's text of them, as a restore does; the text may change."""
    connection.execute("set local role jobq_owner")
    for name, made in objects.items():
        if name.startswith(("view", "trigger", "index", "policy")) or " CHECK (" in made[:200]:
            there = Difference(_in_shadow(name), _in_shadow(made), _in_shadow(made))
            with suppress(psycopg.Error), connection.transaction():
                if not _is_replaced(there):
                    _run(connection, _drop(there))
                _run(connection, there.wanted)
    connection.execute("reset role")


def replaced_by(differing: Iterable[Difference]) -> list[Difference]:
    """Return what must change so that calls find the functions of the release, and no others.

    A routine that the release does not have is replaced if it has one of that name.
    """
    code = [d for d in differing if d.object.startswith(("routine", "view", "trigger"))]
    wanted = {_name_of(d) for d in code if d.wanted is not None}
    return [d for d in code if _name_of(d) in wanted]


def _name_of(routine: Difference) -> str:
    return routine.object.partition("(")[0]


def lock(connection: Connection, differing: Iterable[Difference]) -> None:
    """Lock all tables that will change, in one order, before anything else.

    So this is the only point at which other sessions and this transaction wait for each other. It
    ends before the server checks for deadlocks, with LockNotAvailable or QueryCanceled.
    """
    named = {
        name
        for each in differing
        if each.object.startswith(("trigger", "policy", "index", "constraint"))
        for name in _TABLE.findall(f"{each.object} {each.wanted} {each.found}")
    }
    query = """
        select string_agg(c.oid::regclass::text, ', ' order by c.oid::regclass::text collate "C")
        from pg_class as c
        where c.relkind in ('r', 'p') and c.oid::regclass::text = any (%s)
    """
    row = connection.execute(query, [list(named)]).fetchone()
    if row is not None and row[0] is not None:
        connection.execute(_LOCK_PATIENCE)
        connection.execute(f"lock table {row[0]} in access exclusive mode".encode())
        connection.execute("set local statement_timeout = 0")


def mend(
    connection: Connection, script: str, release: Release, differing: list[Difference]
) -> None:
    """Replace all objects without data that differ from a release; Unmendable if others differ."""
    for _ in range(_ROUNDS):
        if not differing or any(d.holds_data for d in differing):
            break
        schemas = statements("".join(_SCHEMAS.findall(script)))
        _run(connection, schemas.partition("create schema")[0])  # the roles
        for owner in [d for d in differing if d.object.startswith("owner")]:
            _run(connection, _drop(owner))
        _run(connection, f"{schemas}; reset role")
        connection.execute("set local role jobq_owner; set local check_function_bodies = off")
        for difference in reversed(differing):
            if difference.found is not None and not _is_replaced(difference):
                _run(connection, _drop(difference))
        for difference in differing:
            if difference.wanted is not None:
                _make(connection, difference)
        connection.execute("reset role")
        differing = release.differences(_objects(connection, "jobq", "jobq"))
    if differing:
        raise Unmendable(differing)


def record(connection: Connection, release: str) -> None:
    """Record the release and its objects in the database, for `jobq doctor`."""
    connection.execute("select jobq_private.record_release(%s)", [release])


def release_of(script: str) -> str:
    """Return the fingerprint of a release, at the end of its script."""
    [found] = _RELEASE.findall(script)
    return str(found)


def _objects(connection: Connection, schema: str, prefix: str) -> dict[str, str]:
    """Return all objects of the schemas with a prefix, in the order of creation."""
    query = sql.SQL("select object, definition from {}.schema_objects(%s) order by nth")
    asked = query.format(sql.Identifier(f"{schema}_private"))
    objects = {name: made or "" for name, made in connection.execute(asked, [prefix])}
    for table in _ROWS:
        if f"table {prefix}_private.{table}" in objects:
            objects |= _rows(connection, f"{prefix}_private.{table}")
    own = re.compile(rf"\b{prefix}(_http|_internal|_private)?\b")
    return {own.sub(r"jobq\1", name): own.sub(r"jobq\1", made) for name, made in objects.items()}


def _rows(connection: Connection, table: str) -> dict[str, str]:
    """Return the rows of a table, each with the statement that inserts it."""
    query = sql.SQL("select to_jsonb(t)::text from {} as t order by 1")
    rows = connection.execute(query.format(sql.Identifier(*table.split("."))))
    make = "insert into {0} select (jsonb_populate_record(null::{0}, {1})).*"
    return {f"row of {table} {row}": make.format(table, _quoted(row)) for (row,) in rows}


def _is_replaced(difference: Difference) -> bool:
    """Whether an object is not dropped first; owners were changed before."""
    if difference.object.startswith("owner"):
        return True
    return difference.wanted is not None and difference.object.startswith(
        ("routine", "view", "comment")
    )


def _drop(difference: Difference) -> str | None:
    """Return the statement that removes the present object."""
    kind, _, name = difference.object.partition(" ")
    statement = None
    match kind:
        case "owner":
            statement = f"alter {name.removeprefix('of ')} owner to jobq_owner"
        case "routine" | "view":
            statement = f"drop {kind} if exists {name} cascade"
        case "trigger" | "policy" | "index":
            statement = f"drop {kind} if exists {name}"
        case "constraint":
            constraint, _, table = name.rpartition(" on ")
            statement = f"alter table {table} drop constraint if exists {constraint}"
        case "grant":
            statement = f"revoke {name.replace(' to ', ' from ')}"
        case "row":
            _, table, row = name.split(" ", maxsplit=2)
            statement = f"delete from {table} as t where to_jsonb(t)::text = {_quoted(row)}"  # noqa: S608
        case "comment":
            statement = f"{difference.object} is null"
    return statement


def _make(connection: Connection, difference: Difference) -> None:
    """Create an object; drop the present one if it cannot be replaced."""
    if not difference.object.startswith(("routine", "view")):
        return _run(connection, difference.wanted)
    try:
        with connection.transaction():
            _run(connection, difference.wanted)
    except (psycopg.errors.InvalidFunctionDefinition, psycopg.errors.InvalidTableDefinition):
        _run(connection, _drop(difference))
        _run(connection, difference.wanted)


def _quoted(text: str) -> str:
    return sql.Literal(text).as_string()


def _run(connection: Connection, statement: str | None) -> None:
    if statement is not None:
        connection.execute(statement.encode())
