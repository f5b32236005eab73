"""Print how long the console's pages take in a large database; asserts nothing.

Usage: make bench PART=console
    ARGS="[--archived 10000000] [--live 1000000] [--looks 40] [--keep FOLDER] [--only WORD …]"

Archived jobs lie in thirty days, a hundredth of them dead, half a percent in the last hour;
live ones wait in ten queues, one of them with ten thousand keys, and a graph of jobs waits,
too. Each page is asked for by one reader, then by twenty at once, over HTTP of a server of its
own; then each of twenty asks for another page at once. Then what it costs to keep the history
of the last minutes. With --keep the database stays in a folder, to be looked at again: then the
last hour is made anew. With --only some pages are looked at, those whose names contain a word.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import socket
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import uvicorn
from bench import SETTINGS, install

from jobq_console import Site, memory
from jobq_embedded import Server
from jobq_http import Settings, create_app, create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench import Connection

GOALS = {1: 100, 20: 250}  # milliseconds, the 95th percentile, by how many readers
DAYS = 29
PARTITIONS = """
    select jobq_private.make_partition(r.name, (current_date - d)::date)
    from unnest('{job_archive,attempt,job_log}'::text[]) as r (name)
    cross join generate_series(0, 31) as d
"""
# A stretch of the archive, in the order of its ids. Foreign keys are not looked up: that is
# what makes it fast.
ARCHIVE = """
    with made as materialized (
        select n, %(since)s + (n - %(first)s) * (%(until)s - %(since)s) / %(jobs)s as at,
            case when n %% 100 = 7 then 'dead' else 'succeeded' end as state
        from generate_series(%(first)s::bigint, %(first)s::bigint + %(jobs)s - 1) as n
    ),
    named as materialized (
        select m.*, (
            left(jobq_private.id_floor(m.at)::text, 15) || substr(gen_random_uuid()::text, 16)
        )::uuid as job_id
        from made as m
    ),
    tried as (
        insert into jobq_private.attempt (
            job_id, attempt, state, started_at, finished_at, worker, error_code, error
        )
        select m.job_id, 1, m.state, m.at, m.at + interval '1 s', 'worker ' || n %% 8,
            'CODE_' || n %% 7, 'it failed with ' || n
        from named as m
        where m.state = 'dead'
    )
    insert into jobq_private.job_archive (
        job_id, kind, queue, lease, timeout, max_attempts, attempt, state, previous_state,
        transition_slot, created_at, run_at, claimed_at, finished_at, payload,
        last_error_code, last_error, worker, metadata
    )
    select m.job_id, 'kind ' || n %% 20, 'queue ' || n %% 10, '30 s', '1 min', 5, 1,
        m.state, 'running', case m.state when 'dead' then 1 end, m.at, m.at, m.at,
        m.at + interval '1 s', jsonb_build_object('n', n, 'pad', repeat('x', 100)),
        case m.state when 'dead' then 'CODE_' || n %% 7 end,
        case m.state when 'dead' then 'it failed with ' || n end, 'worker ' || n %% 8,
        jsonb_build_object('tenant', 'tenant ' || n %% 1000)
    from named as m
"""
LIVE = """
    insert into jobq_private.job (
        job_id, kind, queue, priority, run_at, max_attempts, timeout, lease, payload, metadata
    )
    select jobq_private.new_id(0), 'kind ' || n %% 20, 'queue ' || n %% 10, n %% 3,
        now() - interval '1 h' + n * interval '1 ms', 5, '5 min', '30 s',
        jsonb_build_object('n', n, 'pad', repeat('x', 100)),
        jsonb_build_object('tenant', 'tenant ' || n %% 1000)
    from generate_series(1, %(jobs)s::bigint) as n
"""
# What the product itself does: workers that run jobs, keys, limits, a graph.
SCENE = """
    select jobq.put_queue('keyed', key_max_running => 1);
    select jobq.put_limit('keyed', 'key 5', 3);
    select jobq.hold_key('keyed', 'key 6', now() + interval '1 day', 'the customer asked');
    select count(*) from jobq.enqueue_many((
        select jsonb_agg(jsonb_build_object(
            'kind', 'kind 1', 'queue', 'keyed', 'concurrency_key', 'key ' || n % 10000
        ))
        from generate_series(1, 20000) as n
    ));
    select jobq.heartbeat('worker ' || n, '{}', '{}', array['queue ' || n, 'keyed'])
    from generate_series(0, 7) as n;
    select count(*) from jobq.claim('{keyed}', 'worker 1', 500);
    select count(*) from generate_series(0, 7) as n
    cross join lateral jobq.claim(array['queue ' || n], 'worker ' || n, 500);
    select jobq.create_schedule('s' || n, 'k', '@daily') from generate_series(1, 30) as n;
    select count(*) from jobq.enqueue_graph(jsonb_build_object('jobs', (
        select jsonb_agg(jsonb_build_object(
            'name', 'job ' || n, 'kind', 'kind 2', 'queue', 'queue 9',
            'after', case n when 1 then '[]' else jsonb_build_array('job ' || (n + 1) / 3) end
        ))
        from generate_series(1, 300) as n
    )));
    select jobq.put_endpoint('endpoint-' || n, 'HTTP', '{"url": "https://example.com"}')
    from generate_series(0, 19) as n;
"""
REMEMBERED = "select max(bucket) from jobq_private.history"
# What maintain() would have made of a day, a minute, ten minutes and an hour at a time.
REMEMBER = (
    "select jobq_private.roll_up_buckets(1, null, %(since)s, %(until)s)",
    "select jobq_private.roll_up_buckets(10, 1, %(since)s, %(until)s)",
    "select jobq_private.roll_up_buckets(60, 10, %(since)s, %(until)s)",
    "delete from jobq_private.history where minutes = 1 and bucket < now() - interval '3 h'",
    "delete from jobq_private.latency where minutes = 1 and bucket < now() - interval '3 h'",
)
COUNTS = """
    select (select count(*) from jobq_private.job_archive), count(*) from jobq_private.job
"""
IDS = {
    "live": "select job_id from jobq_private.job where state = 'queued' limit 1",
    "archived": "select job_id from jobq_private.job_archive where state = 'dead' limit 1",
    "node": "select job_id from jobq_private.node where name = 'job 150'",
    "schedule": "select schedule_id from jobq_private.schedule limit 1",
}
PAGES = {
    "overview": "",
    "overview, a month by kind": "?span=month&by=kind",
    "queues": "queues",
    "a queue with keys": "queue?name=keyed&key=key+5",
    "jobs": "jobs",
    "jobs, dead": "jobs?state=dead",
    "jobs, of a kind": "jobs?kind=kind+7",
    "jobs that no job fits": "jobs?kind=none",
    "jobs, queued of a queue": "jobs?state=queued&queue=queue+3",
    "jobs, by error code": "jobs?state=dead&error=CODE_3",
    "a live job": "jobs/{live}",
    "an archived job": "jobs/{archived}",
    "a job of a graph of 300": "jobs/{node}",
    "redrive, the preview": "jobs/bulk?action=redrive&state=dead",
    "dead": "dead",
    "schedules": "schedules",
    "a schedule": "schedules/{schedule}",
    "workers": "workers",
    "endpoints": "endpoints",
    "audit": "audit",
}
MIXED = "all of these pages at once"
SLICES = 58  # of the archive, for two sessions that fill it


def main() -> None:
    """Fill a database, and look at each page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--archived", type=int, default=10_000_000)
    parser.add_argument("--live", type=int, default=1_000_000)
    parser.add_argument("--looks", type=int, default=40)
    parser.add_argument("--keep", metavar="FOLDER", help="where the database stays")
    parser.add_argument("--only", metavar="WORD", nargs="+", default=[""], help="which pages")
    options = parser.parse_args()
    os.nice(5)
    with large_database(options.keep, options.archived, options.live) as (
        connection,
        url,
    ):
        asyncio.run(look(connection, url, options.looks, options.only))
        cost(connection)


@contextmanager
def large_database(
    folder: str | None, archived: int, live: int
) -> Iterator[tuple[Connection, str]]:
    """Start a server with so many jobs in it; give a connection to it and its URL."""
    settings = {
        **SETTINGS,
        "shared_buffers": "2GB",
        "fsync": "off",
        "maintenance_work_mem": "1GB",
    }
    with TemporaryDirectory() as passing:
        data = Path(folder or passing) / f"{archived}-{live}"
        is_new = not data.exists()
        with Server(data, settings=settings) as server:
            if is_new:
                install(server.url)
            with psycopg.connect(server.url, autocommit=True) as connection:
                if is_new:
                    fill(connection, server.url, archived, live)
                renew(connection, server.url, archived)
                [(archived, live)] = connection.execute(COUNTS).fetchall()
                print(f"{archived:,} archived and {live:,} live jobs", flush=True)
                yield connection, server.url


def fill(connection: Connection, url: str, archived: int, live: int) -> None:
    """Make the jobs."""
    started = time.perf_counter()
    connection.execute(PARTITIONS)
    [(now,)] = connection.execute("select now()").fetchall()
    length, jobs = timedelta(days=DAYS / SLICES), archived // SLICES
    statements = [
        {
            "first": 1 + n * jobs,
            "jobs": jobs,
            "since": now - (n + 1) * length,
            "until": now - n * length,
        }
        for n in range(SLICES)
    ]
    with ThreadPoolExecutor(2) as sessions:
        list(sessions.map(lambda given: apart(url, ARCHIVE, given), statements))
    apart(url, LIVE, {"jobs": live})
    for statement in SCENE.split(";\n"):
        connection.execute(statement.encode())
    print(f"filled in {time.perf_counter() - started:.0f} s", flush=True)


def renew(connection: Connection, url: str, archived: int) -> None:
    """Make a last hour, and the history up to now."""
    connection.execute(PARTITIONS)
    [(now,)] = connection.execute("select date_trunc('minute', now())").fetchall()
    hour = {
        "first": archived,
        "jobs": archived // 200,
        "since": now - timedelta(hours=1),
        "until": now,
    }
    apart(url, ARCHIVE, hour)
    [(known,)] = connection.execute(REMEMBERED).fetchall()
    since = known or now - timedelta(days=DAYS)
    while since < now:
        until = min(since + timedelta(days=1), now)
        for statement in REMEMBER:
            connection.execute(
                statement.encode(),
                {"since": since, "until": until} if "%" in statement else None,
            )
        since = until
    connection.execute("vacuum analyze")


def apart(url: str, statement: str, arguments: dict[str, Any]) -> None:
    """Execute something in a session that fires no triggers."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute("set synchronous_commit = off")
        connection.execute(statement.encode(), arguments)


@contextmanager
def served(url: str, lasts: float) -> Iterator[int]:
    """Serve the console by a process of its own; give its port."""
    port = free_port()
    server = get_context("spawn").Process(target=serve, args=(url, port, lasts), daemon=True)
    server.start()
    try:
        yield port
    finally:
        server.terminate()
        server.join()


def serve(url: str, port: int, lasts: float) -> None:
    """Serve the console, in which an answer of the database serves others for a time."""
    memory.LASTS = lasts  # type: ignore[misc]
    app = create_app(url, Settings(maintain_every=0, console=Site.maker()))
    uvicorn.run(app, port=port, access_log=False, log_level="warning")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def look(connection: Connection, url: str, looks: int, only: list[str]) -> None:
    """Print what each page takes whose name contains one of some words."""
    key = create_key(connection, f"bench {time.time()}", ["read", "operate"])
    ids = {name: connection.execute(one.encode()).fetchall()[0][0] for name, one in IDS.items()}
    pages = {name: f"/console/{path.format(**ids)}" for name, path in PAGES.items()}
    chosen = [name for name in (*pages, MIXED) if any(word in name for word in only)]
    times: dict[str, dict[int, list[float]]] = {name: {} for name in chosen}
    for count in GOALS:
        # One reader's looks all ask the database. Twenty look at once, and share what they ask
        # for; between their looks so much time passes that each time it is asked for anew.
        lasts, rest, rounds = (0.0, 0.0, looks) if count == 1 else (0.2, 0.25, max(3, looks // 8))
        with served(url, lasts) as port:
            cookie = await enter(port, key)
            readers = [await Reader.open(port, cookie) for _ in range(count)]
            for name in (name for name in chosen if name != MIXED):
                # Connections that have just been opened read the catalog first.
                await together(readers, [[pages[name]] * 3] * count, rest)
                measured = await together(readers, [[pages[name]] * rounds] * count, rest)
                times[name][count] = measured
            if count > 1 and MIXED in chosen:
                ways = [[*pages.values()][n:] + [*pages.values()][:n] for n in range(count)]
                await together(readers, [way[:6] for way in ways], rest)
                times[MIXED][count] = await together(readers, ways, rest)
    for name, found in times.items():
        print(
            f"  {name}: " + "; ".join(told(n, of) for n, of in found.items()),
            flush=True,
        )
    missed = [
        name for name, of in times.items() if any(p95(found) > GOALS[n] for n, found in of.items())
    ]
    goals = f"goals: p95 of {GOALS[1]} ms for one reader, {GOALS[20]} ms for twenty; "
    print(goals + (f"missed by {', '.join(missed)}" if missed else "met by all"))


async def enter(port: int, key: str) -> str:
    """Sign in, once the server answers; return the cookie."""
    address = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as client:
        for _ in range(600):
            try:
                entered = await client.post(
                    "/console/enter", data={"key": key}, headers={"origin": address}
                )
            except httpx.ConnectError:
                await asyncio.sleep(0.1)
            else:
                assert entered.status_code == 303
                [(name, value)] = entered.cookies.items()
                return f"{name}={value}"
    sys.exit("the server does not answer")


class Reader:
    """A reader with a connection, so small that the server's time is what is measured."""

    def __init__(
        self,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        port: int,
        cookie: str,
    ) -> None:
        self._answers, self._requests = streams
        self._headers = f"Host: 127.0.0.1:{port}\r\nCookie: {cookie}"

    @classmethod
    async def open(cls, port: int, cookie: str) -> Reader:
        """Connect."""
        streams = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        return cls(streams, port, cookie)

    async def look(self, page: str) -> float:
        """Return the milliseconds that a page takes."""
        started = time.perf_counter()
        request = f"GET {page} HTTP/1.1\r\n{self._headers}\r\n\r\n"
        self._requests.write(request.encode())
        head = (await self._answers.readuntil(b"\r\n\r\n")).decode().lower()
        assert head.startswith("http/1.1 200"), f"{page}: {head}"
        await self._answers.readexactly(int(head.split("content-length: ")[1].split()[0]))
        return 1000 * (time.perf_counter() - started)


async def together(readers: list[Reader], ways: list[list[str]], rest: float) -> list[float]:
    """Return the times of readers who go their ways, and look at each step at once.

    Args:
        readers: who.
        ways: the pages of each.
        rest: seconds between the steps.
    """
    times: list[float] = []
    for pages in zip(*ways, strict=True):
        await asyncio.sleep(rest)
        looks = (reader.look(page) for reader, page in zip(readers, pages, strict=True))
        times += await asyncio.gather(*looks)
    return times


def p95(times: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(times)[math.ceil(0.95 * len(times)) - 1]


def told(readers: int, times: list[float]) -> str:
    """Return the median and the 95th percentile in words."""
    who = "one reader" if readers == 1 else f"{readers} readers"
    mark = "" if p95(times) <= GOALS[readers] else " MISSED"
    return f"{who} median {statistics.median(times):.0f} ms, p95 {p95(times):.0f} ms{mark}"


def cost(connection: Connection) -> None:
    """Print what counting the last hour for the history takes for each job."""
    for minutes in (1, 10):
        [(since, until)] = connection.execute(
            "select date_trunc('minute', now()) - %s * interval '1 min',"
            " date_trunc('minute', now())", (minutes,),
        ).fetchall()  # fmt: skip
        [(jobs,)] = connection.execute(
            "select (select count(*) from jobq_private.job_archive"
            " where finished_at >= %(since)s and finished_at < %(until)s)"
            " + (select count(*) from jobq_private.job"
            " where job_id >= jobq_private.id_floor(%(since)s)"
            " and job_id < jobq_private.id_floor(%(until)s))",
            {"since": since, "until": until},
        ).fetchall()
        started = time.perf_counter()
        connection.execute("select jobq_private.roll_up_buckets(1, null, %s, %s)", (since, until))
        spent = time.perf_counter() - started
        each = 1e6 * spent / max(jobs, 1)
        print(f"  the history of {minutes} min: {1000 * spent:.0f} ms, {each:.1f} µs a job")


if __name__ == "__main__":
    main()
