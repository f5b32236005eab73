"""The systems that are measured, and what the harness must know of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Environment = Literal["product", "python", "node"]

DRAIN: Final = ("drain1", "drain2")
ENQUEUE: Final = ("single1", "single8")
PICK_UP: Final = ("idle-latency", "loaded-latency")
ALL: Final = (*DRAIN, *ENQUEUE, *PICK_UP, "pinned", "idle")
KEYED: Final = (*ALL, "keyed")
WORKFLOWS: Final = ("flows", "calls")
DURABLE: Final = (*ALL, *WORKFLOWS)


@dataclass(frozen=True)
class System:
    """One system under measurement.

    Attributes:
        name: on the command line and in the table.
        agent: its file in the folder ``agents``.
        environment: where its agent runs.
        unfinished: a query that says whether jobs are left.
        note: how it is configured, or what sets it apart.
        call: what one call of a handler gets.
        measures: what is measured of it.
        postgres: the major version of its server.
        max_workers: how many processes can share its work.
        requires: a file without which it cannot run.
        remedy: what brings that file.
    """

    name: str
    agent: str
    environment: Environment
    unfinished: str
    note: str
    call: str = "a job"
    measures: tuple[str, ...] = ALL
    postgres: str = "18"
    max_workers: int = 2
    requires: Path | None = None
    remedy: str = ""


SYSTEMS: Final = {
    system.name: system
    for system in (
        System(
            "jobq",
            "jobq_agent.py",
            "product",
            "select exists (select from jobq_private.job)",
            "states, history; `jobq worker` as it comes",
            measures=(*KEYED, *WORKFLOWS),
        ),
        System(
            "jobq no trace",
            "jobq_traceless_agent.py",
            "product",
            "select exists (select from jobq_private.job)",
            "the same with `keep_succeeded => '0'`: deletes, as others do",
            measures=DRAIN,
        ),
        System(
            "jobq batches",
            "jobq_batches_agent.py",
            "product",
            "select exists (select from jobq_private.job)",
            "states, history; `--concurrency 500` and a handler of batches",
            measures=DRAIN,
            call="up to 500 jobs",
        ),
        System(
            "jobq SQL",
            "jobq_sql_agent.py",
            "product",
            "select exists (select from jobq_private.job)",
            "`select jobq.enqueue(...)` on a plain connection, without the client",
            measures=ENQUEUE,
            call="",
        ),
        System(
            "bare INSERT",
            "bare_agent.py",
            "product",
            "select false",
            "jobq's row into a copy of its table with the indexes, by psycopg; no queue",
            measures=ENQUEUE,
            call="",
        ),
        System(
            "pgqueuer",
            "pgqueuer_agent.py",
            "python",
            "select exists (select from pgqueuer)",
            "asyncpg, uvloop, batches of 500; deletes, logs",
            measures=KEYED,
        ),
        System(
            "procrastinate",
            "procrastinate_agent.py",
            "python",
            "select exists (select from procrastinate_jobs where status in ('todo', 'doing'))",
            "50 jobs at a time, batch defers; states, history",
            measures=KEYED,
        ),
        System(
            "chancy",
            "chancy_agent.py",
            "python",
            "select exists (select from chancy_jobs"
            " where state in ('pending', 'running', 'retrying'))",
            "asyncio executor, 500 jobs at a time, eager polling; states",
        ),
        System(
            "absurd",
            "absurd_agent.py",
            "python",
            "select exists (select from absurd.t_default where state in ('pending', 'running'))",
            "asyncio SDK, 100 tasks at a time; durable workflows",
            measures=DURABLE,
        ),
        System(
            "dbos",
            "dbos_agent.py",
            "python",
            "select exists (select from dbos.workflow_status"
            " where status in ('ENQUEUED', 'PENDING'))",
            "asyncio workflows, 500 at a time, polled every 50 ms; durable workflows",
            measures=(*KEYED, *WORKFLOWS),
        ),
        System(
            "graphile-worker",
            "graphile_worker_agent.mjs",
            "node",
            "select exists (select from graphile_worker._private_jobs)",
            "24 jobs at a time, local queue of 500, completions batched; deletes",
        ),
        System(
            "pg-boss",
            "pg_boss_agent.mjs",
            "node",
            "select exists (select from pgboss.job where state < 'completed')",
            "batches of 2,000, two at a time, bursts, notifications; states, history",
            measures=KEYED,
            call="up to 2,000 jobs",
        ),
        System(
            "BullMQ",
            "bullmq_agent.mjs",
            "node",
            "select exists (select from bullmq.job"
            " where state in ('waiting', 'active', 'delayed'))",
            "on PostgreSQL, 32 jobs at a time; states, history",
        ),
        System(
            "awa",
            "awa_agent.py",
            "python",
            "select exists (select from awa.jobs where state not in ('completed', 'failed'))",
            "asyncio workers on its Rust core, 200 jobs at a time, bulk by COPY; states",
        ),
        System(
            "pgmq",
            "pgmq_agent.py",
            "python",
            "select exists (select from pgmq.q_bench)",
            "reads and deletes 500 at a time; messages, no states",
            call="none: a loop",
        ),
        System(
            "PgQ",
            "pgq_agent.py",
            "python",
            "select pending_events > 0 from pgq.get_consumer_info('bench', 'worker')",
            "on PostgreSQL 15, an upper bound: events for one consumer, no states",
            call="none: a loop",
            postgres="15",
            max_workers=1,
            requires=Path("/usr/share/postgresql/15/extension/pgq.control"),
            remedy="apt-get install postgresql-15-pgq3",
        ),
    )
}
