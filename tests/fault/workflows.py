"""Workers that are killed at the boundaries of steps, and under graphs and batches.

Of steps, none that is recorded may run again: a worker stops itself at a boundary, by chance,
and is killed where it stands; others are killed at any moment. Every job has three steps, and all
of them must finish. Of graphs and batches, all jobs must finish, and none may begin before those
have ended that it waits for.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobq import Client, Graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg
    from rig import Rig

# How often, at a look, a worker is killed that stands nowhere in particular.
OTHERS = 0.004
STEPS = "select job_id::text, name, attempt from jobq_private.step"
# How often a worker is killed rather than a graph made, and how wide the graphs are.
KILLS = 0.15
WIDTH = 6
EARLY = """
select count(*) from jobq_private.edge as e
join jobq.job as p on p.job_id = e.parent
join jobq.job as c on c.job_id = e.child
where least(
    c.claimed_at, (select min(a.started_at) from jobq.attempt as a where a.job_id = c.job_id)
) < p.finished_at
"""
UNCALLED = """
select count(*) from jobq_private.batch as b
where b.sealed_at is not null and b.ended_at is null
"""
DIFFERENT = """
select count(*) from jobq.job as j
where j.kind = 'workflow' and j.state = 'succeeded' and j.result is distinct from (
    select jsonb_agg(s.value order by s.saved_at, s.name) from jobq_private.step as s
    where s.job_id = j.job_id
)
"""


def three_steps(rig: Rig) -> None:
    """Workers are killed before, in, behind and between the steps of their jobs."""
    rig.kind = "workflow"
    rig.prepare()
    rig.start()
    halt = Path(f"{rig.journal}.halt")
    halt.touch()
    rig.every(0.01, 0.03, lambda: kill_some(rig))
    rig.wait(lambda: has_cut_one_off(rig), "no step was cut off")
    halt.unlink()
    rig.every(0.01, 0.03, lambda: kill_stopped(rig), seconds=1.0)
    outcome = rig.check()
    with rig.connect() as connection:
        problems = list(problems_of(rig, connection))
    rig.outcome = replace(outcome, problems=[*outcome.problems, *problems])


def fan_out_fan_in(rig: Rig) -> None:
    """Workers are killed under graphs, one job to many to one, and under batches."""
    rig.prepare()
    rig.start()
    with rig.connect() as connection:
        rig.every(0.05, 0.15, lambda: kill_or_fan(rig, connection))
        outcome = rig.check()
        problems = [
            f"{found[0]} {what}"
            for what, query in (("began too soon", EARLY), ("batches did not end", UNCALLED))
            if (found := connection.execute(query).fetchone()) and found[0]
        ]
        graphs = connection.execute("select count(*) from jobq_private.node").fetchone()
        if not graphs or graphs[0] < WIDTH:
            problems.append("no graph was made")
    rig.outcome = replace(outcome, problems=[*outcome.problems, *problems])


def kill_or_fan(rig: Rig, connection: psycopg.Connection[Any]) -> None:
    """Kill a worker, or make a graph and a batch."""
    if rig.random.random() < KILLS:
        rig.kill_worker()
        return
    client = Client(connection)
    job: dict[str, Any] = {"payload": {"seconds": rig.seconds}, "queue": "probe"}
    flow = Graph()
    first = flow.add(rig.kind, **job)
    parts = [flow.add(rig.kind, after=[first], **job) for _ in range(WIDTH)]
    flow.add(rig.kind, after=parts, **job)
    client.enqueue_graph(flow)
    batch = client.open_batch(on_success={"kind": rig.kind, **job})
    client.enqueue_many([{"kind": rig.kind, "batch_id": batch, **job} for _ in range(WIDTH)])
    client.seal_batch(batch)


def kill_some(rig: Rig) -> None:
    """Kill the workers that stand at a boundary, and now and then another one."""
    kill_stopped(rig)
    if rig.random.random() < OTHERS:
        rig.kill_worker()


def has_cut_one_off(rig: Rig) -> bool:
    """Kill some more; tell whether a step has begun twice. A slow machine begins few in time."""
    kill_some(rig)
    begun = [
        (what, words[0])
        for what, *words in map(str.split, rig.journal.read_text().splitlines())
        if what.startswith("ran:")
    ]
    return len(set(begun)) < len(begun)


def kill_stopped(rig: Rig) -> None:
    for worker in list(rig.workers):
        if Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            rig.kill_worker(worker)


def problems_of(rig: Rig, connection: psycopg.Connection[tuple[object, ...]]) -> Iterator[str]:
    """Yield what must not be of steps."""
    recorded = {(job, name): attempt for job, name, attempt in connection.execute(STEPS)}
    runs = 0
    for line in rig.journal.read_text().splitlines():
        what, *words = line.split()
        if not what.startswith("ran:"):
            continue
        runs += 1
        job, attempt = words[0], int(words[1])
        first = recorded.get((job, what.removeprefix("ran:")))
        if first is not None and attempt > int(str(first)):
            yield f"{what} of job {job} ran in attempt {attempt}, recorded by attempt {first}"
    if runs <= len(recorded):
        yield f"{runs} runs of {len(recorded)} steps: none was ever cut off"
    if connection.execute(DIFFERENT).fetchone() != (0,):
        yield "a job has another result than its steps"
