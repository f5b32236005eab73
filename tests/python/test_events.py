"""Events: each end of a job told once, however commits overtake each other."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from waiting import PATIENCE, until

from jobq import AsyncClient, Client, Event
from jobq.errors import InvalidArgument
from jobq_cli import main
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from uuid import UUID

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

COMPLETE = "select jobq.complete(job_id, attempt) from jobq.claim_job(%s, 'w')"
IS_ANNOUNCED = """
    select exists (
        select from pg_locks as l
        where l.locktype = 'advisory' and l.mode = 'ShareLock'
        and l.classid = jobq_private.lock_class('awaiting_events')::oid
        and l.database = (select d.oid from pg_database as d where d.datname = current_database())
    )
"""


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    with Client(database) as client:
        yield client


def ended(client: Client, *kinds: str) -> list[UUID]:
    """End a job of each kind in a transaction of its own."""
    job_ids = [client.enqueue(kind, queue=f"of-{kind}").job_id for kind in kinds]
    for job_id in job_ids:
        client.cancel(job_id)
    return job_ids


def told(client: Client, after: str, **chosen: Any) -> list[UUID]:
    """Return what is told from a cursor on, to the present."""
    return [e.job_id for e in client.listen_events(after, follow=False, **chosen)]


@pytest.mark.oldest_version
def test_an_end_that_commits_after_later_ones_is_told_all_the_same(
    client: Client, connect: Callable[[], Connection]
) -> None:
    early, nested = connect(), connect()
    start = client.page_events().cursor
    first, second, third, fourth = (client.enqueue("a").job_id for _ in range(4))
    early.execute("begin")
    early.execute(COMPLETE, [first])
    nested.execute("begin; select pg_current_xact_id(); savepoint s")
    nested.execute(COMPLETE, [second])
    nested.execute("release s")
    client.cancel(third)

    page = client.page_events(start)
    assert (page.events, page.is_settled) == ([], False), "the third waits for its elders"
    nested.execute("commit")
    assert client.page_events(page.cursor).events == []
    early.execute("rollback; begin")
    early.execute(COMPLETE, [fourth])
    early.execute("commit")
    page = client.page_events(page.cursor)
    assert [e.job_id for e in page.events] == [second, third, fourth], "not what was taken back"
    assert page.is_settled
    assert client.page_events(page.cursor).events == []
    early.execute(COMPLETE, [first])
    assert told(client, page.cursor) == [first]


def test_each_end_is_told_once_to_all_while_others_commit(
    client: Client, connect: Callable[[], Connection]
) -> None:
    workers, jobs = 3, 120
    expected = [client.enqueue("a").job_id for _ in range(workers * jobs)]
    start = client.page_events().cursor
    lots = [expected[n::workers] for n in range(workers)]

    def work(connection: Connection, lot: list[UUID]) -> None:
        for number, job_id in enumerate(lot):
            with connection.transaction():
                connection.execute(COMPLETE, [job_id])
                connection.execute("select pg_sleep(%s)", [0.004 * (number % 3)])

    threads = [threading.Thread(target=work, args=(connect(), lot)) for lot in lots]
    for thread in threads:
        thread.start()
    seen = [e.job_id for e in islice(client.listen_events(start), len(expected))]
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(seen) == sorted(expected)
    assert told(client, start) == [e.job_id for e in client.listen_events(start, follow=False)]
    assert sorted(told(client, start)) == sorted(expected)


def test_pages_go_on_where_they_stopped_also_between_ends_of_one_moment(
    client: Client, connect: Callable[[], Connection]
) -> None:
    start = client.page_events().cursor
    ids = [client.enqueue("a").job_id for _ in range(7)]
    connect().execute(
        "select jobq.complete_many(array_agg(job_id), array_agg(attempt))"
        " from jobq.claim('{default}', 'w', 7)"
    )
    found: list[UUID] = []
    page = client.page_events(start, max_events=2)
    while page.events:
        found += [e.job_id for e in page.events]
        page = client.page_events(page.cursor, max_events=2)
    assert found == sorted(found)
    assert sorted(found) == sorted(ids)
    middle = next(e for e in client.listen_events(start, follow=False) if e.job_id == found[3])
    assert told(client, middle.cursor) == found[4:]


def test_queues_and_kinds_choose_and_since_looks_back(client: Client) -> None:
    before = client.page_events().cursor
    a, b, c = ended(client, "a", "b", "c")
    assert told(client, before, kinds=["a", "c"]) == [a, c]
    assert told(client, before, queues=["of-b"]) == [b]
    assert told(client, before, queues=["of-b"], kinds=["a"]) == []
    [event] = client.page_events(before, kinds=["c"]).events
    assert (event.kind, event.queue, event.state, event.attempts) == ("c", "of-c", "cancelled", 0)
    hour = datetime.now(UTC) - timedelta(hours=1)
    everything = client.listen_events(since=hour, follow=False)
    assert [e.job_id for e in everything] == [a, b, c]
    assert client.page_events().events == []


def test_a_quiet_archive_of_years_is_crossed_in_one_page(client: Client) -> None:
    [job_id] = ended(client, "a")
    page = client.page_events(since=datetime(1971, 1, 1, tzinfo=UTC))
    assert [e.job_id for e in page.events] == [job_id]


def test_a_page_that_finds_little_among_many_moves_on(
    client: Client, connect: Callable[[], Connection]
) -> None:
    connection = connect()
    start = client.page_events().cursor
    connection.execute(
        "select count(*) from jobq.enqueue_many((select jsonb_agg(jsonb_build_object('kind', 'a'))"
        " from generate_series(1, 21000)))"
    )
    connection.execute(
        "select jobq.complete_many(array_agg(job_id), array_agg(attempt))"
        " from jobq.claim('{default}', 'w', 10000)"
    )
    connection.execute(
        "select jobq.complete_many(array_agg(job_id), array_agg(attempt))"
        " from jobq.claim('{default}', 'w', 10000)"
    )
    [job_id] = ended(client, "rare")
    assert told(client, start, kinds=["rare"]) == [job_id]


# ---- who is woken


def has(found: list[UUID], number: int) -> bool:
    return len(found) >= number


def test_who_listens_is_woken_and_nobody_else_is_told(
    client: Client, database: str, connect: Callable[[], Connection]
) -> None:
    witness, notified = connect(), connect()
    notified.execute("listen jobq_events")
    ended(client, "a")
    assert list(notified.notifies(timeout=0)) == [], "nobody has asked"
    with Client(database, listen_database=database) as listener:
        found: list[UUID] = []
        events = listener.listen_events()

        def listen() -> None:
            for event in islice(events, 2):
                found[len(found) :] = [event.job_id]  # at once, for who looks meanwhile

        thread = threading.Thread(target=listen)
        thread.start()
        for number in (1, 2):
            until(lambda: witness.execute(IS_ANNOUNCED).fetchone() == (True,), "for an idle ear")
            ended(client, "a")
            until(partial(has, found, number), "for an event")
        thread.join(PATIENCE)
        assert len(found) == 2
        assert [n.payload for n in notified.notifies(timeout=PATIENCE, stop_after=1)]


async def _next(events: AsyncGenerator[Event, None]) -> Event:
    return await anext(events)


async def test_an_asynchronous_listener_is_woken(
    database: str, connect: Callable[[], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq.client.notifications.LONGEST_SLEEP", 10 * PATIENCE)
    witness = connect()
    async with AsyncClient(database, listen_database=database) as client:
        events = client.listen_events(kinds=["b"])
        first = asyncio.create_task(_next(events))
        while witness.execute(IS_ANNOUNCED).fetchone() != (True,):
            await asyncio.sleep(0.01)
        for kind in ("a", "b"):
            await client.cancel((await client.enqueue(kind)).job_id)
        event = await asyncio.wait_for(first, PATIENCE)
        assert event.kind == "b"
        await events.aclose()
    until(lambda: witness.execute(IS_ANNOUNCED).fetchone() == (False,))


def test_a_listener_that_loses_its_connection_looks_by_itself(
    client: Client, database: str, connect: Callable[[], Connection]
) -> None:
    witness = connect()
    with Client(database, listen_database=database) as listener:
        events = listener.listen_events()
        found: list[UUID] = []
        thread = threading.Thread(target=lambda: found.append(next(events).job_id))
        thread.start()
        until(lambda: witness.execute(IS_ANNOUNCED).fetchone() == (True,))
        witness.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'jobq event listener' and datname = current_database()"
        )
        [job_id] = ended(client, "a")
        thread.join(PATIENCE)
        assert found == [job_id]


# ---- what is refused


def test_what_cannot_be_meant_is_refused(client: Client, connect: Callable[[], Connection]) -> None:
    with pytest.raises(InvalidArgument, match="must be a cursor"):
        client.page_events("nonsense")
    with pytest.raises(InvalidArgument):
        client.listen_events("nonsense")
    with pytest.raises(InvalidArgument):
        client.page_events(client.page_events().cursor, since=datetime.now(UTC))
    with pytest.raises(InvalidArgument, match="given as a list"):
        client.page_events(kinds="charge")
    with pytest.raises(InvalidArgument, match="given as a list"):
        client.listen_events(queues="default")
    connection = connect()
    connection.execute("begin isolation level repeatable read")
    with pytest.raises(InvalidArgument) as refused:
        Client(connection).page_events()
    assert "read committed" in refused.value.detail
    connection.execute("rollback; begin")
    with pytest.raises(InvalidArgument):
        Client(connection).listen_events()


# ---- the command


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["events", *arguments])


def test_the_command_prints_what_has_ended(client: Client, database: str) -> None:
    at = ("--database", database)
    a, b = ended(client, "a", "b")
    lines = [json.loads(line) for line in run(*at, "--json").stdout.splitlines()]
    assert [line["job_id"] for line in lines] == [str(a), str(b)]
    [line] = run(*at, "--kind", "b", "--after", lines[0]["cursor"]).stdout.splitlines()
    assert str(b) in line
    assert "cancelled" in line
    refused = run(*at, "--after", "x")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "INVALID_ARGUMENT" in refused.stderr
    command = [sys.executable, "-m", "jobq_cli", "events", *at, "--follow", "--since", "2000-01-01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout
        assert str(a) in following.stdout.readline()
        assert str(b) in following.stdout.readline()
        [c] = ended(client, "c")
        assert str(c) in following.stdout.readline()
        following.terminate()


def test_the_pages_sql_and_python_do_as_they_say(
    client: Client,
    database: str,
    connect: Callable[[], Connection],
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipes = (ROOT / "docs/recipes.md").read_text()
    page = recipes.partition("## Follow finished jobs\n")[2].partition("\n## ")[0]
    [sql] = re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    start = client.page_events().cursor
    [job_id, _] = ended(client, "charge", "other")
    first, second = sql.replace("\\gset", ";").replace(":'place'", f"'{start}'").split(";", 1)
    [(place,)] = connect().execute(first).fetchall()
    assert place > start
    assert connect().execute(second).fetchall() == [(job_id, "charge", "cancelled")]
    [program] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    module: dict[str, Any] = {}
    exec(program, module)
    place = module["tally"](database, start)
    assert capsys.readouterr().out == f"{job_id} cancelled None\n"
    assert module["tally"](database, place) == place
