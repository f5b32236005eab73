"""Lists of jobs in a long queue: each looks at a part of it, and says where to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest
from click.testing import CliRunner
from http_api import opened

from jobq import Client
from jobq_cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers import Cluster

pytestmark = pytest.mark.xdist_group("long_lists")
MOST = 100_000
MORE = 1000
FILL = """
    insert into jobq_private.{table} (
        job_id, kind, queue, state, previous_state, attempt, max_attempts, timeout, lease {columns}
    )
    select jobq_private.new_id(0), 'many', 'default', {values}, 5, '1 min', '30 s' {more}
    from generate_series(1, %s)
"""
LIVE = FILL.format(table="job", columns="", values="'queued', null, 0", more="")
ENDED = FILL.format(
    table="job_archive",
    columns=", finished_at, transition_slot",
    values="case when random() < 0.1 then 'dead' else 'cancelled' end, 'queued', 0",
    more=", now(), 0",
)


@pytest.fixture(scope="module")
def long_queue(cluster: Cluster) -> Iterator[str]:
    """The URL of a database in which one rare job is older than 100,000 others."""
    with cluster.database() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select jobq.enqueue('rare')")
        connection.execute(LIVE.encode(), [MOST // 2])
        connection.execute(ENDED.encode(), [MOST // 2 + MORE])
        connection.execute("vacuum analyze jobq_private.job, jobq_private.job_archive")
        yield url


@pytest.fixture
def client(long_queue: str) -> Iterator[Client]:
    with Client(long_queue) as client:
        yield client


def test_a_page_that_no_job_fits_says_how_to_go_on(client: Client) -> None:
    page = client.list_jobs(kind="rare")
    assert (page, type(page.cursor)) == ([], UUID)
    [rare] = rest = client.list_jobs(kind="rare", before=page.cursor)
    assert rare.kind == "rare"
    assert rest.cursor is None
    assert client.list_jobs(kind="none", before=page.cursor).cursor is None


def test_a_full_page_goes_on_after_its_last_job(client: Client) -> None:
    page = client.list_jobs("dead", max_jobs=10)
    assert page.cursor == page[-1].job_id
    assert client.list_jobs("dead", max_jobs=10, before=page.cursor)[0].job_id < page.cursor


@pytest.mark.parametrize("state", ["running", "succeeded", "retrying", "blocked"])
def test_a_state_that_is_rare_is_found_past_all_others(client: Client, state: Any) -> None:
    page = client.list_jobs(state)
    assert (page, page.cursor) == ([], None)


def test_the_command_says_so(long_queue: str) -> None:
    arguments = ["jobs", "--kind", "rare", "--database", long_queue]
    first = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert "rare" not in first.stdout
    assert "continue with --before" in first.stderr
    more = CliRunner().invoke(main, [*arguments, "--before", first.stderr.split()[-1]])
    assert "rare" in more.stdout
    assert more.stderr == ""


async def test_the_api_answers_with_a_cursor(long_queue: str) -> None:
    async with opened(long_queue) as api:
        first = (await api.ask("GET", "/jobs?kind=rare")).json()
        assert first["items"] == []
        rest = (await api.ask("GET", f"/jobs?kind=rare&cursor={first['cursor']}")).json()
        assert [job["kind"] for job in rest["items"]] == ["rare"]
        assert rest["cursor"] is None
