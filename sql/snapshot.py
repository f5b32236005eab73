#!/usr/bin/env python3
"""Render sql/ into Sqitch's scripts, its plan and jobq.sql.

    python3 sql/snapshot.py           write what has changed, and say what
    python3 sql/snapshot.py --check   write nothing; exit with 1 if it is not up to date

sql/TOPIC/NAME.sql and sql/TOPIC/private/NAME.sql are the one source of every function,
trigger and view. For each topic, deploy/, revert/ and verify/ get one self-contained script
of that name. Tables, types, schemas and roles are written in deploy/ by hand and stand in
sqitch.plan in the order their author gave them.

The plan is never touched up to its last tag. After it, hand-written changes come first,
in their order, and then the topics by name, each after those that it needs when it is
created. A hand-written change that needs a topic says so as Sqitch wants it,
`grant_policies [grant job]`, and is preceded by it.

Where a source copies rows of a table it need not list their columns by hand. What stands
between two marks is filled in, in place, from the table as the deploy scripts leave it, or
from what a function `returns table (…)`. Columns that stand before the first mark, between
the same parentheses, or after its `but`, are left out; the second list is that of the first:

    state,
    -- columns of jobq_private.job but lane, place:
    -- end
    -- the same of j:
    -- end

A source names what it creates in `create or replace function|procedure|view|trigger`;
where that does not show, in a line such as `-- creates: function jobq_private.new_id`.

A topic that a tag already holds is not changed before `sqitch rework TOPIC`. Its script
then also drops what the tagged version had and the new one has not, and what has other
parameters now; its revert script brings the tagged version back in the same way.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ("deploy", "revert", "verify")
PLANNER = "jobq authors <jobq@example.org>"
TRANSACTION = re.compile(r"^(begin|commit);\n+", re.MULTILINE)
NAME = r"(?P<name>jobq(?:_\w+)?\.\w+)"
CREATES = re.compile(
    r"^[ \t]*create\s+(?:or\s+replace\s+)?"
    rf"(?P<kind>function|procedure|view)\s+{NAME}",
    re.MULTILINE | re.IGNORECASE,
)
SIGNATURE = re.compile(
    rf"^[ \t]*create\s+or\s+replace\s+(?:function|procedure)\s+{NAME}"
    r"(?P<signature>.*?)\blanguage\b",
    re.MULTILINE | re.IGNORECASE | re.DOTALL,
)
CREATES_TRIGGER = re.compile(
    r"^[ \t]*create\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger\s+"
    rf"(?P<trigger>\w+)\s.*?\son\s+{NAME}",
    re.MULTILINE | re.IGNORECASE | re.DOTALL,
)
SAYS_CREATES = re.compile(rf"^-- creates: (?P<kind>\w+) {NAME}$", re.MULTILINE)
MARKED = re.compile(
    rf"^(?P<head>(?P<indent> *)-- (?:columns of {NAME}(?: but (?P<but>[^:]+))?"
    r"|the same of (?P<alias>\w+)):\n).*?(?P<end>^ *-- end\n)",
    re.MULTILINE | re.DOTALL,
)
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
class Code:
    """SQL text that creates things: one source, or all of a topic's."""

    text: str

    @cached_property
    def things(self) -> list[Thing]:
        """What the text creates, in order, each overload by itself."""
        text = without_comments(self.text)
        said = [Thing(*m.group("kind", "name")) for m in SAYS_CREATES.finditer(self.text)]
        found = [Thing(m["kind"].lower(), m["name"]) for m in CREATES.finditer(text)]
        triggers = [
            Thing("trigger", m["name"], m["trigger"]) for m in CREATES_TRIGGER.finditer(text)
        ]
        return list(dict.fromkeys(said)) + [t for t in found if t not in said] + triggers

    @cached_property
    def signatures(self) -> dict[str, tuple[str, ...]]:
        """The parameters and results of each function, by its name, without layout."""
        found: dict[str, tuple[str, ...]] = {}
        for match in SIGNATURE.finditer(without_comments(self.text)):
            signature = " ".join(match["signature"].split())
            found[match["name"]] = (*found.get(match["name"], ()), signature)
        return found

    @cached_property
    def mentions(self) -> set[str]:
        """The names that must exist when the text runs; PL/pgSQL bodies need none."""
        text = PLPGSQL_BODY.sub(r"\1\2", without_comments(self.text))
        return {m["name"] for m in re.finditer(rf"\b{NAME}\b", text)}


@dataclass(frozen=True)
class Source:
    """One file of sql/; its path is below that folder, without suffix."""

    path: str
    code: Code

    @property
    def topic(self) -> str:
        return self.path.split("/")[0]

    @property
    def rank(self) -> tuple[bool, str]:
        """The place among sources that do not need each other: private ones first."""
        return ("/private/" not in self.path, self.path)


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
        """Return the deploy scripts' names without suffix, in the order of the plan.

        A change that stands twice, being reworked, has its first script under the name
        of the tag that followed it, as Sqitch names it.
        """
        lines = [*self.tagged, *self.free]
        last = {name_of(line): n for n, line in enumerate(lines)}
        names = []
        for n, line in enumerate(lines):
            name = name_of(line)
            if line.startswith("@"):
                continue
            tag = "" if last[name] == n else next(t for t in lines[n:] if t[0] == "@")
            names.append(name + name_of(tag))
        return names


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
    """Read sql/, topic by topic, in each what is needed first.

    Raises:
        SnapshotError: a file creates nothing, or two create the same thing.
    """
    paths = [*(root / "sql").glob("*/*.sql"), *(root / "sql").glob("*/private/*.sql")]
    definitions = read_definitions(root)
    sources = [
        Source(
            path.relative_to(root / "sql").with_suffix("").as_posix(),
            Code(fill(path.read_text(), definitions)),
        )
        for path in paths
    ]
    makers: dict[Thing, str] = {}
    for source in sources:
        if not source.code.things:
            raise SnapshotError(f"sql/{source.path}.sql creates nothing that I can see")
        for thing in source.code.things:
            first = makers.setdefault(thing, source.path)
            if first != source.path:
                raise SnapshotError(f"sql/{first}.sql and sql/{source.path}.sql make {thing.name}")
    by_path = {source.path: source for source in sorted(sources, key=lambda s: (s.topic, s.rank))}
    order = in_need({path: source.code for path, source in by_path.items()})
    return sorted((by_path[path] for path in order), key=lambda source: source.topic)


def fill(text: str, definitions: str) -> str:
    """Return a source with the lists of columns between its marks as they are now.

    Raises:
        SnapshotError: a mark names a table or column that is not there.
    """
    columns: list[str] = []

    def filled(mark: re.Match[str]) -> str:
        if mark["name"]:
            columns[:] = columns_of(mark["name"], definitions)
            left_out = re.findall(r"\w+", mark["but"] or "")
            if lost := [name for name in left_out if name not in columns]:
                raise SnapshotError(f"{mark['name']} has no column {lost[0]}")
            left_out += re.findall(r"\w+", text[: mark.start()].rpartition("(")[2])
            columns[:] = [name for name in columns if name not in left_out]
        prefix = f"{mark['alias']}." if mark["alias"] else ""
        lines = textwrap.wrap(", ".join(prefix + name for name in columns), 80)
        return mark["head"] + "".join(f"{mark['indent']}{line}\n" for line in lines) + mark["end"]

    return MARKED.sub(filled, text)


def columns_of(name: str, definitions: str) -> list[str]:
    """Return the columns of a table, or of what a function returns as one, in their order.

    Raises:
        SnapshotError: nothing of that name has columns.
    """
    made = re.search(
        rf"create (?:table|or replace function) {name}\b.*?(?:returns table )?\(\n(.*?)^\)",
        definitions,
        re.MULTILINE | re.DOTALL,
    )
    if made is None:
        raise SnapshotError(f"{name} has no columns that I can see")
    columns = re.findall(r"(?:^|,)\s*(?!constraint\b)([a-z_]+) [a-z]", made[1])
    for change in re.findall(rf"alter table {name}\b(.*?);", definitions, re.DOTALL):
        columns += re.findall(r"add column (\w+)", change)
        columns = [c for c in columns if c not in re.findall(r"drop column (\w+)", change)]
    return columns


def read_definitions(root: Path) -> str:
    """Return the scripts that are written by hand, in the plan's order, and all sources."""
    plan = Plan.read((root / "sqitch.plan").read_text())
    by_hand = [n for n in plan.scripts() if not (root / "sql" / n.partition("@")[0]).is_dir()]
    paths = [root / "deploy" / f"{name}.sql" for name in by_hand]
    paths += sorted((root / "sql").glob("**/*.sql"))
    return "\n".join(without_comments(path.read_text()) for path in paths if path.is_file())


def read_topics(root: Path) -> dict[str, Code]:
    """Return each topic's sources as one text, by its name.

    Raises:
        SnapshotError: the sources cannot be read together.
    """
    return join_topics(read_sources(root))


def join_topics(sources: list[Source]) -> dict[str, Code]:
    """Return the sources of each topic as one text, by its name."""
    texts: dict[str, list[str]] = {}
    for source in sources:
        texts.setdefault(source.topic, []).append(source.code.text.strip())
    return {topic: Code("\n\n".join(parts)) for topic, parts in texts.items()}


def in_need(codes: dict[str, Code]) -> list[str]:
    """Return the names of texts, each after those whose things it mentions."""
    return depth_first(list(codes), needed(codes))


def needed(codes: dict[str, Code]) -> dict[str, list[str]]:
    """Return for each text, by name, the others that make what it mentions."""
    maker = {t.name: name for name, code in codes.items() for t in code.things if not t.trigger}
    return {
        name: [n for n in codes if n != name and n in {maker.get(m) for m in code.mentions}]
        for name, code in codes.items()
    }


def depth_first(names: list[str], needs: dict[str, list[str]]) -> list[str]:
    """Return the names, each after what it needs.

    Raises:
        SnapshotError: some need each other.
    """
    done: dict[str, None] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise SnapshotError(f"these need each other: {' '.join([*path, name])}")
        if name in done or name not in needs:
            return
        for need in needs[name]:
            visit(need, (*path, name))
        done[name] = None

    for name in names:
        visit(name, ())
    return list(done)


def arrange(plan: Plan, topics: dict[str, Code]) -> Plan:
    """Add the topics that the plan lacks, and order what comes after the last tag."""
    tagged = {name_of(line) for line in plan.tagged}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = {name_of(line): line for line in plan.free}
    for topic in topics.keys() - tagged - lines.keys():
        lines[topic] = f"{topic} {now} {PLANNER} # Functions, triggers and views of sql/{topic}"
    by_hand = [name_of(line) for line in plan.free if name_of(line) not in topics]
    generated = sorted(topics.keys() & lines.keys())
    needs = needed(topics) | {c: requirements(lines[c]) for c in by_hand}
    order = depth_first([*by_hand, *generated], {name: needs[name] for name in lines})
    return Plan(plan.head, plan.tagged, [lines[name] for name in order])


def script(verb: str, topic: str, body: str) -> str:
    """Return a script of a topic as one transaction of jobq's owner."""
    words = {"deploy": "Deploy jobq:{} to pg", "revert": "Revert jobq:{} from pg"}
    return (
        f"-- {words[verb].format(topic)}\n"
        f"-- Made by sql/snapshot.py from sql/{topic}/: edit that.\n"
        f"begin;\nset local role jobq_owner;\n\n{body.strip()}\n\ncommit;\n"
    )


def replace(old: Code, new: Code) -> str:
    """Return the statements that bring a topic from one version to another."""
    changed = [
        name
        for name, signature in old.signatures.items()
        if new.signatures.get(name, signature) != signature
    ]
    first = [drop_overloads(name) for name in changed]
    gone = [thing for thing in old.things if thing not in new.things]
    return "\n\n".join([*first, new.text.strip(), *drops(gone)])


def drops(things: list[Thing]) -> list[str]:
    """Return what drops things, the last made first, but triggers before all."""
    counts = Counter(things)
    last_first = list(reversed(counts))
    triggers = [thing for thing in last_first if thing.trigger]
    others = [thing for thing in last_first if not thing.trigger]
    return [drop(thing, counts[thing]) for thing in triggers + others]


def drop(thing: Thing, count: int) -> str:
    """Return the statement that drops a thing; overloads go one by one."""
    if thing.trigger:
        return f"drop trigger if exists {thing.trigger} on {thing.name};"
    if count == 1:
        return f"drop {thing.kind} if exists {thing.name};"
    return drop_overloads(thing.name)


def drop_overloads(qualified: str) -> str:
    """Return a block that drops every function of a name."""
    schema, name = qualified.split(".")
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


def render_verify(topic: str, code: Code) -> str:
    """Return a script that fails, naming what is missing, open to PUBLIC, or both."""
    counts = Counter(code.things)
    rows = ",\n        ".join(
        f"('{thing.kind}', '{thing.name}', '{thing.trigger}', {counts[thing]})"
        for thing in sorted(counts)
    )
    return f"""-- Verify jobq:{topic} on pg
begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger, many) as (
        values
        {rows}
    )
    select string_agg(w.kind || ' ' || w.name || ' ' || w.trigger, ', ') into _wrong
    from wanted as w
    where case w.kind
        when 'trigger' then not exists (
            select from pg_catalog.pg_trigger as t
            where t.tgrelid = to_regclass(w.name) and t.tgname = w.trigger
        )
        when 'view' then to_regclass(w.name) is null
            or has_table_privilege('public', to_regclass(w.name), 'select')
        else w.many > (
            select count(*)
            from pg_catalog.pg_proc as p
            join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
            where format('%s.%s', n.nspname, p.proname) = w.name
            and not has_function_privilege('public', p.oid, 'execute')
        )
    end;
    if _wrong is not null then
        raise exception 'missing, or open to PUBLIC: %', _wrong;
    end if;
end
$$;

rollback;
"""


def render_single_file(plan: Plan, scripts: dict[str, str]) -> str:
    """Join the deploy scripts into one transaction."""
    parts = [
        "-- jobq in one file and one transaction, for those without Sqitch or Python:",
        "--     psql --file jobq.sql",
        "-- Sqitch can adopt the result: sqitch deploy --log-only",
        "-- Made by sql/snapshot.py from deploy/: edit sql/ and deploy/.",
        "\\set ON_ERROR_STOP on",
        "begin;",
        "set local client_min_messages = warning;",
    ]
    for name in plan.scripts():
        text = scripts[f"deploy/{name}.sql"]
        parts.append("\n" + TRANSACTION.sub("", text + "\n").strip())
        if "set local role" in text:
            parts.append("\nreset role;")
    return "\n".join([*parts, "\ncommit;"]) + "\n"


def render(root: Path) -> dict[str, str]:
    """Return the text of every file that is generated, by path.

    Raises:
        SnapshotError: the sources and the plan do not fit together.
    """
    sources = read_sources(root)
    topics = join_topics(sources)
    plan = arrange(Plan.read((root / "sqitch.plan").read_text()), topics)
    files = {"sqitch.plan": plan.render()}
    files |= {f"sql/{source.path}.sql": source.code.text for source in sources}
    free = {name_of(line) for line in plan.free}
    for topic, code in topics.items():
        files |= render_topic(root, plan, topic, code, is_free=topic in free)
    scripts = {
        name: files.get(name) or read_script(root, name)
        for name in (f"deploy/{script}.sql" for script in plan.scripts())
    }
    return files | {"jobq.sql": render_single_file(plan, scripts)}


def render_topic(
    root: Path, plan: Plan, topic: str, code: Code, *, is_free: bool
) -> dict[str, str]:
    """Return a topic's three scripts, or none when a tag holds it as it is.

    Raises:
        SnapshotError: a tag holds it, and it has changed.
    """
    tagged = [name for name in plan.scripts() if name.startswith(f"{topic}@")]
    if not is_free:
        if read_script(root, f"deploy/{topic}.sql") != script("deploy", topic, code.text):
            raise SnapshotError(
                f"sql/{topic}/ has been released; first: sqitch rework {topic} --note '...'"
            )
        return {}
    older = Code(read_script(root, f"deploy/{tagged[-1]}.sql")) if tagged else Code("")
    back = Code(body_of(older.text))
    revert = replace(code, back) if tagged else "\n".join(drops(code.things))
    return {
        f"deploy/{topic}.sql": script("deploy", topic, replace(back, code)),
        f"revert/{topic}.sql": script("revert", topic, revert),
        f"verify/{topic}.sql": render_verify(topic, code),
    }


def body_of(text: str) -> str:
    """Return what stands in a script of a topic between its head and its commit."""
    return text.partition("set local role jobq_owner;")[2].rpartition("commit;")[0].strip()


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
    """Return the scripts that the plan does not name."""
    planned = Plan.read(files["sqitch.plan"]).scripts()
    return [
        f"{path.relative_to(root)} is not in sqitch.plan"
        for verb in SCRIPTS
        for path in sorted((root / verb).glob("*.sql"))
        if path.stem not in planned
    ]


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
            (ROOT / name).write_text(files[name])
    return 1 if lost or (is_check and changed) else 0


def differs(path: Path, text: str) -> bool:
    return not path.is_file() or path.read_text() != text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
