"""Workers that are killed at the boundaries of steps: no recorded step may run again.

A worker stops itself at a boundary, by chance, and is killed where it stands; others are killed
at any moment. Every job has three steps, and all of them must finish.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg
    from rig import Rig

# How often, at a look, a worker is killed that stands nowhere in particular.
OTHERS = 0.004
STEPS = "select job_id::text, name, attempt from jobq_private.step"
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
    halt.unlink()
    rig.every(0.01, 0.03, lambda: kill_stopped(rig), seconds=1.0)
    outcome = rig.check()
    with rig.connect() as connection:
        problems = list(problems_of(rig, connection))
    rig.outcome = replace(outcome, problems=[*outcome.problems, *problems])


def kill_some(rig: Rig) -> None:
    """Kill the workers that stand at a boundary, and now and then another one."""
    kill_stopped(rig)
    if rig.random.random() < OTHERS:
        rig.kill_worker()


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
