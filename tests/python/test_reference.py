"""The generated pages agree with the database, transcripts are true, and names are real."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import jobq
import reference
from contract import Contracts, Header
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from servers import Cluster

    Connection = psycopg.Connection[tuple[Any, ...]]


def transcript(page: str) -> list[tuple[str, str]]:
    """The statements of a page's first psql block, each with what it prints."""
    block = re.search(r"```psql\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert block is not None
    steps = re.split(r"^=> ", block[1], flags=re.MULTILINE)[1:]
    return [(head, tail) for head, _, tail in (step.partition("\n") for step in steps)]


def squeeze(text: str) -> list[str]:
    """The lines that are not empty, without psql's padding and without rulers."""
    lines = (re.sub(r"\s*\|\s*", "|", line).strip() for line in text.splitlines())
    return [line for line in lines if line and not set(line) <= set("-+")]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_transcript_is_true(database: str, page: str) -> None:
    steps = transcript(page)
    script = "\n".join(f"\\qecho ~~\n{statement}" for statement, _ in steps)
    run = subprocess.run(
        ["psql", "-X", "-q", "-d", database, "-f", "-"],
        input="\\pset footer on\n\\set VERBOSITY terse\n" + script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    printed = re.sub(r"^psql:.*?ERROR:", "ERROR:", run.stdout, flags=re.MULTILINE)
    for (statement, expected), actual in zip(steps, printed.split("~~\n")[1:], strict=True):
        assert squeeze(actual) == squeeze(expected), statement


PLACES = ("*.md", "docs/**/*.md", "clients/*.md", "clients/*/*.md")
PAGES = [page for place in PLACES for page in ROOT.glob(place)]
# What stands after "jobq." and is no name of the database or of Python: files and folders.
FILES = {"sql", "go", "rb", "ts"}
OTHERS = "\n".join(
    path.read_text() for path in (ROOT / "clients/go/jobq.go", *ROOT.glob("sql/*/private/*.sql"))
)


@pytest.fixture(scope="module")
def known(cluster: Cluster) -> set[str]:
    """What the database has of a name: functions, relations, types."""
    with cluster.database() as url, psycopg.connect(url) as connection:
        rows = connection.execute(
            "select n.nspname, o.name from pg_namespace as n"
            " join (select pronamespace, proname from pg_proc"
            "  union select relnamespace, relname from pg_class"
            "  union select typnamespace, typname from pg_type) as o (schema, name)"
            " on o.schema = n.oid where n.nspname like 'jobq%'"
        )
        return {f"{schema}.{name}" for schema, name in rows}


def is_elsewhere(name: str) -> bool:
    """Tell whether jobq.NAME is a file, of Python, of Go, or a setting of a session."""
    return (
        name in FILES
        or hasattr(jobq, name)
        or importlib.util.find_spec(f"jobq.{name}") is not None
        or f"current_setting('jobq.{name}'" in OTHERS
        or re.search(rf"^(?:func|type) {name}\b", OTHERS, re.MULTILINE) is not None
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_name_of_a_page_is_real(known: set[str], page: Path) -> None:
    said = set(
        re.findall(r"(?<![\w./@:-])(jobq(?:_private|_http|_internal)?)\.(\w+)", page.read_text())
    )
    unknown = {
        f"{schema}.{name}"
        for schema, name in said
        if f"{schema}.{name}" not in known and not (schema == "jobq" and is_elsewhere(name))
    }
    assert unknown == set()


def test_the_reference_speaks_of_no_private_function(database: str) -> None:
    public = {path.stem for path in ROOT.glob("sql/*/*.sql")}
    private = {path.stem for path in ROOT.glob("sql/*/private/*.sql")} - public
    with psycopg.connect(database) as connection:
        page = reference.render(connection)
    assert not private & set(re.findall(r"\b(\w+)\(\)", page))


def test_the_reference_names_every_state(database: str) -> None:
    with psycopg.connect(database) as connection:
        page = reference.render(connection)
        meaning = re.search(r"### jobq\.job\n.*?(\| `state` .*?)\n", page, re.DOTALL)
        assert meaning is not None
        rows = connection.execute("select distinct to_state from jobq_private.transition")
        assert {state for (state,) in rows} == set(re.findall(r"`(\w+)`", meaning[1])) - {"state"}


CONTRACTS = Contracts(ROOT)
KNOWN = re.compile(
    r"(?:_known constant text\[\] := array\[|read_records\([^{]*\{)(.*?)[\]}]", re.DOTALL
)


def headers() -> dict[str, Header]:
    """The headers of the public functions, by name."""
    public = {"jobq", "jobq_http", "jobq_internal"}
    return {
        name: promise.header
        for name, promise in CONTRACTS.by_name.items()
        if promise.schema in public and "Example" in promise.header.texts
    }


def refused(database: str, before: str, after: str, setup: str = "") -> dict[str, str]:
    """Run each example of the reference; return what was said of those that failed.

    Args:
        database: its URL.
        before: what goes before each example.
        after: what goes behind it, and undoes it.
        setup: what goes before all.
    """
    examples = {name: header.texts["Example"] for name, header in headers().items()}
    assert len(examples) > 90
    assert not [n for n, example in examples.items() if f"{n}(" not in example]
    named = (ROOT / "docs/examples.sql").read_text()
    steps = "".join(
        f"{before};\n\\qecho ~~ {name}\n{example}\n{after};\n"
        for name, example in sorted(examples.items())
    )
    run = subprocess.run(
        ["psql", "-X", "-q", "-d", database, "-f", "-"],
        input=f"{setup};\n{named}\n{steps}",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    first, *printed = run.stdout.split("~~ ")
    assert "ERROR" not in first, first
    assert len(printed) == len(examples)
    return {text.split("\n")[0]: text for text in printed if "ERROR" in text}


def test_every_example_of_the_reference_runs(database: str) -> None:
    assert refused(database, "savepoint example", "rollback to example", "begin") == {}


def test_every_example_can_be_prepared_where_notifications_are_off(
    database: str, connect: Callable[[], Connection]
) -> None:
    sleeper = connect()
    sleeper.execute("listen jobq; select jobq.begin_wait('{default,mail}')")
    sleeper.execute("select jobq.wait(jobq.enqueue('awaited', queue => 'other'))")
    producer = connect()
    producer.execute("begin; select jobq.enqueue('k')")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        producer.execute("prepare transaction 'notifies'")
    before = "begin; set local jobq.notify = off"
    after = "prepare transaction 'example'; rollback prepared 'example'; rollback"
    assert refused(database, before, after, "set client_min_messages = error") == {}


@pytest.mark.oldest_version
def test_every_example_runs_in_turkish(cluster: Cluster) -> None:
    """Where the small letter of I is not i, a name of jobq's is still what it was."""
    turkish = (
        "create database turkish template template0 locale_provider icu icu_locale 'tr-TR'"
        " locale 'C.UTF-8'"
    )
    with psycopg.connect(cluster.server.url, autocommit=True) as connection:
        try:
            connection.execute(turkish)
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this PostgreSQL was built without ICU")
        try:
            url = cluster.server.url_of("turkish")
            cluster.psql(url, cluster.project / "jobq.sql")
            assert refused(url, "savepoint example", "rollback to example", "begin") == {}
        finally:
            connection.execute("drop database turkish with (force)")


def test_members_of_json_arguments_are_those_that_the_function_knows() -> None:
    checked = set()
    for name, header in headers().items():
        for said in header.named.get("Members", {}).values():
            source, _, without = said.partition(", but not ")
            promise = CONTRACTS.by_name[name]
            readers = [n for n in promise.calls if n.startswith("jobq_private.read_")]
            known = KNOWN.search("".join(CONTRACTS.by_name[n].code for n in (name, *readers)))
            if known and f"jobq.{source}" in CONTRACTS.by_name:
                members = set(re.findall(r"\w+", known[1]))
                assert members - {without} == arguments_of(f"jobq.{source}") - {without}, name
                checked.add(name)
    assert {"jobq.enqueue_many", "jobq.fail_many", "jobq.update_schedule"} <= checked


def arguments_of(name: str) -> set[str]:
    signature = re.search(r"\((.*?)\n?\)\s*returns", CONTRACTS.by_name[name].code, re.DOTALL)
    assert signature is not None
    return set(re.findall(r"(?:^|,)\s*(\w+) ", signature[1]))
