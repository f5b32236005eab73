"""The short form of `make fault`, and its checker: it would tell if the promise were broken."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from fault_history import Journal, Stored, Trouble, may_repeat, problems_of

from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

FAULT = ROOT / "tests" / "fault"
PATHS = {
    "PYTHONPATH": os.pathsep.join(str(ROOT / p) for p in ("tests/python", "tests/spec", "sql"))
}
ENDED = ["start a 1 7 10.0", "end a 1 7 10.5"]
FAULT_MODULES: dict[str, Any] = {
    "limits": SimpleNamespace(**runpy.run_path(str(FAULT / "limits.py")))
}
TOLD = [*ENDED, "told a 1 7 10.6"]
AGAIN = ["start a 2 8 14.0", "end a 2 8 14.5", "told a 2 8 14.6"]


def found(
    lines: Sequence[str], troubles: Sequence[Trouble] = (), **different: Any
) -> tuple[list[str], int]:
    """Return what is wrong with the history of one job, and how often it might repeat."""
    journal = Journal.read(lines)
    last = max(a.number for a in journal.attempts)
    whole: dict[str, Any] = {
        "key": "k",
        "job": "a",
        "state": "succeeded",
        "attempt": last,
        "is_finished": True,
    }
    stored = [Stored(**(whole | different))]
    return (
        list(problems_of(journal, troubles, {"k": "a"}, stored)),
        len(may_repeat(journal, troubles)),
    )


def test_a_history_without_faults_is_sound() -> None:
    assert found(TOLD) == ([], 0)


@pytest.mark.parametrize(
    "trouble",
    [Trouble(10.2, 10.3, 7), Trouble(10.55, 10.6, 7), Trouble(9, 10.1, 7), Trouble(9, 13)],
    ids=["while it ran", "before it was told", "when it began", "of all"],
)
def test_a_repeat_has_a_cause(trouble: Trouble) -> None:
    assert found([*ENDED, *AGAIN], [trouble]) == ([], 1)


def test_a_worker_tells_of_its_own_trouble() -> None:
    assert found([*ENDED, *AGAIN, "trouble 7 10.1 12.0"]) == ([], 1)


@pytest.mark.parametrize(
    ("lines", "troubles"),
    [
        ([*ENDED, *AGAIN], []),
        ([*ENDED, *AGAIN], [Trouble(10.2, 10.3, 8)]),
        ([*ENDED, *AGAIN], [Trouble(8.0, 9.9, 7)]),
        ([*TOLD, *AGAIN], [Trouble(10.7, 13.0, 7)]),
        ([*ENDED, *AGAIN, "start a 3 7 20.0", "end a 3 7 20.1"], [Trouble(10.2, 10.3, 7)]),
    ],
    ids=["nothing happened", "another worker's", "too early", "too late", "one repeat too many"],
)
def test_a_repeat_without_a_cause_is_noticed(lines: list[str], troubles: list[Trouble]) -> None:
    problems, _ = found(lines, troubles)
    assert len(problems) == 1
    assert "repeat what nothing disturbed" in problems[0]


@pytest.mark.parametrize(
    ("lines", "different", "problem"),
    [
        (TOLD, {"key": "other"}, "lost: ['k']"),
        (TOLD, {"is_finished": False}, "lost: ['k']"),
        (TOLD, {"job": "b", "state": "dead"}, "did not succeed: {'dead': 1}"),
        (["start a 1 7 10.0"], {}, "1 succeeded without having run"),
        ([*TOLD, "start a 1 8 11.0"], {}, "1 attempts ran twice"),
        (TOLD, {"attempt": 0}, "an attempt ran that the history does not have"),
    ],
)
def test_a_broken_promise_is_noticed(
    lines: list[str], different: dict[str, Any], problem: str
) -> None:
    assert problem in found(lines, **different)[0]


def test_a_limit_of_one_is_held_against_what_ran() -> None:
    killed = [Trouble(10.2, 10.3, 7)]
    again = ["start b 1 8 10.4", "end b 1 8 10.6"]
    limits = FAULT_MODULES["limits"]
    assert list(limits.too_many(Journal.read([*ENDED, "start b 1 8 10.6"]), [])) == []
    assert list(limits.too_many(Journal.read(["start a 1 7 10.0", *again]), killed)) == []
    [problem] = limits.too_many(Journal.read([*ENDED, *again]), [])
    assert "started while job a ran" in problem


def test_a_rate_is_held_against_what_began() -> None:
    limits = FAULT_MODULES["limits"]
    for gap, count in ((1 / limits.RATE, 0), (0.1 / limits.RATE, 1)):
        lines = [f"start {n} 1 7 {n * gap}" for n in range(1000)]
        assert len(list(limits.too_fast(Journal.read(lines), 0))) == count


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | PATHS,
    )


@pytest.mark.prove
@pytest.mark.long
def test_nothing_is_lost_under_faults() -> None:
    done = run(str(FAULT / "run.py"), "--short")
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.count("| 0      |") >= 5, "the table does not say what was lost"


THIEF = """
    rig.prepare()
    rig.start()
    with rig.connect() as connection:
        rig.wait(lambda: connection.execute(
            "delete from jobq_private.job_archive where job_id in"
            " (select job_id from jobq_private.job_archive limit 3)"
        ).rowcount, "nothing is archived")
"""
TAKER = """
    rig.seconds = 0.5
    rig.prepare()
    rig.start()
    with rig.connect() as connection:
        connection.execute("set session_replication_role = replica")
        def take():
            with connection.transaction():
                connection.execute(
                    "update jobq_private.job set lease_expires_at = now() - interval '1 s'"
                    " where state = 'running'"
                )
                connection.execute("set local session_replication_role = origin")
                return connection.execute("select from jobq_internal.recover()").fetchall()
        rig.wait(take, "nothing runs")
"""
HOLDER = """
    global connection
    rig_module.ALLOWANCE = 0
    rig.prepare()
    connection = rig.connect()
    connection.execute("select jobq.enqueue('probe', queue => 'probe')")
    connection.execute("begin")
    connection.execute("select from jobq_private.job for update")
    rig.start()
"""


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        pytest.param(THIEF, "lost: ", id="finished jobs are deleted"),
        pytest.param(
            TAKER,
            "repeat what nothing disturbed",
            id="live leases are taken back",
            marks=pytest.mark.prove,
        ),
        pytest.param(
            HOLDER,
            "1 jobs have not finished after",
            id="a job is kept from workers",
            marks=pytest.mark.prove,
        ),
    ],
)
@pytest.mark.long
def test_damage_behind_the_queues_back_is_noticed(damage: str, problem: str) -> None:
    done = run(
        "-c",
        f"""
import sys
sys.path.insert(0, {str(FAULT)!r})
import faults, run
import rig as rig_module

def damage(rig):
    {damage}

faults.FAULTS["damage"] = damage
sys.argv = ["run.py", "--seconds", "1", "damage"]
sys.exit(run.main())
""",
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 1, done.stderr
    assert "PROBLEM damage: " in done.stdout
    assert problem in done.stdout
