"""Print how fast jobs are enqueued, claimed and finished; asserts nothing.

Usage: python tests/bench/bench.py [--jobs 50000] [--rounds 3]

Runs on a private PostgreSQL 18 with fsync on, from a wheel, on the loopback address.
Figures are medians of the rounds, with the range.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psycopg

from jobq_embedded import Server
from jobq_operations.deploy import single_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "8GB"}
BULK = """
    select count(*) from jobq.enqueue_many((
        select jsonb_agg(jsonb_build_object(
            'kind', 'noop', 'payload', jsonb_build_object('n', n, 'pad', repeat('x', 80))
        ))
        from generate_series(1, %s) as n
    ))
"""
# One session that finishes each batch in the call that claims the next.
DRAIN = """
    create procedure pg_temp.drain(batch integer) language plpgsql as $$
    declare
        _ids uuid[] := '{}';
        _attempts integer[] := '{}';
    begin
        loop
            select array_agg(e.job_id), array_agg(e.attempt) into _ids, _attempts
            from jobq.exchange('{default}', 'bench', batch, _ids, _attempts) as e;
            commit;
            exit when _ids is null;
        end loop;
    end
    $$
"""

# Functions that give back what they get, and what has them called until there is no job left.
FUNCTIONS = """
    create schema bench;
    create function bench.one(payload jsonb) returns jsonb language sql return payload;
    create function bench.many(payloads jsonb[]) returns jsonb[] language sql return payloads;
    select jobq.put_kind('one', queue => 'one', run => 'bench.one');
    select jobq.put_kind('many', queue => 'many', run => 'bench.many');
    create procedure bench.work_off(queue text) language plpgsql as $$
    declare
        _done bigint;
    begin
        loop
            select count(*) into _done from jobq.work(array[queue], 1000);
            commit;
            exit when _done = 0;
        end loop;
    end
    $$
"""

Connection = psycopg.Connection[tuple[Any, ...]]


def main() -> None:
    """Run every measurement and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with database() as (connection, url):
        measure(connection, url, options.jobs, options.rounds)


@contextmanager
def database(**settings: str) -> Iterator[tuple[Connection, str]]:
    """Start a server with jobq in it; give a connection to it and its URL.

    Args:
        settings: parameters of the server, beside those of every benchmark.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the server ends too
    with (
        TemporaryDirectory() as folder,
        Server(Path(folder) / "data", settings={**SETTINGS, **settings}) as server,
    ):
        install(server.url)
        with psycopg.connect(server.url, autocommit=True) as connection:
            yield connection, server.url


def measure(connection: Connection, url: str, jobs: int, rounds: int) -> None:
    """Print each figure as it is known."""
    version = connection.execute("show server_version").fetchone()
    assert version is not None
    print(
        f"PostgreSQL {version[0]}, fsync on, {os.cpu_count()} cores, {rounds} rounds of {jobs} jobs"
    )
    report("bulk enqueue", "jobs/s", rounds, lambda: rate(jobs, lambda: bulk(connection, jobs)))
    for clients in (1, 8):
        report(
            f"single enqueue, {clients} connections",
            "jobs/s",
            rounds,
            lambda clients=clients: rate(4000, lambda: singles(url, clients, 4000)),
        )
    connection.execute(DRAIN)
    for batch, share in ((1, 20), (10, 4), (100, 1)):
        report(
            f"claim and finish in SQL, batches of {batch}",
            "jobs/s",
            rounds,
            lambda batch=batch, share=share: drained_in_sql(connection, batch, jobs // share),
        )
    connection.execute("select jobq.put_kind('noop', keep_succeeded => '0')")
    report(
        "the same, batches of 100, leaving no trace",
        "jobs/s",
        rounds,
        lambda: drained_in_sql(connection, 100, jobs),
    )
    connection.execute("select jobq.put_kind('noop')")
    functions(connection, url, rounds, jobs)
    for workers in (1, 2):
        report(
            f"no-op jobs through {workers} worker processes",
            "jobs/s",
            rounds,
            lambda workers=workers: drained_by_workers(connection, url, workers, jobs),
        )
    pick_up(connection, url)


def report(what: str, unit: str, rounds: int, figure: Callable[[], float]) -> None:
    """Print the median and the range of a figure."""
    figures = [figure() for _ in range(rounds)]
    middle, low, high = statistics.median(figures), min(figures), max(figures)
    print(f"{what:<45} {middle:>9,.0f} {unit}   ({low:,.0f} to {high:,.0f})", flush=True)


def rate(jobs: int, work: Callable[[], object]) -> float:
    """Jobs a second."""
    start = time.perf_counter()
    work()
    return jobs / (time.perf_counter() - start)


def clear(connection: Connection) -> None:
    """Forget every job."""
    connection.execute("truncate jobq_private.job, jobq_private.job_archive")
    while connection.execute("select bool_or(has_more) from jobq.maintain()").fetchone() == (True,):
        pass


def bulk(connection: Connection, jobs: int) -> None:
    """Enqueue jobs by one call."""
    connection.execute(BULK, [jobs])


def singles(url: str, clients: int, jobs: int) -> None:
    """Enqueue jobs one by one, each in a transaction of its own."""

    def client(_number: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            for _ in range(jobs // clients):
                connection.execute("select jobq.enqueue('noop', '{\"n\": 1}')", prepare=True)

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))


def drained_in_sql(connection: Connection, batch: int, jobs: int) -> float:
    """Jobs a second that one session claims and finishes in batches."""
    clear(connection)
    bulk(connection, jobs)
    return rate(jobs, lambda: connection.execute("call pg_temp.drain(%s)", [batch]))


def drained_by_workers(connection: Connection, url: str, workers: int, jobs: int) -> float:
    """Jobs a second from the first claim to the last completion."""
    clear(connection)
    bulk(connection, jobs)
    with working(url, workers):
        while one(connection, "select count(*) from jobq_private.job") > 0:
            time.sleep(0.05)
    seconds = one(
        connection,
        "select extract(epoch from max(finished_at) - min(claimed_at))"
        " from jobq_private.job_archive",
    )
    return jobs / float(seconds)


def functions(connection: Connection, url: str, rounds: int, jobs: int) -> None:
    """Print how fast jobs are done that are functions of the database."""
    connection.execute(FUNCTIONS)
    for kind, what, share in (("one", "one by one", 5), ("many", "in batches", 1)):
        for sessions in (1, 2):
            report(
                f"functions {what}, by {sessions} {'sessions' if sessions > 1 else 'session'}",
                "jobs/s",
                rounds,
                lambda kind=kind, share=share, sessions=sessions: worked(
                    connection, url, kind, jobs // share, sessions
                ),
            )


def worked(connection: Connection, url: str, kind: str, jobs: int, sessions: int) -> float:
    """Jobs a second that sessions do by `jobq.work`, a thousand at a time."""
    clear(connection)
    connection.execute(BULK.replace("'noop'", f"'{kind}'"), [jobs])

    def session(_number: int) -> None:
        with psycopg.connect(url, autocommit=True) as own:
            own.execute("call bench.work_off(%s)", [kind])

    with ThreadPoolExecutor(sessions) as pool:
        return rate(jobs, lambda: list(pool.map(session, range(sessions))))


def pick_up(connection: Connection, url: str) -> None:
    """Print how long an idle worker takes from a job's commit to its claim."""
    clear(connection)
    with working(url, 1):
        for _ in range(500):
            connection.execute("select jobq.enqueue('noop')")
            while one(connection, "select count(*) from jobq_private.job") > 0:
                time.sleep(0.001)
            time.sleep(0.005)
    taken = connection.execute(
        "select extract(epoch from claimed_at - created_at) * 1000"
        " from jobq_private.job_archive order by 1"
    ).fetchall()
    middle, late = (float(taken[int(len(taken) * share)][0]) for share in (0.5, 0.99))
    print(f"{'pick-up by an idle worker':<45} p50 {middle:.1f} ms, p99 {late:.1f} ms")


@contextmanager
def working(
    url: str, workers: int, *options: str, target: str = "noop:registry", fds: Sequence[int] = ()
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run worker processes, by default with a handler that does nothing.

    Args:
        url: the database.
        workers: how many.
        options: of the command line.
        target: the registry.
        fds: files that they inherit.
    """
    command = [
        sys.executable,
        "-m",
        "jobq_cli",
        "worker",
        target,
        "--metrics-port",
        "0",
        "--log-level",
        "warning",
        *options,
    ]
    children = [
        subprocess.Popen(
            command,
            env={**os.environ, "DATABASE_URL": url, "PYTHONPATH": str(Path(__file__).parent)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=fds,
        )
        for _ in range(workers)
    ]
    try:
        yield children
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(60)


def one(connection: Connection, query: str) -> Any:
    """The first column of the first row."""
    row = connection.execute(query, prepare=True).fetchone()
    assert row is not None
    return row[0]


def install(url: str) -> None:
    """Install jobq from its single file."""
    command = ["psql", "-Xq", "-d", url, "-f", "-"]
    environment = {**os.environ, "PGOPTIONS": "--client-min-messages=warning"}
    subprocess.run(
        command, input=single_file(), text=True, check=True, env=environment,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


if __name__ == "__main__":
    main()
