#!/usr/bin/env python3
"""Build what is generated from sql/ and deploy/, with nothing but Python.

    render.py [FLOOR]             print jobq.sql; with floor 1 the core, jobq-core.sql
    render.py deploy|revert|verify TOPIC[@TAG]    print a script of a topic, for Sqitch
    render.py --update            write sqitch.plan, the topics' scripts and the lists of columns
    render.py --check             fail where --update would change something, or rendering fails
    render.py --release TAG       tag the plan and store what the release has changed

sql/TOPIC/NAME.sql and sql/TOPIC/private/NAME.sql are the source of every function, view and
trigger. deploy/TOPIC.sql, revert/TOPIC.sql and verify/TOPIC.sql contain no SQL: they run what
this program prints. Tables, types, schemas and roles are written by hand in deploy/.

The Purpose in the header of a view or public function is its comment in the catalog, unless the
source has a `comment on` of its own.

Bodies of functions are not checked while they are installed. So a source needs another one
only for what it names outside of bodies: a view, a type, or the function of a trigger.

In sqitch.plan, hand-written changes keep their order, and topics follow by floor and name,
each after those that it needs. A hand-written change that needs a topic names it,
`grant_policies [grant job]`. Lines up to the last tag never change. A topic that has changed
since gets a second line: its script holds only the sources that have changed, and drops what
the release had and the sources do not have any more. The revert script brings the release back.
A release stores the deploy scripts. Those to revert and verify it are rendered from these.

Where a source copies rows of a table, --update fills in the columns between these marks.
Columns that stand before the first mark, between the same parentheses, or after its `but`, are
left out. The second list is that of the first:

    state,
    -- columns of jobq_private.job but transition_slot, place:
    -- end
    -- the same of j:
    -- end

A source that creates something inside of a DO block says so in a line of its own:
`-- creates: function jobq_private.new_id`.
"""

from __future__ import annotations

import hashlib
import re
import sys
import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A topic refers only to topics of its own floor and of lower ones.
FLOORS = {
    1: "error audit setting schema job work",
    2: "schedule limit workflow delivery handler grant",
    3: "admin wiring",
    4: "http shard",
}
FLOOR_OF = {topic: floor for floor, topics in FLOORS.items() for topic in topics.split()}
PLANNER = "jobq authors <jobq@example.org>"
VERBS = {"deploy": "Deploy jobq:{} to pg", "revert": "Revert jobq:{} from pg",
         "verify": "Verify jobq:{} on pg"}  # fmt: skip
STUB = r"""{title}
\set script `python3 -IS sql/render.py {verb} {topic}`
select 1 / (:'script' <> '')::int as rendered \gset
:script
"""
# A new database is of no release.
IS_NEW = r"""select to_regclass('jobq_private.job') is null as is_new \gset
\if :is_new
\set release 0
\else
select jobq.version() as release \gset
\endif"""
IS_OLDER = r"select string_to_array(:'release', '.')::integer[] <= '{{{}}}' as is_older \gset"
# Sqitch's template has them in capitals.
BRACKETS = re.compile(r"^(begin|commit);\n+", re.MULTILINE | re.IGNORECASE)
HEAD = "begin;\nset local role jobq_owner;\nset local check_function_bodies = off;\n\n"
# What stands beside the sources in a script.
BESIDE = re.compile(r"^(?:lock table|drop \w+ if exists) [^;]*;\n*", re.MULTILINE)
DROPPED = re.compile(
    r"^drop (?P<kind>function|procedure|view|trigger) if exists (?P<name>[\w.]+)"
    r"(?: on (?P<on>[\w.]+))?;$",
    re.MULTILINE,
)
NAME = r"(?P<name>jobq(?:_\w+)?\.\w+)"
DO = re.compile(r"\bdo\s+(\$\w*\$)(.*?)\1;", re.DOTALL)
OPAQUE = re.compile(r"--[^\n]*|(\$(?:[a-z_]\w*)?\$).*?\1|'(?:[^']|'')*'", re.DOTALL)
# Blanks around these mean nothing.
BLANKS = re.compile(r"([(),;])")
CREATES = re.compile(
    rf"\bcreate\s+(?:or\s+replace\s+)?(?P<kind>function|procedure|view)\s+{NAME}", re.IGNORECASE
)
CREATES_TRIGGER = re.compile(
    r"\bcreate\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger\s+(?P<trigger>\w+)\s[^;]*?"
    rf"\son\s+{NAME}",
    re.IGNORECASE,
)
PURPOSE = re.compile(r"^-- Purpose: (.*\n(?:-- (?![A-Z]\w+(?: \w+)?: ).*\n)*)", re.MULTILINE)
SAYS_CREATES = re.compile(rf"^-- creates: (?P<kind>\w+) {NAME}$", re.MULTILINE)
AFTER_SIGNATURE = re.compile(
    r"[()]|\b(?:language|immutable|stable|volatile|strict|called|leakproof|security|parallel|cost"
    r"|rows|set|as|begin|return)\b",
    re.IGNORECASE,
)
MARKED = re.compile(
    rf"^(?P<head>(?P<indent> *)-- (?:columns of {NAME}(?: but (?P<but>[^:]+))?"
    r"|the same of (?P<alias>\w+)):\n).*?(?P<end>^ *-- end\n)",
    re.MULTILINE | re.DOTALL,
)


class RenderError(Exception):
    """The sources or the plan are not as this program needs them."""


@dataclass(frozen=True, order=True)
class Thing:
    """An object that a source creates; the name of a trigger is that of its table."""

    kind: str
    name: str
    trigger: str = ""


@dataclass(frozen=True)
class Code:
    """SQL text that creates things: one source, or all sources of a topic."""

    text: str

    @cached_property
    def visible(self) -> str:
        """The text without comments, bodies of functions and other strings."""
        return OPAQUE.sub("''", DO.sub(r"\2;", self.text))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The text without layout and comments, but for those in bodies of functions."""
        said, at = list[str](), 0
        for opaque in OPAQUE.finditer(self.text):
            said += words_of(self.text[at : opaque.start()])
            said += [] if opaque[0].startswith("--") else [opaque[0]]
            at = opaque.end()
        return (*said, *words_of(self.text[at:]))

    @cached_property
    def things(self) -> list[Thing]:
        """What the text creates, in order, but triggers last."""
        said = [Thing(*m.group("kind", "name")) for m in SAYS_CREATES.finditer(self.text)]
        found = [Thing(m["kind"].lower(), m["name"]) for m in CREATES.finditer(self.visible)]
        triggers = [
            Thing("trigger", m["name"], m["trigger"])
            for m in CREATES_TRIGGER.finditer(self.visible)
        ]
        return said + [thing for thing in found if thing not in said] + triggers

    @cached_property
    def signatures(self) -> dict[str, str]:
        """The parameters and the result of each function, by its name."""
        return {
            m["name"]: signature(self.visible[m.end() :])
            for m in CREATES.finditer(self.visible)
            if m["kind"].lower() != "view"
        }

    @cached_property
    def mentions(self) -> set[str]:
        """The names that must exist when the text runs."""
        return {m["name"] for m in re.finditer(rf"\b{NAME}\b", self.visible)}


# Parsing is most of what rendering costs, and each script of a topic needs all of its sources.
code_of = cache(Code)


def signature(text: str) -> str:
    """Return what stands between the name of a function and its attributes or body."""
    depth = 0
    for mark in AFTER_SIGNATURE.finditer(text):
        if mark[0] in "()":
            depth += 1 if mark[0] == "(" else -1
        elif depth == 0:
            return " ".join(words_of(text[: mark.start()]))
    return text


def words_of(text: str) -> list[str]:
    """Return the words and marks of a text without strings."""
    return BLANKS.sub(r" \1 ", text).split()


@dataclass(frozen=True)
class Source:
    """One file of sql/; its path is below that folder, without suffix."""

    path: str
    code: Code

    @property
    def topic(self) -> str:
        return self.path.split("/")[0]

    @cached_property
    def comment(self) -> str:
        """The statement that stores its Purpose in the catalog; none for private functions."""
        shown = [
            thing
            for thing in self.code.things
            if thing.kind == "view"
            or (thing.kind == "function" and not thing.name.startswith("jobq_private."))
        ]
        purpose = PURPOSE.search(self.code.text)
        if not shown or purpose is None or "\ncomment on " in self.code.text:
            return ""
        text = " ".join(purpose[1].replace("\n-- ", " ").split()).replace("'", "''")
        return f"comment on {shown[0].kind} {shown[0].name} is '{text}';"

    @property
    def text(self) -> str:
        """What installs it."""
        return "\n\n".join(filter(None, [self.code.text.strip(), self.comment]))

    @property
    def has_trigger(self) -> bool:
        """Whether it locks a table when it is installed."""
        return any(thing.trigger for thing in self.code.things)

    @property
    def rank(self) -> tuple[str, bool, bool, str]:
        """The place among sources that do not need each other: private first, triggers last."""
        return (self.topic, self.has_trigger, "/private/" not in self.path, self.path)


# ---- reading sources


def topics(root: Path) -> list[str]:
    """Return the topics, by floor and name.

    Raises:
        RenderError: a topic has no floor.
    """
    found = {path.relative_to(root / "sql").parts[0] for path in (root / "sql").glob("*/**/*.sql")}
    if lost := found - FLOOR_OF.keys():
        raise RenderError(f"sql/{min(lost)}/ has no floor: add it to FLOORS in sql/render.py")
    return sorted(found, key=lambda topic: (FLOOR_OF[topic], topic))


def read_topic(root: Path, topic: str) -> list[Source]:
    """Return the sources of a topic, each after those that it needs.

    Raises:
        RenderError: a file creates nothing, two create the same thing, or some need each other.
    """
    sources = [
        Source(path.relative_to(root / "sql").with_suffix("").as_posix(), code_of(path.read_text()))
        for path in (root / "sql" / topic).glob("**/*.sql")
    ]
    makers: dict[Thing, str] = {}
    for source in sources:
        if not source.code.things:
            raise RenderError(f"sql/{source.path}.sql creates nothing")
        # read_released() finds it so in the script of a release.
        if not source.code.text.startswith("-- Purpose: ") or BESIDE.search(source.code.text):
            raise RenderError(f"sql/{source.path}.sql must begin with its Purpose and drop nothing")
        for thing in source.code.things:
            if thing in makers:
                raise RenderError(
                    f"sql/{makers[thing]}.sql and sql/{source.path}.sql create {thing.name}"
                )
            makers[thing] = source.path
    by_path = {source.path: source for source in sorted(sources, key=lambda s: s.rank)}
    order = depth_first(needs_of({path: s.code for path, s in by_path.items()}))
    return [by_path[path] for path in order]


def read_sources(root: Path) -> list[Source]:
    """Return all sources, topic by topic."""
    return [source for topic in topics(root) for source in read_topic(root, topic)]


def join(sources: list[Source] | list[Code]) -> Code:
    """Return texts as one."""
    return code_of("\n\n".join(source.text for source in sources))


def needs_of(codes: dict[str, Code]) -> dict[str, list[str]]:
    """Return for each text, by name, the others that create what it mentions."""
    # Who replaces a hook needs the topic that has it first.
    maker = {
        t.name: name for name, code in reversed(codes.items()) for t in code.things if not t.trigger
    }
    return {
        name: [n for n in codes if n != name and n in {maker.get(m) for m in code.mentions}]
        for name, code in codes.items()
    }


def depth_first(needs: dict[str, list[str]]) -> list[str]:
    """Return the names, each after what it needs.

    Raises:
        RenderError: some need each other.
    """
    done: dict[str, None] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise RenderError(f"these need each other: {' '.join([*path, name])}")
        if name in needs and name not in done:
            for need in needs[name]:
                visit(need, (*path, name))
            done[name] = None

    for name in needs:
        visit(name, ())
    return list(done)


# ---- the plan


def read_plan(root: Path) -> list[str]:
    """Return the lines of sqitch.plan that are changes and tags."""
    lines = (root / "sqitch.plan").read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("%")]


def name_of(line: str) -> str:
    """Return the name of the change or tag in a line of the plan."""
    return line.split(" ", maxsplit=1)[0]


def scripts(plan: list[str]) -> list[str]:
    """Return the names of the scripts, in the order of the plan.

    The first script of a change with two lines is stored under the tag that follows the line.
    """
    last = {name_of(line): n for n, line in enumerate(plan)}
    return [
        name_of(line) + ("" if last[name_of(line)] == n else tag_after(plan, n))
        for n, line in enumerate(plan)
        if not line.startswith("@")
    ]


def tag_after(plan: list[str], n: int) -> str:
    """Return the first tag after a line of the plan, or nothing."""
    return next((name_of(line) for line in plan[n:] if line.startswith("@")), "")


def releases(plan: list[str], topic: str) -> list[str]:
    """Return the names of a topic's stored scripts, and last "" if it has changed since."""
    return [tag_after(plan, n) for n, line in enumerate(plan) if name_of(line) == topic]


def arranged(root: Path) -> list[str]:
    """Return the plan with a line for each topic, and for each that changed after a tag.

    Raises:
        RenderError: the sources and the plan do not fit together.
    """
    plan = read_plan(root)
    tags = [n for n, line in enumerate(plan) if line.startswith("@")]
    tagged = plan[: tags[-1] + 1] if tags else []
    codes = {topic: join(read_topic(root, topic)) for topic in topics(root)}
    by_hand: dict[str, str] = {}
    lines: dict[str, str] = {}
    for line in plan[len(tagged) :]:
        name = name_of(line)
        if name in codes:
            lines[name] = line
        elif (root / "deploy" / f"{name}.sql").is_file() and not is_stub(root, name):
            by_hand[name] = line
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for topic in codes.keys() - lines.keys():
        stored = releases(tagged, topic)
        old, new = read_released(root, topic, stored), read_codes(root, topic)
        if stored and not changes(old, new, hooks(root, topic), {}):
            continue
        after = f" [{topic}{stored[-1]}]" if stored else ""
        lines[topic] = f"{topic}{after} {moment} {PLANNER} # Functions, views and triggers"
    free = by_hand | {topic: lines[topic] for topic in codes if topic in lines}
    named = {
        name: re.findall(r"[\w@.]+", (re.match(r"\S+ \[([^]]*)\]", line) or ["", ""])[1])
        for name, line in by_hand.items()
    }
    needs = needs_of(codes) | named
    return tagged + [free[name] for name in depth_first({name: needs[name] for name in free})]


def is_stub(root: Path, name: str, verb: str = "deploy") -> bool:
    """Tell whether a change's script runs this program."""
    path = root / verb / f"{name}.sql"
    return path.is_file() and "sql/render.py" in path.read_text()


# ---- scripts


def render_script(
    root: Path, plan: list[str], verb: str, name: str, *, is_list: bool = False
) -> str:
    """Return a script of a topic.

    Args:
        root: the project's folder.
        plan: the lines of its plan.
        verb: deploy, revert or verify.
        name: the topic's name, with a tag such as ``job@v1.1.0`` for that release of it.
        is_list: name the sources in lines for psql instead of copying their text.
    """
    topic, at, version = name.partition("@")
    tags = releases(plan, topic)
    before = tags[: tags.index(at + version)] if at else tags[:-1]
    new = read_released(root, topic, [*before, at + version]) if at else read_codes(root, topic)
    head = f"{title(verb, topic, before)}\n"
    if verb == "verify":
        return head + verification(join(new).things)
    old = read_released(root, topic, before)
    if verb == "revert":
        old, new = new, old
    listed = read_topic(root, topic) if is_list and verb == "deploy" else []
    body = changes(old, new, hooks(root, topic), {code_of(each.text): each for each in listed})
    return f"{head}{HEAD}{body}\n\ncommit;\n"


def changes(old: list[Code], new: list[Code], filled: set[str], sources: dict[Code, Source]) -> str:
    """Return the statements that bring a topic from one state to another; nothing if it has it.

    Args:
        old: what the database has; nothing without the topic.
        new: what it is to have, each after what it needs.
        filled: the hooks that the wiring has filled, and that stay so.
        sources: what to name in lines for psql, instead of copying its text.

    Raises:
        RenderError: a hook differs, which nothing would replace.
    """
    before, after = join(old), join(new)
    changed = [
        name
        for name, signature in before.signatures.items()
        if after.signatures.get(name, signature) != signature
    ]
    said = {code.words for code in old}
    made = [code for code in new if code.words not in said]
    if lost := filled & before.signatures.keys() & {t.name for code in made for t in code.things}:
        raise RenderError(f"{min(lost)} is a hook: it stays as a release had it, see its wiring")
    gone = [thing for thing in dict.fromkeys(before.things) if thing not in after.things]

    def shown(has_trigger: bool) -> str:
        return "\n\n".join(
            f"\\ir ../sql/{sources[code].path}.sql \\\\\n{sources[code].comment}".strip()
            if code in sources
            else code.text
            for code in made
            if has_trigger is any(thing.trigger for thing in code.things)
        )

    made_things = [thing for code in made for thing in code.things]
    parts = [
        "\n".join(f"drop routine if exists {name};" for name in changed),
        shown(has_trigger=False),
        locks(made_things, gone) if old else "",
        shown(has_trigger=True),
        "\n".join(drops(gone)),
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def hooks(root: Path, topic: str) -> set[str]:
    """Return the names of the functions that the wiring of other topics replaces."""
    wiring = join(read_topic(root, "wiring")).things if topic != "wiring" else []
    return {thing.name for thing in wiring}


def title(verb: str, topic: str, before: list[str]) -> str:
    """Return the first line of a script, which differs from that of each release before it.

    Sqitch refuses two deploy scripts of the same text.
    """
    return f"-- {VERBS[verb].format(topic)}" + (f", after {before[-1]}" if before else "")


def stub(plan: list[str], verb: str, topic: str, tag: str = "") -> str:
    """Return a script that runs this program, of a topic or of a release of it."""
    head = title(verb, topic, releases(plan, topic)[:-1])
    return STUB.format(title=head, verb=verb, topic=topic + tag)


def read_codes(root: Path, topic: str) -> list[Code]:
    """Return what installs a topic, each source after those that it needs."""
    return [code_of(source.text) for source in read_topic(root, topic)]


def read_released(root: Path, topic: str, tags: list[str]) -> list[Code]:
    """Return the sources of a topic as its releases have left them, each after those it needs.

    The script of each release changes what those before it have made.
    """
    made: dict[Thing, Code] = {}
    for tag in tags:
        text = body_of((root / "deploy" / f"{topic}{tag}.sql").read_text())
        for part in re.split(r"^(?=-- Purpose: )", BESIDE.sub("", text), flags=re.MULTILINE):
            code = code_of(part.strip())
            made |= dict.fromkeys(code.things, code)
        for gone in DROPPED.finditer(text):
            trigger = gone["name"] if gone["on"] else ""
            made.pop(Thing(gone["kind"], gone["on"] or gone["name"], trigger), None)
    codes = {str(n): code for n, code in enumerate(dict.fromkeys(made.values()))}
    return [codes[n] for n in depth_first(needs_of(codes))]


def body_of(text: str) -> str:
    """Return what stands in a script of a topic between its head and its commit."""
    return text.partition(HEAD)[2].rpartition("commit;")[0].strip()


def locks(made: list[Thing], gone: list[Thing]) -> str:
    """Return the statements that lock the tables of triggers, jobs first.

    Calls lock jobs first, too. A script that locked another table before would wait for calls that
    wait for that table, and while many calls run, each try would end like this.
    """
    modes = dict.fromkeys((t.name for t in made if t.trigger), "share row exclusive")
    modes |= dict.fromkeys((t.name for t in gone if t.trigger), "access exclusive")
    tables = sorted(
        # Views have triggers, too.
        (name for name in modes if name.startswith("jobq_private.")),
        key=lambda name: (name != "jobq_private.job", name),
    )
    return "\n".join(f"lock table {name} in {modes[name]} mode;" for name in tables)


def drops(things: list[Thing]) -> list[str]:
    """Return what drops things, the last created first, but triggers before all."""
    last_first = things[::-1]
    triggers = [thing for thing in last_first if thing.trigger]
    return [
        f"drop trigger if exists {thing.trigger} on {thing.name};"
        if thing.trigger
        else f"drop {thing.kind} if exists {thing.name};"
        for thing in triggers + [thing for thing in last_first if not thing.trigger]
    ]


def verification(things: list[Thing]) -> str:
    """Return a script that fails, naming what is missing or open to PUBLIC."""
    rows = ",\n        ".join(
        f"('{thing.kind}', '{thing.name}', '{thing.trigger}')" for thing in sorted(things)
    )
    return f"""begin;

do $$
declare
    _wrong text;
begin
    with wanted (kind, name, trigger) as (
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
        when 'view' then coalesce(
            has_table_privilege('public', to_regclass(w.name), 'select'), true
        )
        else coalesce(
            has_function_privilege('public', to_regproc(w.name)::oid, 'execute'), true
        )
    end;
    if _wrong is not null then
        raise exception 'missing, or open to PUBLIC: %', _wrong;
    end if;
end
$$;

rollback;
"""


def export(root: Path, folder: Path) -> None:
    """Write the project as it runs without sql/: what an installed package has."""
    plan = read_plan(root)
    for verb in VERBS:
        (folder / verb).mkdir(parents=True)
        for name in scripts(plan):
            path = f"{verb}/{name}.sql"
            text = (
                render_script(root, plan, verb, name)
                if is_stub(root, name, verb)
                else (root / path).read_text()
            )
            (folder / path).write_text(text)
    for name in ("sqitch.plan", "sqitch.conf", "router.sql"):
        (folder / name).write_text((root / name).read_text())
    (folder / "jobq.sql").write_text(single_file(root))
    (folder / "jobq-core.sql").write_text(single_file(root, 1))


def single_file(root: Path, floor: int = max(FLOORS)) -> str:
    """Return jobq.sql: the deploy scripts of a floor and those below as one transaction.

    Where the core is installed already, psql passes over its tables, and the features are added.
    Tables of the core that changed after the release of that core are changed first.
    """
    whole = max(FLOORS)
    parts = [
        "-- jobq in one file and one transaction, for those without Sqitch or Python:",
        "--     psql --file jobq.sql",
        "-- Sqitch can adopt the result: sqitch deploy --log-only",
        "-- Made by sql/render.py from sql/ and deploy/: edit those.",
        "\\set ON_ERROR_STOP on",
        "begin;",
        "set local client_min_messages = warning;",
    ]
    if floor == whole:
        parts.append(IS_NEW)
    plan = read_plan(root)
    for name in scripts(plan):
        topic = re.split("[_@]", name)[0]
        if FLOOR_OF.get(topic, 1) > floor:
            continue
        path = root / "deploy" / f"{name}.sql"
        is_topic = (root / "sql" / name).is_dir()
        text = render_script(root, plan, "deploy", name) if is_topic else path.read_text()
        is_once = floor == whole and FLOOR_OF.get(topic, 1) == 1 and not is_topic
        if is_once:
            parts.append(f"\n{once(released_before(plan)[name])}")
        parts.append("\n" + BRACKETS.sub("", text).strip())
        if "set local role" in text:
            parts.append("\nreset role;")
        parts += ["\n\\endif"] * is_once
    text = "\n".join(parts)
    if floor == whole:
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        text += f"\n\nselect jobq_private.record_release('{digest}');"
    return f"{text}\n\ncommit;\n"


def once(tag: str) -> str:
    """Return the condition in psql under which a core lacks a change that comes after a tag."""
    if not tag:
        return "\\if :is_new"
    return IS_OLDER.format(",".join(re.findall(r"\d+", tag))) + "\n\\if :is_older"


def released_before(plan: list[str]) -> dict[str, str]:
    """Return the last tag before each script, or nothing."""
    names = iter(scripts(plan))
    tag, found = "", {}
    for line in plan:
        if line.startswith("@"):
            tag = name_of(line)
        else:
            found[next(names)] = tag
    return found


# ---- what is tracked and not written by hand


def updated(root: Path) -> dict[str, str | None]:
    """Return what files in git should hold, by path; None for those that should not be there.

    Raises:
        RenderError: the sources and the plan do not fit together.
    """
    head = [
        line for line in (root / "sqitch.plan").read_text().splitlines() if line.startswith("%")
    ]
    plan = arranged(root)
    files: dict[str, str | None] = {"sqitch.plan": "\n".join([*head, "", *plan]) + "\n"}
    for verb in VERBS:
        for path in (root / verb).glob("*.sql"):
            if is_stub(root, path.stem, verb) and "@" not in path.name:
                files[f"{verb}/{path.name}"] = None
            elif is_stub(root, path.stem, verb) and verb == "deploy":
                raise RenderError(f"{verb}/{path.name} must hold what the release had")
        for topic in topics(root):
            files[f"{verb}/{topic}.sql"] = stub(plan, verb, topic)
    definitions = read_definitions(root, plan)
    for path in (root / "sql").glob("*/**/*.sql"):
        files[path.relative_to(root).as_posix()] = fill(path.read_text(), definitions)
    return files


def fill(text: str, definitions: str) -> str:
    """Return a source with the lists of columns between its marks as they are now.

    Raises:
        RenderError: a mark names a table or column that is not there.
    """
    columns: list[str] = []

    def filled(mark: re.Match[str]) -> str:
        if mark["name"]:
            columns[:] = columns_of(mark["name"], definitions)
            left_out = re.findall(r"\w+", mark["but"] or "")
            if lost := [name for name in left_out if name not in columns]:
                raise RenderError(f"{mark['name']} has no column {lost[0]}")
            left_out += re.findall(r"\w+", text[: mark.start()].rpartition("(")[2])
            columns[:] = [name for name in columns if name not in left_out]
        prefix = f"{mark['alias']}." if mark["alias"] else ""
        lines = textwrap.wrap(", ".join(prefix + name for name in columns), 98)
        return mark["head"] + "".join(f"{mark['indent']}{line}\n" for line in lines) + mark["end"]

    return MARKED.sub(filled, text)


def columns_of(name: str, definitions: str) -> list[str]:
    """Return the columns of a table, or of what a function returns as one, in their order.

    Raises:
        RenderError: nothing of that name has columns.
    """
    made = re.search(
        rf"create (?:table|or replace function) {name}\b.*?(?:returns table )?\(\n(.*?)^\)",
        definitions,
        re.MULTILINE | re.DOTALL,
    )
    if made is None:
        raise RenderError(f"{name} has no columns that can be found")
    columns = re.findall(r"(?:^|,)\s*(?!constraint\b)([a-z_]+) [a-z]", made[1])
    for change in re.findall(rf"alter table {name}\b(.*?);", definitions, re.DOTALL):
        columns += re.findall(r"add column (\w+)", change)
        columns = [c for c in columns if c not in re.findall(r"drop column (\w+)", change)]
    return columns


def read_definitions(root: Path, plan: list[str]) -> str:
    """Return the hand-written scripts, in the plan's order, and all sources."""
    by_hand = [name for name in scripts(plan) if name.partition("@")[0] not in FLOOR_OF]
    paths = [root / "deploy" / f"{name}.sql" for name in by_hand]
    paths += sorted((root / "sql").glob("*/**/*.sql"))
    return "\n".join(without_comments(path.read_text()) for path in paths)


def without_comments(text: str) -> str:
    """Drop comments from the start or the middle of lines to their ends."""
    return re.sub(r"--.*$", "", text, flags=re.MULTILINE)


def update(root: Path) -> list[str]:
    """Write what `updated` returns; return the paths that changed.

    A list of columns that is filled changes its topic, which then needs a line in the plan.
    """
    changed: dict[str, None] = {}
    while names := stale(root, files := updated(root)):
        for name in names:
            text = files[name]
            if text is None:
                (root / name).unlink()
            else:
                (root / name).write_text(text)
        changed |= dict.fromkeys(names)
    return list(changed)


def stale(root: Path, files: dict[str, str | None]) -> list[str]:
    """Return the paths of files that are not as they should be."""
    paths = {name: root / name for name in sorted(files)}
    return [n for n, p in paths.items() if (p.read_text() if p.is_file() else None) != files[n]]


def check(root: Path) -> list[str]:
    """Return what is wrong, in words.

    Raises:
        RenderError: the sources and the plan do not fit together.
    """
    wrong = [f"{name} is stale: run make update" for name in stale(root, updated(root))]
    names = scripts(read_plan(root))
    for verb in VERBS:
        wrong += [
            f"{verb}/{path.name} is not in sqitch.plan"
            for path in sorted((root / verb).glob("*.sql"))
            if path.stem.partition("@")[0] not in names
        ]
        wrong += [
            f"sqitch.plan names {name}, but {verb}/{name}.sql is missing"
            for name in names
            if not (root / verb / f"{name}.sql").is_file()
        ]
    if not wrong:
        single_file(root)
    return wrong


def release(root: Path, tag: str) -> None:
    """Store what each topic has changed since the last tag, and tag the plan.

    Raises:
        RenderError: something is stale.
    """
    if wrong := check(root):
        raise RenderError("; ".join(wrong))
    plan = read_plan(root)
    for topic in topics(root):
        if releases(plan, topic)[-1] == "":
            name = f"{topic}@{tag}"
            text = render_script(root, plan, "deploy", topic)
            (root / "deploy" / f"{name}.sql").write_text(text)
            for verb in ("revert", "verify"):
                (root / verb / f"{name}.sql").write_text(stub(plan, verb, topic, f"@{tag}"))
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with (root / "sqitch.plan").open("a") as file:
        file.write(f"@{tag} {moment} {PLANNER} # Release {tag}\n\n")


def main(arguments: list[str]) -> int:
    """Do as the module's description says; return the exit status."""
    try:
        match arguments:
            case [] | [("1" | "2" | "3" | "4")]:
                print(single_file(ROOT, *map(int, arguments)), end="")
            case [("deploy" | "revert" | "verify") as verb, topic]:
                print(render_script(ROOT, read_plan(ROOT), verb, topic, is_list=True), end="")
            case ["--update"]:
                for name in update(ROOT):
                    print(f"updated {name}")
            case ["--check"]:
                wrong = check(ROOT)
                print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
                return 1 if wrong else 0
            case ["--release", tag]:
                release(ROOT, tag)
            case _:
                print(__doc__)
                return 2
    except (RenderError, OSError) as error:
        print(f"render.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
