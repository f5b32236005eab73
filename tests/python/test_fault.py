"""The short form of `make fault`: nothing is lost, and the checker would say so if it were."""

from __future__ import annotations

import os
import subprocess
import sys

from servers import ROOT

RUN = ROOT / "tests" / "fault" / "run.py"
PATHS = {"PYTHONPATH": os.pathsep.join(str(ROOT / p) for p in ("tests/python", "sql"))}


def test_nothing_is_lost_under_faults() -> None:
    done = subprocess.run(
        [sys.executable, str(RUN), "--short"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | PATHS,
    )
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.count("| 0      |") >= 5, "the table does not say what was lost"


def test_a_loss_is_noticed() -> None:
    """A fault that deletes live jobs behind the queue's back must be reported."""
    script = f"""
import sys
sys.path.insert(0, {str(RUN.parent)!r})
import faults, run

def thief(rig):
    rig.pause = 0.001
    rig.prepare()
    rig.start()
    with rig.connect() as connection:
        connection.execute(
            "delete from jobq_private.job_archive where job_id in"
            " (select job_id from jobq_private.job_archive limit 3)"
        )

faults.FAULTS["thief"] = thief
sys.argv = ["run.py", "--seconds", "1", "thief"]
sys.exit(run.main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | PATHS,
    )
    assert done.returncode == 1, done.stderr
    assert "lost" in done.stdout and "PROBLEM thief" in done.stdout
