"""The specification: it is the product's, and histories follow it. `make prove` checks it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import chance
import history
import psycopg
import pytest
import relation
from load import LIMITS, SETUP, Load
from replay import Replay, replay

from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = int(os.environ.get("JOBQ_SPEC_STEPS", "700"))


@pytest.fixture
def recorded(database: str) -> Iterator[str]:
    """A database whose history is recorded; nothing is replayed at the end."""
    history.record(database)
    yield database
    history.forget(database)


def test_the_relation_is_the_products(database: str) -> None:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select from_state, to_state from jobq_private.transition"
        ).fetchall()
    assert relation.transitions() == set(rows)


def loaded(url: str, steps: int, bug: str = "") -> Replay:
    """Run a random load and replay its history.

    Args:
        url: of a superuser, of a recorded database.
        steps: how many calls.
        bug: statements that plant one; the product may then fail in any way.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"{SETUP}; {bug}".encode())
    Load(url, random.Random(chance.seed()), is_sound=not bug).run(steps)
    return replay(url, LIMITS)


@pytest.mark.long
def test_a_random_load_follows_the_specification(recorded: str) -> None:
    replayed = loaded(recorded, STEPS)
    assert not replayed.rejected, str(replayed)
    # The load is random, and follows the clock: about 16 kinds of changes, at times 12 of them.
    assert len(replayed.steps) >= 9
    assert replayed.steps.total() > STEPS / 10


@pytest.mark.prove
@pytest.mark.long
def test_loads_side_by_side_follow_the_specification() -> None:
    soak = str(ROOT / "tests/spec/soak.py")
    command = [sys.executable, soak, "--steps", str(STEPS), "--calls", "300"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 rejected" in done.stdout.splitlines()[-1]


# A function, what to replace in it, and what else the product would refuse the bug with.
PLANTED = {
    "a claim does not raise the attempt": (
        "jobq_private.start_jobs",
        ("attempt = j.attempt + 1", "attempt = j.attempt"),
        "alter table jobq_private.job disable trigger job_transition",
    ),
    "a lost attempt succeeds": (
        "jobq_private.archive_jobs",
        ("and (j.lease_expires_at is not null", "and (true"),
        "alter table jobq_private.job_archive drop constraint job_archive_transition_fkey",
    ),
    "any update of the state is accepted": (
        "jobq_private.job_transition",
        ("new.previous_state := old.state;", "new.previous_state := null;"),
        "",
    ),
}


@pytest.mark.prove
@pytest.mark.long
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_rejected(recorded: str, bug: str) -> None:
    function, (old, new), others = PLANTED[bug]
    with psycopg.connect(recorded, autocommit=True) as connection:
        [(source,)] = connection.execute(
            "select pg_get_functiondef(%s::regproc)", [function]
        ).fetchall()
        assert old in source
    bug = f"{source.replace(old, new)}; {others}"
    replayed = loaded(recorded, STEPS, bug)
    assert replayed.rejected
