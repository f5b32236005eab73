"""Render the reference: a chapter for each topic, from the catalog and the sources' headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from contract import Contracts, Glossary, Promise

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = """
    select n.nspname, p.proname, obj_description(p.oid, 'pg_proc'),
        pg_get_function_result(p.oid),
        (select string_agg(r.rolname, ', ' order by r.rolname)
         from aclexplode(p.proacl) as a join pg_roles as r on r.oid = a.grantee
         where r.rolname <> 'jobq_owner'),
        (select coalesce(json_agg(json_build_array(
             a.name, format_type(a.type, null), coalesce(p.proargmodes[a.n], 'i'),
             pg_get_function_arg_default(p.oid, a.n::integer)) order by a.n), '[]')
         from unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[]))
             with ordinality as a (name, type, n))
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    where n.nspname in ('jobq', 'jobq_http', 'jobq_internal')
    order by p.proname
"""
RELATIONS = """
    select n.nspname, c.relname, c.relkind,
        coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type')),
        (select json_agg(json_build_array(a.attname, format_type(a.atttypid, null))
             order by a.attnum)
         from pg_attribute as a where a.attrelid = c.oid and a.attnum > 0)
    from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
    where n.nspname in ('jobq', 'jobq_http', 'jobq_internal') and c.relkind in ('v', 'c')
    order by c.relname
"""
SHORT_TYPES = {
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
}
HEADLINE = "<!-- made by `make docs` from the headers of sql/ and docs/glossary.toml -->"


class Parameter(NamedTuple):
    """An argument or a column of a function's answer; a mode of i is an argument."""

    name: str
    type: str
    mode: str = "i"
    default: str | None = None

    @property
    def short_type(self) -> str:
        """Its type as people write it."""
        return SHORT_TYPES.get(self.type, self.type)

    @property
    def default_clause(self) -> str:
        """Its default as people write it; the cast goes without saying."""
        if self.default is None:
            return ""
        bare = re.sub(r"::[a-z ]+(\[\])?$", "", self.default)
        return f" default {'null' if bare == 'NULL' else bare}"


class Unexplained(Exception):  # noqa: N818
    """Something has no description in its header nor in the glossary."""


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Render rows as a Markdown table."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Function:
    """A public function, as the catalog and its source have it."""

    schema: str
    name: str
    comment: str
    result: str
    roles: str | None
    parameters: list[Parameter]
    promise: Promise

    @property
    def arguments(self) -> list[Parameter]:
        """What it takes."""
        return [p for p in self.parameters if p.mode == "i"]

    @property
    def columns(self) -> list[Parameter]:
        """What it returns, where that has names."""
        return [p for p in self.parameters if p.mode != "i"]


class Reference:
    """The catalog, the sources and the glossary, from which the page is made."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.contracts = Contracts(ROOT)
        self.glossary = Glossary(ROOT)
        self.about: str = self.glossary.text["about"]
        self.topics: dict[str, str] = self.glossary.text["topics"]
        self.functions = {
            f"{schema}.{name}": Function(
                schema, name, comment, result, roles,
                [Parameter(*p) for p in parameters], self.contracts.by_name[f"{schema}.{name}"],
            )
            for schema, name, comment, result, roles, parameters in connection.execute(FUNCTIONS)
        }  # fmt: skip
        self.relations = connection.execute(RELATIONS).fetchall()

    def page(self, errors: str, matrix: str) -> str:
        """Return the whole page; the arguments are its tables of errors and of roles."""
        found = {f.promise.source.topic for f in self.functions.values()}
        order = [t for t in self.topics if t in found] + sorted(found - self.topics.keys())
        parts = [f"{HEADLINE}\n# Reference\n\n{self.about}"]
        parts.append("\n".join(f"- [{t}](#topic-{t}): {self.listing(t)}" for t in order) + "\n")
        parts += [self.chapter(topic) for topic in order]
        parts.append(f"## Errors\n\n{self.topics['error'].strip()}\n\n{errors}\n")
        parts.append(f"## Functions by role\n\n{matrix}\n")
        return "\n".join(parts)

    def of_topic(self, topic: str) -> list[Function]:
        """The functions of a topic, by name."""
        return [f for f in self.functions.values() if f.promise.source.topic == topic]

    def listing(self, topic: str) -> str:
        """The names of a topic's functions, each a link."""
        return ", ".join(f"[{f.name}](#{f.name})" for f in self.of_topic(topic))

    def chapter(self, topic: str) -> str:
        """Render a topic: what it is about, its functions, its views and types."""
        parts = [f"## Topic {topic}\n", self.topics.get(topic, "").strip() + "\n"]
        parts += [self.function(function) for function in self.of_topic(topic)]
        parts += [
            self.relation(name, comment, [Parameter(*c) for c in columns])
            for name, comment, columns in self.relations_of(topic)
        ]
        return "\n".join(parts)

    def relations_of(self, topic: str) -> list[tuple[str, str, list[Any]]]:
        """The views of a topic, and the row types that functions of it return."""
        results = {f.result.removeprefix("SETOF ") for f in self.of_topic(topic)}
        chosen = []
        for schema, name, kind, comment, columns in self.relations:
            promise = self.contracts.by_name.get(f"{schema}.{name}")
            is_here = promise.source.topic == topic if promise else f"{schema}.{name}" in results
            if is_here:
                what = "View" if kind == "v" else "Rows"
                chosen.append((f"{schema}.{name}", f"{what}: {comment}", columns))
        return chosen

    def relation(self, name: str, comment: str, columns: list[Parameter]) -> str:
        """Render a view or a row type."""
        promise = self.contracts.by_name.get(name)
        rows = [(f"`{c.name}`", c.short_type, self.column(promise, c.name, name)) for c in columns]
        return f"### {name}\n\n{comment}\n\n{table(('column', 'type', 'is'), rows)}\n"

    def function(self, function: Function) -> str:
        """Render a function: signature, meaning, arguments, answer, errors, example."""
        header = function.promise.header
        signature = "".join(
            f"\n    {p.name} {p.short_type}{p.default_clause}," for p in function.arguments
        ).rstrip(",")
        result = re.sub(r"^TABLE\((.*)\)$", "table", function.result)
        for long, short in SHORT_TYPES.items():
            result = result.replace(long, short)
        closing = "\n" if signature else ""
        parts = [
            f"### {function.name}\n",
            f"```sql\n{function.schema}.{function.name}({signature}{closing}) → {result}\n```\n",
            f"{function.comment}\n",
            *self.arguments(function),
            *self.answer(function),
            f"{sentence(header.texts['Invariant'])}\n" if "Invariant" in header.texts else "",
            f"Errors: {self.errors(function)}.\n",
            f"May be called by: {function.roles or 'jobq_owner'}.\n",
            f"```sql\n{self.example(function)}\n```\n",
        ]
        return "\n".join(part for part in parts if part)

    def arguments(self, function: Function) -> list[str]:
        """Render what a function takes, and the members of JSON arguments.

        Raises:
            Unexplained: the header describes an argument or a column that is not there.
        """
        named = function.promise.header.named
        for kind, parameters in (("Argument", function.arguments), ("Column", function.columns)):
            for name in named.get(kind, {}).keys() - {p.name for p in parameters}:
                raise Unexplained(f"{function.promise.name}: there is no {kind} {name}")
        if not function.arguments:
            return []
        rows = [(f"`{p.name}`", self.argument(function, p)) for p in function.arguments]
        return [
            table(("argument", "is"), rows) + "\n",
            *(
                self.members(function, p.name)
                for p in function.arguments
                if p.name in function.promise.header.named.get("Members", {})
            ),
        ]

    def argument(self, function: Function, given: Parameter) -> str:
        """What an argument means.

        Raises:
            Unexplained: nothing says it.
        """
        default = given.default_clause.removeprefix(" default ")
        said = self.glossary.argument(function.promise, given.name, default)
        return in_cell(said, f"{function.promise.name}: Argument {given.name}")

    def column(self, promise: Promise | None, column: str, of: str) -> str:
        """What a column of a function, a view or a row type means.

        Raises:
            Unexplained: nothing says it.
        """
        return in_cell(self.glossary.column(promise, column), f"{of}: Column {column}")

    def answer(self, function: Function) -> list[str]:
        """Render what a function returns."""
        header = function.promise.header
        parts = []
        if "Returns" in header.texts:
            parts.append(f"Returns {header.texts['Returns'].rstrip('.')}.\n")
        elif not function.columns and function.result != "void":
            raise Unexplained(f"{function.schema}.{function.name}: Returns")
        if function.columns:
            rows = [
                (f"`{c.name}`", c.short_type, self.column(function.promise, c.name, function.name))
                for c in function.columns
            ]
            parts.append(table(("column", "type", "is"), rows) + "\n")
        names = [c.name for c in function.columns] + ["return"]
        parts += [self.members(function, n) for n in names if n in header.named.get("Members", {})]
        return parts

    def members(self, function: Function, name: str) -> str:
        """Render the members of JSON: a function's parameters, or what a document is built of."""
        said = function.promise.header.named["Members"][name]
        source, _, without = said.rstrip(".").partition(", but not ")
        what = "The document" if name in {"item", "return"} else f"`{name}`"
        builder = self.contracts.by_name.get(f"jobq_private.{source}") or function.promise
        if other := self.functions.get(f"jobq.{source}"):
            needed = [p.name for p in other.arguments if not p.default and p.name != without]
            optional = [p.name for p in other.arguments if p.default and p.name != without]
            return (
                f"Members of {what}, named and meant as the arguments of "
                f"[{source}](#{source}), durations and instants as text: {code(needed)} "
                f"and, where wanted, {code(optional)}. Any other is refused.\n"
            )
        return f"{what} has the members {code(document_members(builder.code))}.\n"

    def errors(self, function: Function) -> str:
        """The errors of a function by SQLSTATE with their symbolic codes."""
        promised = self.contracts.promised(f"{function.schema}.{function.name}").items()
        return "; ".join(f"`{s}` {', '.join(codes)}".strip() for s, codes in promised) or "none"

    def example(self, function: Function) -> str:
        """The example of a function.

        Raises:
            Unexplained: it has none.
        """
        if "Example" not in function.promise.header.texts:
            raise Unexplained(f"{function.promise.name}: Example")
        return function.promise.header.texts["Example"]


def in_cell(meaning: str | None, name: str) -> str:
    """Return a meaning for a cell of a table.

    Raises:
        Unexplained: there is none.
    """
    if meaning is None:
        raise Unexplained(name)
    return meaning.rstrip(".").replace("|", "\\|")


def document_members(source: str) -> list[str]:
    """The members of a document: the columns of a row, or the arguments of json_build_object."""
    if "row_to_json(" in source:
        return columns(source.partition("from (\n")[2].lstrip().removeprefix("select"))
    inside = source.partition("json_build_object(")[2]
    found = re.findall(r"^( +)'(\w+)',", inside, re.MULTILINE)
    outermost = min(len(indent) for indent, _ in found)
    return [name for indent, name in found if len(indent) == outermost]


def columns(select: str) -> list[str]:
    """The names of the columns of a select, up to its from or its closing parenthesis."""
    names, depth, text = [], 0, ""
    for sign in select:
        depth += (sign in "([") - (sign in ")]")
        if depth < 0 or (depth == 0 and text.endswith(" from")):
            break
        if sign == "," and depth == 0:
            names.append(text)
            text = ""
        else:
            text += sign
    return [re.findall(r"\w+", name.removesuffix("from"))[-1] for name in (*names, text)]


def code(names: list[str]) -> str:
    """Join names as code."""
    return ", ".join(f"`{name}`" for name in names)


def sentence(text: str) -> str:
    """Begin with a capital letter."""
    return text[:1].upper() + text[1:]
