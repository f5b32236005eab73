"""What docs/protocol.md shows is what the database does: its SQL runs, as one session."""

from __future__ import annotations

import re
import subprocess

import psycopg
import pytest

from servers import ROOT

PAGE = (ROOT / "docs/protocol.md").read_text()
BLOCKS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SQL = "\n".join(BLOCKS)
GRANT = re.compile(r"grant execute on function jobq\.\w+\s+to\s[^;]*jobq_worker")


@pytest.fixture
def printed(database: str) -> list[str]:
    """What psql prints for the page's SQL: rows without headers, and SQLSTATEs of refusals."""
    run = subprocess.run(
        ["psql", "-XqAt", "-v", "VERBOSITY=sqlstate", "-d", database, "-f", "-"],
        input=SQL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop role app_server")
    return run.stdout.splitlines()


def test_the_pages_sql_does_as_it_says(printed: list[str], database: str) -> None:
    refused = [line.split("ERROR:")[1].strip() for line in printed if "ERROR:" in line]
    assert refused == re.findall(r"-- refused: (\w+)", SQL)
    assert len(refused) == 1
    with psycopg.connect(database) as connection:
        ends = connection.execute(
            "select kind, state, last_error_code from jobq.job where queue <> 'default'"
            " order by kind"
        ).fetchall()
        states = connection.execute(
            "select kind, state, count(*) from jobq.job where queue = 'default'"
            " group by kind, state order by state"
        ).fetchall()
        workers = connection.execute("select count(*) from jobq.worker").fetchall()
    assert ends == [
        ("fragile", "dead", "GONE"),
        ("pay_out", "succeeded", None),
        ("trip", "succeeded", None),
        ("unfinished", "queued", None),
    ]
    # bob's is claimed, eve's is due in 2035, Ada's and the unwanted one are cancelled.
    assert states == [
        ("send_email", "cancelled", 2),
        ("send_email", "queued", 1),
        ("send_email", "retrying", 1),
        ("send_email", "running", 1),
        ("send_email", "succeeded", 1),
    ]
    assert workers == [(0,)]
    waits = [line for line in printed if line in {"waiting|", 'arrived|{"by": "ada"}'}]
    assert waits == ["waiting|", 'arrived|{"by": "ada"}']


def test_the_page_names_every_function_that_a_worker_may_call() -> None:
    """What is granted to a worker is on the page, but for what no worker needs."""
    granted = {
        path.stem
        for topic in ("work", "workflow")
        for path in (ROOT / "sql" / topic).glob("*.sql")
        if GRANT.search(path.read_text())
    }
    elsewhere = granted - set(re.findall(r"\b\w+\b", PAGE))
    assert elsewhere <= OTHERS, elsewhere - OTHERS
    assert granted >= OTHERS, OTHERS - granted


# One named job, what others do better here, and graphs, batches and subscriptions, which the
# guide to workflows has.
OTHERS = {
    "claim_job", "complete_many", "enqueue_graph", "seal_batch", "subscribe",
    "unsubscribe",
}  # fmt: skip


def test_every_link_of_the_page_leads_somewhere() -> None:
    headings = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= headings
    # `make docs` writes the reference; the test of the site follows links to it.
    pages = set(re.findall(r"\]\((\w+\.md)", PAGE)) - {"reference.md"}
    assert [name for name in pages if not (ROOT / "docs" / name).exists()] == []
