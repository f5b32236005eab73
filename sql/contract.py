"""Read what the sources in sql/ promise: their headers, and the errors that they can raise.

A source begins with comment lines. A field starts with a word and a colon:

    -- Purpose: what it is for; of a public function or view also its comment in the catalog
    -- Invariant: what holds whatever happens, locks above all.
    -- Inside: how it does that, for readers of the source; not in the reference
    -- Raises: 22004, JQ001.               the SQLSTATEs, or: nothing; private functions omit that
    -- Never: QUEUE_FULL, since …          codes that what it calls can raise, but not from here
    -- Argument job_ids: what it means and may hold, beside docs/glossary.toml
    -- Members failures: fail              the members of a JSON argument: fail()'s parameters
    -- Returns: what comes back
    -- Column outcome: what it may hold, beside docs/glossary.toml
    -- Example: select jobq.cancel(:'waiting');
"""

from __future__ import annotations

import itertools
import re
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import render

if TYPE_CHECKING:
    from pathlib import Path

FIELD = re.compile(
    r"(?:^|(?<=[.,] ))"
    r"(?P<field>Purpose|Invariant|Inside|Raises|Never|Argument|Members|Returns|Column|Example)"
    r"(?: (?P<name>[\w.]+))?: ?",
    re.MULTILINE,
)
NAMED = {"Argument", "Members", "Column"}
ERROR_ROW = re.compile(r"^\('(?P<code>[A-Z_]+)', '(?P<state>\w{5})', \d+,", re.MULTILINE)
ERROR_CODE = re.compile(r"'([A-Z_]+)'")
SQLSTATE = re.compile(r"\b(?:JQ\d{3}|\d[0-9A-Z]{4})\b")
CALL = re.compile(r"\b(jobq(?:_\w+)?\.\w+)\s*\(")
EXECUTES = re.compile(r"\bexecute\s+function\s+(jobq\w*\.\w+)")
# Functions whose optional arguments are filters.
CHOOSING = re.compile(r"^(list|page|show)_|_many$")
WRITES = re.compile(r"\b(?:insert\s+into|update|delete\s+from)\s+(jobq\w*\.\w+)")


class Error(NamedTuple):
    """An error by its SQLSTATE and its symbolic code."""

    sqlstate: str
    code: str


@dataclass(frozen=True)
class Header:
    """The fields of a source's header; texts are single lines but for the example."""

    texts: dict[str, str] = field(default_factory=dict)
    named: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Header:
        """Read the comment lines that a source begins with."""
        head = itertools.takewhile(lambda line: line.startswith("--"), text.splitlines())
        lines = "\n".join(line[2:].removeprefix(" ") for line in head)
        marks = list(FIELD.finditer(lines))
        ends = [mark.start() for mark in marks[1:]] + [len(lines)]
        found = cls()
        for mark, end in zip(marks, ends, strict=True):
            value = lines[mark.end() : end].strip()
            if mark["field"] != "Example":
                value = " ".join(value.split())
            if mark["field"] in NAMED and mark["name"]:
                found.named.setdefault(mark["field"], {})[mark["name"]] = value
            else:
                found.texts[mark["field"]] = value
        return found

    @property
    def sqlstates(self) -> set[str]:
        """The SQLSTATEs that the header says are raised."""
        return set(SQLSTATE.findall(self.texts.get("Raises", "")))

    @property
    def never(self) -> set[str]:
        """The symbolic codes that are not raised although something called could."""
        return set(re.findall(r"\b[A-Z_]{4,}\b", self.texts.get("Never", "")))


@dataclass(frozen=True)
class Promise:
    """A source with what it says of itself."""

    source: render.Source
    name: str

    @property
    def schema(self) -> str:
        """The schema of what it creates."""
        return self.name.split(".")[0]

    @cached_property
    def header(self) -> Header:
        """The fields of its header."""
        return Header.of(self.source.code.text)

    @cached_property
    def code(self) -> str:
        """Its text without comments."""
        return render.without_comments(self.source.code.text)

    @cached_property
    def codes(self) -> set[str]:
        """The words in quotes that may be codes of errors."""
        return set(ERROR_CODE.findall(self.code))

    @cached_property
    def calls(self) -> set[str]:
        """The functions that it calls by name."""
        return set(CALL.findall(self.code)) - {self.name, "jobq_private.raise_error"}

    @cached_property
    def written(self) -> set[str]:
        """The tables that it writes."""
        return set(WRITES.findall(self.code))


class Glossary:
    """What names mean: by the header of their source, or else by docs/glossary.toml."""

    def __init__(self, root: Path) -> None:
        self.text = tomllib.loads((root / "docs/glossary.toml").read_text())

    def argument(self, promise: Promise, name: str, default: str | None) -> str | None:
        """What an argument means; None if nothing says it."""
        said = promise.header.named.get("Argument", {}).get(name)
        is_filter = default == "null" and CHOOSING.search(promise.name.split(".")[1])
        if said is None and is_filter:
            said = self.text["filters"].get(name)
        return said or self.text["names"].get(name)

    def column(self, promise: Promise | None, name: str) -> str | None:
        """What a column means; None if nothing says it."""
        said = promise.header.named.get("Column", {}).get(name) if promise else None
        return said or self.text["names"].get(name)


class Contracts:
    """All sources by the names of what they create, and the errors that each can raise."""

    def __init__(self, root: Path) -> None:
        rows = (root / "deploy/error_tables.sql").read_text()
        self.states = {m["code"]: m["state"] for m in ERROR_ROW.finditer(rows)}
        self.by_name: dict[str, Promise] = {}
        self.triggers: dict[str, set[str]] = {}
        for source in render.read_sources(root):
            for thing in source.code.things:
                promise = Promise(source, thing.name)
                if thing.trigger:
                    called = EXECUTES.findall(promise.code)
                    self.triggers.setdefault(thing.name, set()).update(called)
                else:
                    self.by_name[thing.name] = promise

    def raised(self, name: str) -> set[Error]:
        """What a function and those that it calls raise, but for what never comes from it."""
        reached = self.reached(name, with_triggers=False)
        return {e for e in reached if e.code not in self.by_name[name].header.never}

    def possible(self, name: str) -> set[Error]:
        """The same with the triggers of the tables that are written."""
        reached = self.reached(name)
        return {e for e in reached if e.code not in self.by_name[name].header.never}

    def promised(self, name: str) -> dict[str, list[str]]:
        """The codes of the errors that the header of a function names, by SQLSTATE."""
        sure, possible = self.raised(name), self.possible(name)
        return {
            state: sorted(e.code for e in sure if e.sqlstate == state)
            or sorted(e.code for e in possible if e.sqlstate == state)
            for state in sorted(self.by_name[name].header.sqlstates)
        }

    def reached(self, name: str, *, with_triggers: bool = True) -> set[Error]:
        """What a function raises itself, and what comes from those that it calls."""
        return self.reached_with_triggers[name] if with_triggers else self.reached_by_calls[name]

    @cached_property
    def reached_with_triggers(self) -> dict[str, set[Error]]:
        """What reaches each function, also by the triggers of the tables that it writes."""
        return self._reached(with_triggers=True)

    @cached_property
    def reached_by_calls(self) -> dict[str, set[Error]]:
        """What reaches each function by those that it calls."""
        return self._reached(with_triggers=False)

    def _reached(self, *, with_triggers: bool) -> dict[str, set[Error]]:
        found = {
            name: {Error(self.states[code], code) for code in promise.codes & self.states.keys()}
            for name, promise in self.by_name.items()
        }
        called = {
            name: self.called(promise, with_triggers=with_triggers) - {name}
            for name, promise in self.by_name.items()
        }
        is_changed = True
        while is_changed:  # functions may call each other in circles
            is_changed = False
            for name, others in called.items():
                before = len(found[name])
                for other in others:
                    never = self.by_name[other].header.never
                    found[name] |= {error for error in found[other] if error.code not in never}
                is_changed = is_changed or len(found[name]) > before
        return found

    def called(self, promise: Promise, *, with_triggers: bool) -> set[str]:
        """The functions that a source calls, and the triggers of what it writes."""
        called = promise.calls.copy()
        if with_triggers:
            called.update(*(self.triggers.get(table, set()) for table in promise.written))
        return called & self.by_name.keys()
