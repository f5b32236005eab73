"""The tutorial and the recipes, typed as they stand, and the files for monitoring."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from site_links import broken_links
from test_docs import module_of, snippets
from waiting import until

import reference
from jobq import AsyncClient, Registry, Worker
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from http_api import Api

    from servers import Cluster

pytest_plugins = ["http_fixtures"]

JOBQ = Path(sys.executable).with_name("jobq")
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
ALERTS = ROOT / "docs" / "alerts.yml"
DASHBOARD = ROOT / "docs" / "grafana.json"
SUFFIXES = {"gauge": [""], "counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}


def blocks(guide: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each block of a guide, in its order."""
    for indent, language, text in BLOCK.findall((ROOT / "docs" / f"{guide}.md").read_text()):
        yield language, re.sub(f"^{indent}", "", text, flags=re.MULTILINE)


def refused(session: str) -> list[str]:
    """Return the statements of a psql session that it shows to be refused."""
    return re.findall(r"^=> (.*;)\nERROR:", session, re.MULTILINE)


class Reader:
    """Somebody who types what the tutorial says into one psql, one shell and one editor."""

    def __init__(self, cluster: Cluster, database: str, folder: Path) -> None:
        self.cluster = cluster
        self.database = database
        self.folder = folder
        self.environment = {**os.environ, "DATABASE_URL": database, "PYTHONPATH": str(folder)}
        self.workers: list[subprocess.Popen[bytes]] = []

    def read(self, language: str, text: str) -> None:
        match language:
            case "python":
                (self.folder / text.split("\n", maxsplit=1)[0].removeprefix("# ")).write_text(text)
            case "sql":
                self.psql(text)
            case "psql":
                for statement in refused(text):
                    self.psql(f"\\set ON_ERROR_STOP off\n{statement}\n", "ERROR:")
            case "sh":
                for line in text.splitlines():
                    self.run(shlex.split(line))
            case "text" if text.startswith("python "):
                self.run([sys.executable, *text.split()[1:]])

    def psql(self, text: str, expected: str = "") -> None:
        done = subprocess.run(
            [self.cluster.server.programs / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", self.database],
            input=self.variables() + text, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert expected in done.stderr
        assert expected or not done.stderr, done.stderr

    def variables(self) -> str:
        """Return what an open psql would still know: the job that was claimed by hand."""
        with psycopg.connect(self.database) as connection:
            row = connection.execute(
                "select job_id, attempt from jobq.job where worker = 'me' or kind = 'greet'"
                " order by job_id limit 1"
            ).fetchone()
        return f"\\set job_id {row[0]}\n\\set attempt {row[1]}\n" if row else ""

    def run(self, words: list[str]) -> None:
        command = [str(JOBQ), *words[1:]] if words[0] == "jobq" else words
        if words[:2] == ["jobq", "worker"]:
            worker = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE
            )
            self.workers.append(worker)
            return
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip
        # The doctor of a test's database may warn of its settings.
        assert done.returncode in (0, *([1, 2] if words[1] == "doctor" else [])), done.stderr


def follow(cluster: Cluster, database: str, tmp_path: Path) -> None:
    """Do all that the tutorial says, as test_managed.py does with the rights of an owner."""
    reader = Reader(cluster, database, tmp_path)
    try:
        for language, text in blocks("tutorial"):
            # What one database has, another may have too: roles belong to the cluster.
            reader.read(language, re.sub(r"app_(\w+) login", rf"{tmp_path.name}_\1 login", text))
        with psycopg.connect(database, autocommit=True) as connection:

            def said() -> set[Any]:
                rows = connection.execute("select result ->> 'said' from jobq.job").fetchall()
                return {row[0] for row in rows}

            greeted = {
                f"Hello, {name}" for name in ("Ada", "Grace", "Echo", "Barbara", "everybody")
            }
            until(lambda: greeted <= said(), "for the greetings")
            assert "Hello, Edsger" not in said()
    finally:
        for worker in reader.workers:
            worker.terminate()
            worker.communicate(timeout=60)
        with psycopg.connect(database, autocommit=True) as connection:
            for role in ("worker", "web", "operator"):
                connection.execute(f'drop role if exists "{tmp_path.name}_{role}"')


def test_the_recipes_sql_runs(cluster: Cluster, database: str) -> None:
    cluster.psql(database, "\n".join(snippets("recipes", "sql")))
    with psycopg.connect(database) as connection:
        [[announced, kept, mails]] = connection.execute(
            "select count(*) filter (where kind = 'order_placed'),"
            " max(payload ->> 'until') filter (where kind = 'reindex' and state = 'queued'),"
            " count(*) filter (where kind = 'send_newsletter') from jobq.job"
        ).fetchall()
    assert (announced, kept, mails) == (2, "2", 1000)


@pytest.fixture
def recipes(tmp_path: Path) -> Iterator[ModuleType]:
    yield from module_of("recipes", tmp_path)


async def test_the_recipes_handlers_do_as_they_say(database: str, recipes: Any) -> None:
    async with AsyncClient(database) as client, Worker(database, recipes.registry):

        async def result(kind: str, payload: Any) -> Any:
            job = await client.enqueue(kind, payload)
            return await client.result(job.job_id, timeout=60)

        assert await result("charge", {"order_id": 7}) == {"charge": "charged order 7"}
        assert await result("sync", {"status": 200}) == "synced"
        with pytest.raises(Exception, match="the account has been closed"):
            await result("sync", {"status": 404})


async def test_alerts_and_dashboard_name_figures_that_are_told(api: Api) -> None:
    await api.job()
    told = await api.ask("GET", "/metrics")
    registry = Registry()
    registry.handler("test")(lambda: None)
    async with Worker(api.url, registry, metrics_port=0) as worker, AsyncClient(api.url) as client:
        await client.result((await client.enqueue("test")).job_id, timeout=60)
        texts = [told.text, (worker.metrics_text() or b"").decode()]
    names: set[str] = set()
    for text in texts:
        for family in text_string_to_metric_families(text):
            names |= {f"{family.name}{suffix}" for suffix in SUFFIXES[family.type]}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = ALERTS.read_text() + " ".join(
        target["expr"] for panel in panels for target in panel["targets"]
    )
    named = set(re.findall(r"\b(?:jobq|worker)_[a-z0-9_]+", asked))
    assert len(named) > 8
    assert named - names == set()


@pytest.mark.prove
@pytest.mark.long
def test_the_site_builds_and_no_link_is_broken(tmp_path: Path, database: str) -> None:
    with psycopg.connect(database) as connection:
        reference.REFERENCE.write_text(reference.render(connection))
    build = Path(sys.executable).with_name("sphinx-build")
    done = subprocess.run(
        [build, "-q", "-W", "--keep-going", "-d", tmp_path / "trees", ROOT / "docs", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Twenty minutes" in (tmp_path / "tutorial.html").read_text()
    listed = (tmp_path / "llms.txt").read_text()
    assert listed.startswith("# jobq\n")
    assert {f"{page.stem}.html" for page in (ROOT / "docs").glob("*.md")} - set(
        re.findall(r"\]\(([\w-]+\.html)\): .", listed)
    ) == {"index.html"}
    assert "Twenty minutes" in (tmp_path / "llms-full.txt").read_text()
    assert broken_links(tmp_path) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    good = ["#here", "b.html", "b.html#there", "sub/c.html", "b.css?v=1", "https://a.example/x#y"]
    bad = ["#there", "c.html", "b.html#here", "sub/", "http://", "https://a b.example", "file:x"]
    links = "".join(f'<a href="{link}"></a>' for link in good + bad)
    (tmp_path / "a.html").write_text(f'<p id="here">{links}<img src="gone.png">')
    (tmp_path / "b.html").write_text('<section id="there">')
    (tmp_path / "b.css").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/c.html").write_text('<a href="../b.html#there"></a><a href="b.html"></a>')
    assert broken_links(tmp_path) == [
        *(f"a.html: {link}" for link in [*bad, "gone.png"]),
        "sub/c.html: b.html",
    ]
