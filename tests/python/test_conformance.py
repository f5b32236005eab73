"""The conformance suite: jobq's own worker holds all of it, and faults in a worker are found."""

from __future__ import annotations

import json
import re
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from jobq_cli import main
from jobq_conformance import play, suite, vocabulary
from jobq_conformance.stage import Stage
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

OWN = (sys.executable, "-m", "jobq_conformance.worker")
PAGE = (ROOT / "docs/contributing/conformance.md").read_text()
SABOTAGE = """
import asyncio, runpy, jobq.worker.heartbeat, jobq.worker.queries
{}
runpy.run_module("jobq_conformance.worker", run_name="__main__")
"""


def holds(outcome: suite.Outcome) -> None:
    assert outcome.verdict == "holds", f"{outcome.scenario.name}: {outcome.reason}"


@pytest.mark.prove
@pytest.mark.long
def test_jobqs_own_worker_is_a_full_one() -> None:
    outcomes = suite.run(OWN, patience=60, report=holds)
    assert suite.reached(outcomes) == ["producer", "worker", "full"]
    assert len(outcomes) == len(vocabulary.load()) > 40


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("stage"), 10) as stage:
        yield stage


@pytest.mark.xdist_group("conformance")
@pytest.mark.parametrize(
    ("fault", "scenario"),
    [
        (
            "jobq.worker.heartbeat.Heartbeat.run = lambda self: asyncio.sleep(1e6)",
            "a handler that takes longer than a lease",
        ),
        ("jobq.worker.queries.Queries.retire = lambda self: asyncio.sleep(0)", "counts as one"),
        (
            "import psycopg; psycopg.AsyncConnection.rollback = psycopg.AsyncConnection.commit",
            "is undone when it fails",
        ),
        ("print('hello')", "a permanent failure"),
    ],
)
def test_a_fault_is_found(stage: Stage, tmp_path: Path, fault: str, scenario: str) -> None:
    command = (sys.executable, "-c", SABOTAGE.format(fault))
    [played] = [each for each in vocabulary.load() if scenario in each.name]
    with closing(suite.Suite(stage, command, tmp_path / "log", 10, is_traced=False)) as tested:
        outcome = tested.play(played)
    assert outcome.verdict == "fails", outcome


def test_the_command_tells_what_holds_by_its_exit_status() -> None:
    """A program that only listens is nothing."""
    command = ["conformance", "--only", "rolled back", "--patience", "1", "--"]
    done = CliRunner().invoke(main, [*command, sys.executable, "-c", "input()"])
    assert done.exit_code == 1
    assert "0 hold, 1 fail, 0 left out" in done.output


def test_a_level_takes_all_of_its_scenarios() -> None:
    def outcomes(failed: Sequence[str]) -> list[suite.Outcome]:
        return [
            suite.Outcome(s, "fails" if s.level in failed else "holds", "", 0.0)
            for s in vocabulary.load()
        ]

    assert suite.reached(outcomes([])) == ["producer", "worker", "full"]
    assert suite.reached(outcomes(["worker"])) == ["producer"]
    assert suite.reached(outcomes(["full"])) == ["producer", "worker"]


def test_the_page_has_all_that_scenarios_say() -> None:
    """Whoever writes a program from the page meets nothing that it does not name."""
    steps = [step for scenario in vocabulary.load() for step in scenario.steps]
    assert {next(iter(step)) for step in steps} == {
        name.removeprefix("_do_") for name in vars(play.Play) if name.startswith("_do_")
    }
    words = {step["ask"] for step in steps if "ask" in step}
    words |= {step["do"] for step in steps if "do" in step}
    words |= {step["said"] for step in steps if "said" in step}
    words |= {key for scenario in vocabulary.load() for key in scenario.work or {}}
    assert words <= set(re.findall(r"[`\"](\w+)[`\"]", PAGE))


def test_every_example_of_a_line_is_json() -> None:
    examples = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        json.loads(example)
