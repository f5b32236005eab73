"""Print how long the console's pages take in a large database; asserts nothing.

Usage: make bench PART=console ARGS="[--archived 10000000] [--live 1000000] [--looks 40]"

Archived jobs lie in thirty days, a hundredth of them dead, half a percent in the last hour;
live ones wait in ten queues. Each page is asked for by one reader, then by twenty at once, in
the process of the server. Then what it costs to keep the history of the last minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import time
from typing import TYPE_CHECKING, Any

import httpx
from bench import database

from jobq.console import visitor
from jobq.http import Settings, create_app, create_key

if TYPE_CHECKING:
    from bench import Connection

DAYS = """
    select jobq_private.make_partition(r.name, (current_date - d)::date)
    from unnest('{job_archive,attempt,job_log}'::text[]) as r (name)
    cross join generate_series(0, 31) as d
"""
ARCHIVE = """
    insert into jobq_private.job_archive (
        job_id, kind, queue, lease, timeout, max_attempts, attempt, state, previous_state,
        created_at, run_at, claimed_at, finished_at, payload, last_error_code, last_error, worker
    )
    select
        (left(jobq_private.id_floor(t.at)::text, 15) || substr(gen_random_uuid()::text, 16))::uuid,
        'kind ' || n %% 20, 'queue ' || n %% 10, '30 s', '1 min', 5, 1,
        s.state, 'running', t.at, t.at, t.at, t.at + interval '1 s',
        jsonb_build_object('n', n, 'pad', repeat('x', 100)),
        case s.state when 'dead' then 'CODE_' || n %% 7 end,
        case s.state when 'dead' then 'it failed with ' || n end, 'worker ' || n %% 8
    from generate_series(%s::bigint, %s) as n
    cross join lateral (
        select now() - interval '2 s' - case
            when n %% 200 = 0 then random() * interval '1 hour'
            else random() * interval '29 days'
        end as at
    ) as t
    cross join lateral (
        select case when n %% 100 = 7 then 'dead' else 'succeeded' end as state
    ) as s
    order by t.at
"""
LIVE = """
    insert into jobq_private.job (
        job_id, kind, queue, priority, run_at, max_attempts, timeout, lease, payload
    )
    select jobq_private.new_id(), 'kind ' || n %% 20, 'queue ' || n %% 10, n %% 3,
        now() - interval '1 h' + n * interval '1 ms', 5, '5 min', '30 s',
        jsonb_build_object('n', n, 'pad', repeat('x', 100))
    from generate_series(1, %s) as n
"""
PAGES = {
    "overview": "",
    "overview, a month by kind": "?span=month&by=kind",
    "queues": "queues",
    "jobs": "jobs",
    "jobs, dead": "jobs?state=dead",
    "jobs, of a kind": "jobs?kind=kind+7",
    "jobs that no job fits": "jobs?kind=none",
    "jobs, queued of a queue": "jobs?state=queued&queue=queue+3",
    "jobs, by error code": "jobs?state=dead&error=CODE_3",
    "a live job": "jobs/{live}",
    "an archived job": "jobs/{archived}",
    "redrive, the preview": "jobs/bulk?action=redrive&state=dead",
    "dead": "dead",
    "schedules": "schedules",
    "workers": "workers",
    "endpoints": "endpoints",
    "audit": "audit",
}
CHUNK = 250_000


def main() -> None:
    """Fill a database, and look at each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archived", type=int, default=10_000_000)
    parser.add_argument("--live", type=int, default=1_000_000)
    parser.add_argument("--looks", type=int, default=40)
    options = parser.parse_args()
    with database(fsync="off", maintenance_work_mem="1GB") as (connection, url):
        fill(connection, options.archived, options.live)
        asyncio.run(look(connection, url, options.looks))
        cost(connection)


def fill(connection: Connection, archived: int, live: int) -> None:
    """Make the jobs."""
    connection.execute(DAYS)
    for first in range(0, archived, CHUNK):
        connection.execute(ARCHIVE, (first + 1, min(first + CHUNK, archived)))
    connection.execute(LIVE, (live,))
    connection.execute("select jobq.create_schedule('s' || n, 'k', '@daily') "
                       "from generate_series(1, 30) as n")  # fmt: skip
    connection.execute("vacuum analyze jobq_private.job")
    connection.execute("vacuum analyze jobq_private.job_archive")
    print(f"{archived:,} archived and {live:,} live jobs")


async def look(connection: Connection, url: str, looks: int) -> None:
    """Print what each page takes."""
    key = create_key(connection, "bench", ["read", "operate"])
    ids: dict[str, Any] = {}
    for name, table in (("live", "job"), ("archived", "job_archive")):
        statement = f"select job_id from jobq_private.{table} order by job_id limit 1 offset 999"
        [(ids[name],)] = connection.execute(statement.encode()).fetchall()
    app = create_app(url, Settings(maintain_every=0))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://bench", timeout=60
        ) as client,
    ):
        entered = await client.post(
            "/console/enter", data={"key": key}, headers={"origin": "http://bench"}
        )
        assert entered.status_code == 303
        for name, path in PAGES.items():
            page = f"/console/{path.format(**ids)}"
            visitor.MEMORY = 0.0  # type: ignore[misc] # each look asks the database
            app.state.console.answers.forget()
            await ask(client, page)
            one = [await ask(client, page) for _ in range(looks)]
            visitor.MEMORY = 1.0  # type: ignore[misc] # what is the same is asked for once
            many = await asyncio.gather(*(reader(client, page, 3) for _ in range(20)))
            print(
                f"  {name}: {told(one)}; twenty readers: {told([t for ts in many for t in ts])}",
                flush=True,
            )


async def reader(client: httpx.AsyncClient, page: str, looks: int) -> list[float]:
    """Look at a page again and again."""
    return [await ask(client, page) for _ in range(looks)]


async def ask(client: httpx.AsyncClient, page: str) -> float:
    """Return the milliseconds that a page takes."""
    started = time.perf_counter()
    answer = await client.get(page)
    assert answer.status_code == 200, f"{page}: {answer.status_code}"
    return 1000 * (time.perf_counter() - started)


def told(times: list[float]) -> str:
    """Return the least, the median and the 95th percentile in words."""
    p95 = sorted(times)[math.ceil(0.95 * len(times)) - 1]
    median = statistics.median(times)
    return f"least {min(times):.0f} ms, median {median:.0f} ms, p95 {p95:.0f} ms"


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
        connection.execute("select jobq_private.roll_up_minutes(%s, %s)", (since, until))
        spent = time.perf_counter() - started
        each = 1e6 * spent / max(jobs, 1)
        print(f"  the history of {minutes} min: {1000 * spent:.0f} ms, {each:.1f} µs a job")


if __name__ == "__main__":
    main()
