#!/usr/bin/env python3
"""Write what in jobq only repeats the database: calls of one function, and records of rows.

`calls.toml` names them. The sources in sql/ have the rest: arguments and columns with types,
defaults and meanings, and errors. The modules are not tracked. They are written if a source is
newer: by make, before tests, by an editable install, and when a package is built.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

PYTHON: Final = Path(__file__).resolve().parent
ROOT: Final = PYTHON.parent
sys.path.insert(0, str(ROOT / "sql"))

from contract import Contracts, Glossary, Promise  # noqa: E402
from render import CREATES, signature  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE: Final = PYTHON / "src" / "jobq"
CALLS: Final = PACKAGE / "calls" / "generated.py"
METHODS: Final = PACKAGE / "client" / "generated.py"
RECORDS: Final = PACKAGE / "models" / "generated.py"
WIDTH: Final = 100
# At most so many arguments are positional, and none after the first that is true or false.
POSITIONAL: Final = 5
# Python's types of arguments, and how to convert those that psycopg does not.
ARGUMENTS: Final = {
    "bigint": "int",
    "boolean": "bool",
    "double precision": "float",
    "integer": "int",
    "interval": "Span",
    "jsonb": "Mapping[str, Json]",
    "numeric": "float | Decimal",
    "text": "str",
    "text[]": "Sequence[str]",
    "timestamptz": "datetime",
    "uuid": "UUID | str",
    "uuid[]": "Iterable[UUID | str]",
}
CONVERSIONS: Final = {"interval": "as_timedelta", "jsonb": "as_jsonb", "numeric": "as_number"}
# Texts of which there are a few, by the name of the argument.
CHOICES: Final = {
    "dedup": "Dedup",
    "fold": "Fold",
    "gap": "Gap",
    "mode": "Mode",
    "privilege": "Privilege",
    "put_endpoint.type": "EndpointType",
    "retry_strategy": "RetryStrategy",
    "after_failure": "AfterFailure",
    "create_schedule.dedup": "ScheduleDedup",
    "create_schedule.graph": "Graph | Mapping[str, Json]",
    "create_schedule.payload": "Json",
    "emit.payload": "Json",
    "send_message.payload": "Json",
    "signal.payload": "Json",
    "missed": "Missed",
    "on_dead": "OnDead",
    "put_kind.concurrency_key": "str | Sequence[str]",
    "put_kind.cost": "str | Sequence[str]",
    "put_kind.dedup_key": "str | Sequence[str] | Sequence[Sequence[str]]",
    "schedule": "UUID | str",
    "status": "ScheduleStatus",
    "type": "DefinitionType",
}
# Types of columns and of single values.
VALUES: Final = {
    "bigint": "int",
    "boolean": "bool",
    "double precision": "float",
    "integer": "int",
    "interval": "timedelta",
    "json": "Json",
    "jsonb": "Json",
    "numeric": "Decimal",
    "smallint": "int",
    "text": "str",
    "text[]": "list[str]",
    "timestamp": "datetime",
    "timestamptz": "datetime",
    "uuid": "UUID",
    "void": "None",
}
# From the words of the reference to those of docstrings.
IN_PYTHON: Final = {
    r"\[\w+\]\((\w+\.md)\)": r"docs/\1",
    r"`([^`]+)`": r"``\1``",
    r"(?<= )(\*|\w+_)(?= )": r"``\1``",
    r"\bnull\b": "None",
    r"\btrue\b": "True",
    r"\bfalse\b": "False",
}
# From the words of the reference to those of options.
OF_OPTIONS: Final = {
    r"\{([\w,]+)\}": r"`\1`",
    r"null means ([^.]+)$": r"by default \1",
    r"null takes ([^.]+)$": r"by default \1",
}
COLUMN: Final = re.compile(rf"^    (\w+) ({'|'.join(map(re.escape, VALUES))})\b", re.MULTILINE)
EXCEPTION: Final = re.compile(r'^class (\w+)\(\s*JobqError,[^)]*?sqlstates="([^"]+)"', re.MULTILINE)
MESSAGE: Final = re.compile(r"^\('([A-Z_]+)', '\w{5}', \d+, '((?:[^']|'')*)'", re.MULTILINE)
NAME: Final = re.compile(r"^(?:class )?([A-Z]\w+)", re.MULTILINE)
HEAD: Final = '''"""{}

Made by python/generate.py of the sources in sql/; do not edit.
"""

from __future__ import annotations

'''
IMPORTS: Final = """from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypedDict
from uuid import UUID

"""


# ---- what the sources have


@dataclass(frozen=True)
class Parameter:
    """An argument of a function, or a column; the type of a column of a view may be unknown."""

    name: str
    type: str
    default: str | None = None

    @classmethod
    def of(cls, text: str) -> Parameter:
        """Read it from a function, such as ``reason text default null``."""
        declared, _, default = text.partition(" default ")
        name, _, kind = declared.partition(" ")
        return cls(name, kind, default or None)

    @classmethod
    def of_view(cls, text: str) -> Parameter:
        """Read it from a view, such as ``q.priority::integer as priority``."""
        said = re.fullmatch(r"(?s)(?P<value>.*?)(::(?P<cast>\w+))?( as (?P<name>\w+))?", text)
        return cls(said["name"] or re.findall(r"\w+", said["value"])[-1], said["cast"] or "")

    @property
    def value(self) -> str | None:
        """Python's default: None if there is none, ``None`` if only PostgreSQL can compute it."""
        if self.default is None:
            return None
        literals = {"boolean": "true|false", "integer": r"\d+", "text": r"'[^']+'"}
        if not re.fullmatch(literals.get(self.type, ""), self.default):
            return "None"
        return self.default.title() if self.type == "boolean" else self.default.replace("'", '"')


@dataclass(frozen=True)
class Source:
    """A function or a view."""

    promise: Promise

    @property
    def name(self) -> str:
        """Its name without the schema."""
        return self.promise.name.partition(".")[2]

    @cached_property
    def _declared(self) -> tuple[list[str], str]:
        """The arguments of a function, and its result; what a view selects."""
        code = self.promise.code
        if "create or replace view" in code:
            selected, source, *_ = (*split(code.partition("as\nselect")[2], r"\bfrom\b"), "", "")
            if selected.endswith(".*"):  # of a union: the columns of its first part
                selected, *_ = split(source.partition("select")[2], r"\bfrom\b")
            return split(selected), "view"
        created = next(m for m in CREATES.finditer(code) if m["name"] == self.promise.name)
        given, result = (*split(signature(code[created.end() :]), r"\breturns "), "")[:2]
        return split(given.strip()[1:-1]), result

    @property
    def result(self) -> str:
        """What it returns, such as ``setof uuid``; empty with parameters for the result."""
        return self._declared[1]

    @cached_property
    def arguments(self) -> list[Parameter]:
        """What it takes."""
        given = [] if self.result == "view" else self._declared[0]
        return [Parameter.of(text) for text in given if not text.startswith("out ")]

    @cached_property
    def columns(self) -> list[Parameter]:
        """The columns of a view, or those that a function returns, also as a type."""
        given, result = self._declared
        if result == "view":
            return [Parameter.of_view(text) for text in given]
        outputs = [text.removeprefix("out ") for text in given if text.startswith("out ")]
        table = result.partition("table ")[2].strip()[1:-1]
        if result.startswith("setof jobq."):
            made = re.compile(rf"create type {result[6:]} as \((.*?)\n\);", re.DOTALL)
            texts = [re.sub("--.*", "", path.read_text()) for path in tables()]
            table = "".join(text for path in texts for text in made.findall(path))
        return [Parameter.of(text) for text in outputs or split(table)]


def split(text: str, mark: str = ",") -> list[str]:
    """Return what commas outside of brackets separate."""
    found, depth = [""], 0
    for word in re.split(rf"({mark}|[()\[\]])", text):
        depth += (word in {"(", "["}) - (word in {")", "]"})
        if depth == 0 and re.fullmatch(mark, word):
            found.append("")
        else:
            found[-1] += word
    return [part.strip() for part in found if part.strip()]


# ---- what they say


class Words:
    """What arguments, columns and errors mean."""

    def __init__(self, contracts: Contracts) -> None:
        self._contracts = contracts
        self._glossary = Glossary(ROOT)
        classes = EXCEPTION.findall((PACKAGE / "errors.py").read_text())
        self._exceptions = {state: name for name, states in classes for state in states.split()}
        rows = (ROOT / "deploy" / "error_tables.sql").read_text()
        self._messages = {code: text.replace("''", "'") for code, text in MESSAGE.findall(rows)}

    def column(self, source: Source, name: str) -> str:
        """Return what a column means; empty if nothing is said of it."""
        return self._glossary.column(source.promise, name) or ""

    def argument(self, source: Source, given: Parameter) -> str:
        """Return what an argument means, and its default if Python does not show it."""
        said = self._glossary.argument(source.promise, given.name, given.default)
        text = (said or "").rstrip(".")
        default = (given.default or "null").replace("interval ", "").strip("'")
        is_shown = given.value != "None" or default in ("null", "-infinity")
        return text if is_shown else f"{text}; {default} by default"

    def errors(self, source: Source) -> Iterator[tuple[str, str]]:
        """Yield the exceptions of a function but InvalidArgument, and when each is raised."""
        for state, codes in self._contracts.promised(source.promise.name).items():
            if codes and state in self._exceptions:
                yield self._exceptions[state], "; ".join(sorted(self._messages[c] for c in codes))


def paragraph(text: str, indent: int = 8) -> str:
    """Return a text in Python's terms, in lines of the usual width."""
    text = f"{text.rstrip('.')}."
    for pattern, python in IN_PYTHON.items():
        text = re.sub(pattern, python, text)
    first, further = " " * indent, " " * (indent if indent < 8 else indent + 4)
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=further, break_long_words=False
    )


def listed(title: str, items: Iterable[tuple[str, str]]) -> str:
    """Return a section of a docstring; empty without items."""
    lines = [paragraph(f"{name}: {text}") for name, text in items if text]
    return "\n".join(["", f"    {title}:", *lines, ""]) if lines else ""


# ---- the code


@dataclass(frozen=True)
class Function:
    """A function of Python that returns the call of a function of the database.

    Attributes:
        answer: the type of the result if it is not that of the function.
        may_lag: whether a standby may answer.
        from_now: an argument that may be a duration from now.
    """

    name: str
    source: Source
    words: Words
    answer: str
    may_lag: bool
    from_now: str | None

    @property
    def text(self) -> str:
        """The code."""
        kind, read = self._result
        given = self.source.arguments
        changed = [
            f'"{a.name}": {CONVERSIONS[a.type]}({a.name})' for a in given if a.type in CONVERSIONS
        ]
        all_given = bracketed("{", ["**locals()", *changed], "}", 4) if changed else "locals()"
        call = [f'"{self.source.name}"', all_given if given else "{}", read]
        call += ["may_lag=True"] * self.may_lag
        if now := self.from_now:
            call.append(f'from_now="{now}" if isinstance({now}, timedelta) else None')
        head = bracketed(f"def {self.name}(", self._parameters, f") -> Call[{kind}]:\n", 0)
        return head + self._docstring + bracketed("    return Call(", call, ")\n", 4)

    @property
    def _docstring(self) -> str:
        texts = self.source.promise.header.texts
        purpose = f'"""{texts["Purpose"][:1].upper()}{texts["Purpose"][1:]}'
        returned = texts.get("Returns", "nothing.").rstrip(".")
        arguments = {a.name: self.words.argument(self.source, a) for a in self.source.arguments}
        if self.from_now:
            arguments[self.from_now] += "; or for how long from now, by the database's clock"
        text = paragraph(purpose, 4) + "\n" + listed("Args", arguments.items())
        if returned != "nothing":
            text += f"\n    Returns:\n{paragraph(returned)}\n"
        return text + listed("Raises", self.words.errors(self.source)) + '    """\n'

    @property
    def _result(self) -> tuple[str, str]:
        """The type of the result, and how to read it from the rows."""
        kind, table = self.source.result, self.source.columns
        if self.answer.startswith("["):
            record = self.answer.strip("[]")
            return f"list[{record}]", f"list, record({record})"
        if self.answer.startswith("("):
            record = self.answer.strip("()")
            return f"list[{record}]", f"list, args_row({record})"
        if self.answer and (table or kind.startswith("jobq.")):
            return self.answer, f"first, record({self.answer})"
        single = VALUES[table[0].type if table else kind.removeprefix("setof ")]
        if table or kind.startswith("setof "):
            return f"list[{single}]", "column"
        single = "dict[str, Any]" if single == "Json" else single
        return self.answer or single, "nothing" if kind == "void" else "scalar"

    @property
    def _parameters(self) -> list[str]:
        given = self.source.arguments
        flags = [place for place, argument in enumerate(given) if argument.type == "boolean"]
        positional = min([POSITIONAL, *flags])
        written = [self._parameter(argument) for argument in given]
        return written[:positional] + ["*"] * (positional < len(given)) + written[positional:]

    def _parameter(self, given: Parameter) -> str:
        special = CHOICES.get(f"{self.source.name}.{given.name}", CHOICES.get(given.name))
        kind = special or ARGUMENTS[given.type]
        kind += " | timedelta" if given.name == self.from_now else ""
        if given.value is None:
            return f"{given.name}: {kind}"
        kind += "" if given.type == "boolean" and given.value != "None" else " | None"
        return f"{given.name}: {kind} = {given.value}"


def options(
    name: str, source: Source, given: list[str], words: Words, special: dict[str, str]
) -> str:
    """Return the class of the options of a function.

    Args:
        name: its name.
        source: the function.
        given: its base class, what it is, and the names of the options.
        words: what arguments mean.
        special: what they mean where the words of the function are not those of Python.
    """
    base, meaning, names = given
    chosen = names.split()
    fields, said = "", []
    for argument in source.arguments:
        if argument.name in chosen:
            text = words.argument(source, argument)
            for pattern, python in OF_OPTIONS.items():
                text = re.sub(pattern, python, text)
            if argument.value not in (None, "None"):
                text += f"; {argument.value.replace(chr(34), '')} by default"
            said.append((argument.name, special.get(f"{source.name}.{argument.name}", text)))
            kind = CHOICES.get(f"{source.name}.{argument.name}", CHOICES.get(argument.name))
            kind = kind or ARGUMENTS[argument.type]
            fields += f"    {argument.name}: {kind}{'' if kind == 'Json' else ' | None'}\n"
    head = f"\n\nclass {name}({base}, total=False):\n"
    return f'{head}    """{meaning.rstrip()}\n{listed("Attributes", said)}    """\n\n{fields}'


def bracketed(head: str, items: list[str], tail: str, indent: int) -> str:
    """Return items between brackets: in one line, or each in its own if they are too long."""
    line = f"{head}{', '.join(items)}{tail}"
    if max(len(part) for part in line.split("\n")) <= WIDTH:
        return line
    inner = "".join(f"{' ' * (indent + 4)}{item},\n" for item in items)
    return f"{head}\n{inner}{' ' * indent}{tail}"


def types_by_name(sources: Iterable[Source]) -> dict[str, str]:
    """Return the most frequent type of arguments and columns, by their names."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for source in sources:
        for each in (*source.arguments, *source.columns):
            counts[each.name][each.type] += bool(each.type)
    for path in tables():
        for name, kind in COLUMN.findall(path.read_text()):
            counts[name][kind] += 1
    return {name: count.most_common(1)[0][0] for name, count in counts.items()}


def record(name: str, source: Source, given: list[str], words: Words, types: dict[str, str]) -> str:
    """Return the class of the rows of a function or a view.

    Args:
        name: its name.
        source: the function or view.
        given: what a row is, the columns that may be None or have special types, and a base class.
        words: what columns mean.
        types: types of columns by their names, for views.
    """
    meaning, special, *bases = given
    marks = {word.rstrip("?").partition(":")[0]: word for word in special.split()}
    fields = ""
    for column in source.columns:
        mark = marks.get(column.name, marks.get("*", ""))
        kind = re.sub(r"([,|])", r" \1 ", mark.rstrip("?").partition(":")[2]).replace(" ,", ",")
        kind = kind or VALUES[column.type or types[column.name]]
        fields += f"    {column.name}: {kind}{' | None' if mark.endswith('?') else ''}\n"
    about = listed("Attributes", [(c.name, words.column(source, c.name)) for c in source.columns])
    base = f"({', '.join(bases)})" if bases else ""
    head = f"\n\n@dataclass(frozen=True, slots=True)\nclass {name}{base}:\n"
    return f'{head}    """{meaning}\n{about}    """\n\n{fields}'


# ---- the modules


def generated() -> dict[Path, str]:
    """Return the text of each module."""
    declared = tomllib.loads((PYTHON / "calls.toml").read_text())
    contracts = Contracts(ROOT)
    words = Words(contracts)
    sources = {
        promise.name.partition(".")[2]: Source(promise)
        for promise in contracts.by_name.values()
        if promise.schema in ("jobq", "jobq_internal")
    }
    types = types_by_name(map(Source, contracts.by_name.values()))
    records = HEAD.format("Rows of the database as frozen records.") + IMPORTS
    records += "from jobq.models.types import Ended, Json, Privilege, ScheduleStatus, State\n\n"
    internal = [n for n, s in sources.items() if s.promise.schema == "jobq_internal"]
    records += bracketed("INTERNAL = frozenset([", [f'"{n}"' for n in sorted(internal)], "])\n", 0)
    records += '"""Functions of the schema jobq_internal; others of `jobq.calls` are in jobq."""\n'
    for name, (called, *given) in declared["records"].items():
        records += record(name, sources[called], given, words, types)
    code = ""
    taken: dict[str, set[str]] = defaultdict(set)
    for name, (called, base, meaning, names) in declared["options"].items():
        others = {*declared["positional"][called], *taken[base]}
        own = names or " ".join(a.name for a in sources[called].arguments if a.name not in others)
        taken[name] = {*own.split(), *taken[base]}
        given = [base, meaning, own]
        code += options(name, sources[called], given, words, declared["option_words"])
    for name, said in declared["methods"].items():
        called, _, answer = said.partition(" -> ")
        may_lag, from_now = called in declared["may_lag"], declared["from_now"].get(called)
        function = Function(name, sources[called], words, answer, may_lag, from_now)
        code += f"\n\n{function.text}"
    calls = HEAD.format("Calls of one function of the database each.") + IMPORTS
    calls += "from psycopg.rows import args_row\n\n"
    calls += imported("calls.arguments", code, "as_jsonb as_number as_timedelta")
    calls += "from jobq.calls.call import Call, column, first, nothing, scalar\n"
    calls += "from jobq.calls.graph import Graph\n" + imported("models", code, "record", records)
    methods = HEAD.format("The methods of clients for `jobq.calls.generated`.")
    methods += "from jobq.calls import generated as calls\nfrom jobq.client.method import Method\n"
    methods += '\n\nclass GeneratedCalls:\n    """A method for each of these calls."""\n\n'
    methods += "".join(f"    {name} = Method(calls.{name})\n" for name in declared["methods"])
    return {RECORDS: records, CALLS: calls + code, METHODS: methods}


def imported(module: str, code: str, functions: str, others: str = "") -> str:
    """Return the import of the types of a module that some code uses, and of functions."""
    path = PACKAGE / f"{module.replace('.', '/')}"
    files = path.glob("[_t]*.py") if path.is_dir() else [path.with_suffix(".py")]
    text = others + "".join(file.read_text() for file in files)
    names = {*NAME.findall(text)} & {*re.findall(r"\b[A-Z]\w+", code)}
    names |= {*functions.split()}
    return bracketed(f"from jobq.{module} import (", sorted(names), ")\n", 0)


def tables() -> list[Path]:
    """Return the scripts of the tables."""
    return list((ROOT / "deploy").glob("*_tables.sql"))


def update() -> None:
    """Write the modules, unless they are newer than what they are made of."""
    targets = (RECORDS, CALLS, METHODS)
    own = [Path(__file__), PYTHON / "calls.toml", PACKAGE / "errors.py"]
    made_of = [*own, ROOT / "docs" / "glossary.toml", *tables(), *(ROOT / "sql").rglob("*.*")]
    newest = max(path.stat().st_mtime for path in made_of)
    if all(target.exists() and target.stat().st_mtime > newest for target in targets):
        return
    for target, text in generated().items():
        written = target.with_suffix(f".{os.getpid()}")
        written.write_text(text)
        written.replace(target)


if __name__ == "__main__":
    update()
