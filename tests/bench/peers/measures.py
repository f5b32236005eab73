"""What is measured of a system; each function returns figures by name."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from figures import percentile, tenths

if TYPE_CHECKING:
    from rig import Rig, Team
    from systems import System

Figures = dict[str, float | str]
Connection = psycopg.Connection[tuple[Any, ...]]

NOTE_EVERY = 100


@dataclass(frozen=True)
class Sizes:
    """How much is done.

    Attributes:
        jobs: to drain.
        keyed_jobs: to drain with 1,000 keys, of which each may run one at a time.
        pinned_jobs: to drain beside a pinned snapshot.
        limit: seconds after which a drain or a bulk enqueue is cut short.
        single_seconds: how long jobs are enqueued one by one.
        samples: of pick-up by an idle worker.
        rate: jobs a second for pick-up under load.
        loaded_seconds: how long that lasts.
        idle_seconds: how long an idle worker is watched.
    """

    jobs: int = 200_000
    keyed_jobs: int = 20_000
    pinned_jobs: int = 500_000
    limit: float = 15.0
    single_seconds: float = 2.0
    samples: int = 200
    rate: float = 500.0
    loaded_seconds: float = 10.0
    idle_seconds: float = 20.0


def drain(rig: Rig, system: System, sizes: Sizes, workers: int, verb: str = "bulk") -> Figures:
    """Enqueue in bulk, then drain what was enqueued."""
    jobs = sizes.keyed_jobs if verb == "keyed" else sizes.jobs
    with rig.database(system) as url:
        loaded = preload(rig, system, url, jobs, sizes.limit, verb)
        run = drained(rig, system, url, loaded["jobs"], workers=workers, limit=sizes.limit)
        return {
            "bulk": loaded["jobs"] / loaded["seconds"],
            "rate": run.jobs / run.seconds,
            "server_us": run.server_cpu / run.jobs * 1e6,
            "worker_us": run.worker_cpu / run.jobs * 1e6,
            "jobs": run.jobs,
            "cut_short": float(run.is_cut_short),
        }


def pinned(rig: Rig, system: System, sizes: Sizes) -> Figures:
    """Drain beside a snapshot that keeps every dead row; compare the last tenth with the first."""
    with rig.database(system) as url:
        loaded = preload(rig, system, url, sizes.pinned_jobs, sizes.limit)
        with psycopg.connect(url) as holder:
            holder.execute("set transaction isolation level repeatable read")
            holder.execute("select txid_current()")
            run = drained(
                rig, system, url, loaded["jobs"], workers=system.max_workers, limit=2 * sizes.limit
            )
        if len(run.progress) < 20:
            raise TimeoutError(f"{run.jobs} jobs are too few to compare their tenths")
        first, last = tenths(run.progress, run.jobs)
        return {
            "ratio": last / first,
            "first": first,
            "last": last,
            "jobs": run.jobs,
            "cut_short": float(run.is_cut_short),
        }


def single(rig: Rig, system: System, sizes: Sizes, connections: int) -> Figures:
    """Enqueue one by one while no worker listens."""
    with rig.database(system) as url:
        answer = rig.ask(system, "single", url, connections, sizes.single_seconds)
        return {"rate": answer["jobs"] / answer["seconds"]}


def idle_latency(rig: Rig, system: System, sizes: Sizes) -> Figures:
    """Let an idle worker pick up one job at a time."""
    with rig.database(system) as url, rig.team(system, url, 1) as team:
        team.go()
        time.sleep(2)
        answer = rig.ask(
            system, "ping", url, sizes.samples, notes=team.notes, patience=30 + sizes.samples
        )
        return delays(answer["delays"])


def loaded_latency(rig: Rig, system: System, sizes: Sizes) -> Figures:
    """Let a worker pick up jobs that come at a steady rate."""
    with rig.database(system) as url, rig.team(system, url, 1) as team:
        team.go()
        time.sleep(2)
        server = rig.cpu(system.postgres)
        answer = rig.ask(system, "pace", url, sizes.rate, sizes.loaded_seconds, notes=team.notes)
        time.sleep(1)
        server = rig.cpu(system.postgres) - server
        started = team.started()
        committed = answer["committed"]
        found = [
            started[number] - moment for number, moment in enumerate(committed) if number in started
        ]
        wanted = sizes.rate * sizes.loaded_seconds
        falls_behind = len(found) < 0.99 * wanted or answer["seconds"] > 1.1 * sizes.loaded_seconds
        return {
            **delays(found),
            "falls_behind": float(falls_behind),
            "jobs": len(found),
            "server_us": server / len(committed) * 1e6,
        }


def idle(rig: Rig, system: System, sizes: Sizes) -> Figures:
    """Count the transactions of a worker that has nothing to do."""
    with rig.database(system) as url, rig.team(system, url, 1) as team:
        team.go()
        time.sleep(5)
        before = transactions(rig, system, url)
        time.sleep(sizes.idle_seconds)
        return {"per_second": (transactions(rig, system, url) - before) / sizes.idle_seconds}


MEASURES: dict[str, Any] = {
    "drain1": lambda rig, system, sizes: drain(rig, system, sizes, 1),
    "drain2": lambda rig, system, sizes: drain(rig, system, sizes, 2),
    "keyed": lambda rig, system, sizes: drain(rig, system, sizes, 1, "keyed"),
    "flows": lambda rig, system, sizes: drain(rig, system, sizes, 1, "flows"),
    "calls": lambda rig, system, sizes: drain(rig, system, sizes, 1, "calls"),
    "single1": lambda rig, system, sizes: single(rig, system, sizes, 1),
    "single8": lambda rig, system, sizes: single(rig, system, sizes, 8),
    "idle-latency": idle_latency,
    "loaded-latency": loaded_latency,
    "pinned": pinned,
    "idle": idle,
}
MEANINGS = {
    "drain1": "bulk enqueue, then no-op jobs done by one worker: rate, CPU of server and worker",
    "drain2": "the same by two workers, where a system can have two",
    "keyed": "a drain of jobs with 1,000 keys, of which each may run one at a time",
    "flows": "a drain of workflows of three steps",
    "calls": "a drain of workflows that call another one each",
    "single1": "jobs enqueued one by one, by one connection",
    "single8": "the same by eight connections at once",
    "idle-latency": "once: from a job's commit to its handler, by an idle worker",
    "loaded-latency": "once: the same at a steady rate, and the server's CPU",
    "pinned": "once: a drain beside a snapshot that keeps every dead row",
    "idle": "once: transactions a second of an idle worker",
}
# What takes long and varies little, or holds many samples in itself, is measured once.
ONCE = ("idle-latency", "loaded-latency", "pinned", "idle")


def preload(  # noqa: PLR0917 - the last is seldom given
    rig: Rig, system: System, url: str, jobs: int, limit: float, verb: str = "bulk"
) -> dict[str, Any]:
    """Enqueue in bulk and gather statistics for the planner."""
    loaded: dict[str, Any] = rig.ask(system, verb, url, jobs, limit, patience=limit + 60)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("analyze")
    return loaded


@dataclass(frozen=True)
class Run:
    """One drain.

    Attributes:
        jobs: how many were done.
        seconds: from the first job's start to the last one's end.
        server_cpu: seconds, from the opening of the gate.
        worker_cpu: seconds, from the opening of the gate.
        progress: how many jobs had started, at each noted time.
        is_cut_short: whether jobs were left when the time was up.
    """

    jobs: int
    seconds: float
    server_cpu: float
    worker_cpu: float
    progress: list[tuple[float, int]]
    is_cut_short: bool


def drained(rig: Rig, system: System, url: str, jobs: int, *, workers: int, limit: float) -> Run:
    """Drain a loaded queue; give up after a number of seconds."""
    with (
        psycopg.connect(url, autocommit=True) as own,
        rig.team(system, url, workers) as team,
    ):
        own_pid = own.info.backend_pid
        server, worker = rig.cpu(system.postgres, [own_pid]), team.cpu()
        team.go()
        ended = watched(team, own, system.unfinished, jobs, limit)
        gave_up = time.monotonic()
        server = rig.cpu(system.postgres, [own_pid]) - server
        worker = team.cpu() - worker
        progress = team.progress()
        done = jobs if ended else progress[-1][1]
        end = ended or gave_up
        return Run(done, end - progress[0][0], server, worker, progress, ended is None)


def watched(team: Team, own: Connection, unfinished: str, jobs: int, limit: float) -> float | None:
    """Return when the queue was found empty; None when the time is up before."""
    deadline = time.monotonic() + limit
    nearly = jobs - NOTE_EVERY * len(team.processes)
    while time.monotonic() < deadline:
        progress = team.progress()
        is_near = bool(progress) and progress[-1][1] >= nearly
        time.sleep(0.005 if is_near else 0.05)
        team.check()
        if is_near:
            row = own.execute(unfinished, prepare=True).fetchone()
            if row == (False,):
                return time.monotonic()
    if not team.progress():
        raise TimeoutError(f"no job started in {limit:.0f} s")
    return None


def delays(seconds: list[float]) -> Figures:
    """Return the percentiles of pick-up, in milliseconds."""
    if not seconds:
        raise TimeoutError("no job started")
    return {
        "p50_ms": percentile(seconds, 0.50) * 1000,
        "p99_ms": percentile(seconds, 0.99) * 1000,
    }


def transactions(rig: Rig, system: System, url: str) -> int:
    """Return how many transactions a database has seen."""
    name = url.rpartition("/")[2]
    rows = rig.admin(
        system.postgres, "select datname, xact_commit + xact_rollback from pg_stat_database"
    )
    return int(dict(rows)[name])
