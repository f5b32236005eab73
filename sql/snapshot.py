#!/usr/bin/env python3
"""Render sql/ into Sqitch's scripts, its plan and jobq.sql.

    python3 sql/snapshot.py           write what has changed, and say what
    python3 sql/snapshot.py --check   write nothing; exit with 1 if it is not up to date

sql/{private,trigger,view,api}/NAME.sql is the one source of every function, trigger
and view. For each, deploy/, revert/ and verify/ get a self-contained script under the
same path. Tables, types, schemas and roles are written in deploy/ by hand and stand in
sqitch.plan in the order their author gave them.

The plan is never touched up to its last tag. After it, hand-written changes come first,
in their order, and then the sources: each after those that it needs when it is created,
else private, trigger, view, api and by name. A hand-written change that needs a source
says so as Sqitch wants it, `table/job [private/new_id]`, and is preceded by it.

A source names what it creates in `create or replace function|procedure|view|trigger`;
where that does not show, in a line such as `-- creates: function jobq_private.new_id`.

A source that a tag already holds is not changed before `sqitch rework NAME`; afterwards
its revert script brings the tagged version back.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("private", "trigger", "view", "api")
PLANNER = "jobq authors <jobq@example.org>"
TRANSACTION = re.compile(r"^(begin|commit);\n+", re.MULTILINE)
NAME = r"(?P<name>jobq(?:_private)?\.\w+)"
CREATES = re.compile(
    r"^[ \t]*create\s+(?:or\s+replace\s+)?"
    rf"(?P<kind>function|procedure|view)\s+{NAME}",
    re.MULTILINE | re.IGNORECASE,
)
CREATES_TRIGGER = re.compile(
    r"^[ \t]*create\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger\s+"
    rf"(?P<trigger>\w+)\s.*?\son\s+{NAME}",
    re.MULTILINE | re.IGNORECASE | re.DOTALL,
)
SAYS_CREATES = re.compile(rf"^-- creates: (?P<kind>\w+) {NAME}$", re.MULTILINE)
PLPGSQL_BODY = re.compile(
    r"(language\s+plpgsql.*?\sas\s+(\$\w*\$).*?)\bbegin\b.*?\2",
    re.DOTALL | re.IGNORECASE,
)


class SnapshotError(Exception):
    """The sources or the plan are not as this script needs them."""


@dataclass(frozen=True, order=True)
class Thing:
    """An object that a source creates; a trigger's name stands before its table's."""

    kind: str
    name: str
    trigger: str = ""


@dataclass(frozen=True)
class Source:
    """One file of sql/."""

    change: str
    text: str

    @cached_property
    def things(self) -> list[Thing]:
        """What the file creates, in order, each overload by itself."""
        text = without_comments(self.text)
        said = [Thing(*m.group("kind", "name")) for m in SAYS_CREATES.finditer(self.text)]
        found = [Thing(m["kind"].lower(), m["name"]) for m in CREATES.finditer(text)]
        triggers = [
            Thing("trigger", m["name"], m["trigger"]) for m in CREATES_TRIGGER.finditer(text)
        ]
        if not (said or found or triggers):
            raise SnapshotError(f"sql/{self.change}.sql creates nothing that I can see")
        return (said or found) + triggers

    @cached_property
    def mentions(self) -> set[str]:
        """The names that must exist when the file runs; PL/pgSQL bodies need none."""
        text = PLPGSQL_BODY.sub(r"\1\2", without_comments(self.text))
        return {m["name"] for m in re.finditer(rf"\b{NAME}\b", text)}

    @property
    def rank(self) -> tuple[int, str]:
        """The place among sources that do not need each other."""
        return (FOLDERS.index(self.change.split("/")[0]), self.change)


@dataclass
class Plan:
    """The lines of sqitch.plan: a head with pragmas, then changes and tags."""

    head: list[str] = field(default_factory=list)
    tagged: list[str] = field(default_factory=list)
    free: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, text: str) -> Plan:
        """Split a plan at its last tag."""
        lines = text.splitlines()
        head = [line for line in lines if line.startswith("%")]
        body = [line for line in lines if line.strip() and not line.startswith("%")]
        tags = [n for n, line in enumerate(body) if line.startswith("@")]
        end = tags[-1] + 1 if tags else 0
        return cls(head, body[:end], body[end:])

    def render(self) -> str:
        return "\n".join([*self.head, "", *self.tagged, *self.free]) + "\n"

    def scripts(self) -> list[str]:
        """Return the deploy scripts' paths without suffix, in the order of the plan.

        A change that stands twice, being reworked, has its first script under the name
        of the tag that followed it, as Sqitch names it.
        """
        lines = [*self.tagged, *self.free]
        last = {name_of(line): n for n, line in enumerate(lines)}
        paths = []
        for n, line in enumerate(lines):
            name = name_of(line)
            if line.startswith("@"):
                continue
            tag = "" if last[name] == n else next(t for t in lines[n:] if t[0] == "@")
            paths.append(name + name_of(tag))
        return paths


def name_of(line: str) -> str:
    """Return the change's or tag's name from a line of the plan."""
    return line.split(" ", maxsplit=1)[0]


def requirements(line: str) -> list[str]:
    """Return the changes that a line of the plan names between brackets."""
    brackets = re.match(r"\S+ \[([^]]*)\]", line)
    return brackets[1].split() if brackets else []


def without_comments(text: str) -> str:
    """Drop comments from the start or the middle of lines to their ends."""
    return re.sub(r"--.*$", "", text, flags=re.MULTILINE)


def read_sources(root: Path) -> list[Source]:
    """Read sql/, in no particular order.

    Raises:
        SnapshotError: two files create the same thing.
    """
    sources = [
        Source(f"{folder}/{path.stem}", path.read_text())
        for folder in FOLDERS
        for path in (root / "sql" / folder).glob("*.sql")
    ]
    makers: dict[Thing, str] = {}
    for source in sources:
        for thing in source.things:
            first = makers.setdefault(thing, source.change)
            if first != source.change:
                raise SnapshotError(
                    f"sql/{first}.sql and sql/{source.change}.sql make {thing.name}"
                )
    return sources


def arrange(plan: Plan, sources: list[Source]) -> Plan:
    """Add the sources that the plan lacks, and order what comes after the last tag."""
    tagged = {name_of(line) for line in plan.tagged}
    by_change = {source.change: source for source in sources}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = {name_of(line): line for line in plan.free}
    for change in by_change.keys() - tagged - lines.keys():
        lines[change] = f"{change} {now} {PLANNER} # {title(by_change[change])}"
    by_hand = [name_of(line) for line in plan.free if name_of(line) not in by_change]
    generated = sorted((s for s in sources if s.change in lines), key=lambda source: source.rank)
    needs = needed(generated) | {c: requirements(lines[c]) for c in by_hand}
    order = depth_first([*by_hand, *(s.change for s in generated)], needs)
    return Plan(plan.head, plan.tagged, [lines[change] for change in order])


def title(source: Source) -> str:
    """Return a note for the plan from the source's first line."""
    first = source.text.splitlines()[0].removeprefix("--").strip()
    return first.removeprefix("Purpose:").strip().rstrip(".") or source.change


def needed(sources: list[Source]) -> dict[str, list[str]]:
    """Return, for each source, the sources of the things that it mentions."""
    maker = {t.name: s.change for s in sources for t in s.things if not t.trigger}
    rank = {source.change: source.rank for source in sources}
    return {
        source.change: sorted(
            {maker[m] for m in source.mentions if m in maker} - {source.change},
            key=lambda change: rank[change],
        )
        for source in sources
    }


def depth_first(changes: list[str], needs: dict[str, list[str]]) -> list[str]:
    """Return the changes, each after what it needs; a circle is cut where it closes."""
    done: dict[str, None] = {}
    open_: set[str] = set()

    def visit(change: str) -> None:
        if change in done or change in open_ or change not in needs:
            return
        open_.add(change)
        for need in needs[change]:
            visit(need)
        done[change] = None

    for change in changes:
        visit(change)
    return list(done)


def render_deploy(source: Source) -> str:
    return (
        f"-- Deploy jobq:{source.change} to pg\n"
        f"-- Made by sql/snapshot.py from sql/{source.change}.sql: edit that.\n"
        f"begin;\nset local role jobq_owner;\n\n{source.text.strip()}\n\ncommit;\n"
    )


def render_revert(source: Source) -> str:
    """Drop what the source creates, the last made first, but triggers before all."""
    counts = Counter(source.things)
    last_first = list(reversed(counts))
    things = sorted(last_first, key=lambda thing: thing.trigger == "")
    drops = "\n".join(drop(thing, counts[thing]) for thing in things)
    return (
        f"-- Revert jobq:{source.change} from pg\n"
        f"begin;\nset local role jobq_owner;\n\n{drops}\n\ncommit;\n"
    )


def drop(thing: Thing, count: int) -> str:
    """Return the statement that drops a thing; overloads go one by one."""
    if thing.trigger:
        return f"drop trigger if exists {thing.trigger} on {thing.name};"
    if count == 1:
        return f"drop {thing.kind} if exists {thing.name};"
    schema, name = thing.name.split(".")
    return f"""do $$
declare
    _overload regprocedure;
begin
    for _overload in
        select p.oid
        from pg_catalog.pg_proc as p
        where p.pronamespace = '{schema}'::regnamespace
        and p.proname = '{name}'
    loop
        execute format('drop routine %s', _overload);
    end loop;
end
$$;"""


def render_verify(source: Source) -> str:
    counts = Counter(source.things)
    checks = "\n\n".join(check(thing, counts[thing]) for thing in sorted(counts))
    return f"-- Verify jobq:{source.change} on pg\nbegin;\n\n{checks}\n\nrollback;\n"


def check(thing: Thing, count: int) -> str:
    """Return a query that fails, dividing by zero, unless the thing is as it should be.

    A function is there, in all its overloads, and PUBLIC may execute none of them.
    """
    if thing.trigger:
        return f"""select 1 / count(*)
from pg_catalog.pg_trigger as t
where t.tgrelid = '{thing.name}'::regclass
and t.tgname = '{thing.trigger}';"""
    if thing.kind == "view":
        return f"""select * from {thing.name} where false;

select 1 / (not has_table_privilege('public', '{thing.name}', 'select'))::int;"""
    schema, name = thing.name.split(".")
    return f"""select 1 / (
    count(*) >= {count}
    and not bool_or(has_function_privilege('public', p.oid, 'execute'))
)::int
from pg_catalog.pg_proc as p
where p.pronamespace = '{schema}'::regnamespace
and p.proname = '{name}';"""


def render_single_file(plan: Plan, scripts: dict[str, str]) -> str:
    """Join the deploy scripts into one transaction.

    Raises:
        SnapshotError: the plan names a script that is not there.
    """
    parts = [
        "-- jobq in one file and one transaction, for those without Sqitch or Python:",
        "--     psql --file jobq.sql",
        "-- Sqitch can adopt the result: sqitch deploy --log-only",
        "-- Made by sql/snapshot.py from deploy/: edit sql/ and deploy/.",
        "\\set ON_ERROR_STOP on",
        "begin;",
        "set local client_min_messages = warning;",
    ]
    for path in plan.scripts():
        script = scripts[f"deploy/{path}.sql"]
        parts.append("\n" + TRANSACTION.sub("", script + "\n").strip())
        if "set local role" in script:
            parts.append("\nreset role;")
    return "\n".join([*parts, "\ncommit;"]) + "\n"


def render(root: Path) -> dict[str, str]:
    """Return the text of every file that is generated, by path.

    Raises:
        SnapshotError: the sources and the plan do not fit together.
    """
    sources = read_sources(root)
    plan = arrange(Plan.read((root / "sqitch.plan").read_text()), sources)
    files = {"sqitch.plan": plan.render()}
    reworked = {name_of(line) for line in plan.tagged}
    free = {name_of(line) for line in plan.free}
    for source in sources:
        if source.change not in free:
            refuse_change_of_tagged(root, source)
            continue
        files[f"deploy/{source.change}.sql"] = render_deploy(source)
        files[f"verify/{source.change}.sql"] = render_verify(source)
        files[f"revert/{source.change}.sql"] = (
            render_return(root, plan, source.change)
            if source.change in reworked
            else render_revert(source)
        )
    scripts = {
        name: files.get(name) or read_script(root, name)
        for name in (f"deploy/{path}.sql" for path in plan.scripts())
    }
    return files | {"jobq.sql": render_single_file(plan, scripts)}


def refuse_change_of_tagged(root: Path, source: Source) -> None:
    """Raise SnapshotError if a source differs from its script in a released version."""
    path = root / "deploy" / f"{source.change}.sql"
    if path.read_text() != render_deploy(source):
        raise SnapshotError(
            f"sql/{source.change}.sql has been released; first: "
            f"sqitch rework {source.change} --note '...'"
        )


def render_return(root: Path, plan: Plan, change: str) -> str:
    """Return the revert script of a reworked change: the version before it."""
    older = [path for path in plan.scripts() if path.startswith(f"{change}@")][-1]
    text = read_script(root, f"deploy/{older}.sql")
    return text.replace(f"-- Deploy jobq:{change} to pg", f"-- Revert jobq:{change} from pg")


def read_script(root: Path, name: str) -> str:
    """Read a script that the plan names.

    Raises:
        SnapshotError: it is not there, so neither is a source of its own.
    """
    path = root / name
    if not path.is_file():
        raise SnapshotError(f"sqitch.plan names {name}, which has no source and no script")
    return path.read_text()


def orphans(root: Path, files: dict[str, str]) -> list[str]:
    """Return what sql/ no longer makes: plan entries and scripts without a source."""
    planned = Plan.read(files["sqitch.plan"]).scripts()
    lost = [
        f"sqitch.plan: {path} has no source in sql/"
        for path in planned
        if path.split("/")[0] in FOLDERS
        and not (root / "sql" / f"{path.split('@')[0]}.sql").is_file()
    ]
    for kind in ("deploy", "revert", "verify"):
        lost += [
            f"{path.relative_to(root)} is not in sqitch.plan"
            for path in sorted((root / kind).glob("*/*.sql"))
            if str(path.relative_to(root / kind).with_suffix("")) not in planned
        ]
    return lost


def main(arguments: list[str]) -> int:
    """Write or check the generated files; return the exit status."""
    is_check = arguments == ["--check"]
    if arguments and not is_check:
        print(__doc__)
        return 2
    try:
        files = render(ROOT)
    except SnapshotError as error:
        print(f"snapshot: {error}", file=sys.stderr)
        return 1
    changed = [name for name, text in sorted(files.items()) if differs(ROOT / name, text)]
    lost = orphans(ROOT, files)
    for line in lost:
        print(f"snapshot: {line}", file=sys.stderr)
    for name in changed:
        print(f"{'stale' if is_check else 'wrote'} {name}")
        if not is_check:
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(files[name])
    return 1 if lost or (is_check and changed) else 0


def differs(path: Path, text: str) -> bool:
    return not path.is_file() or path.read_text() != text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
