"""Run every pgTAP script of tests/pgtap, topic by topic, on every version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from servers import ROOT, Cluster

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTS = sorted((ROOT / "tests" / "pgtap").glob("*/*.sql"))
OPTIONS = {"search_path": "tap,public", "client_min_messages": "warning"}


@pytest.mark.oldest_version(is_usual=True)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_pgtap(cluster: Cluster, script: Path) -> None:
    output = cluster.psql(cluster.pgtap, script, OPTIONS)
    problem = tap_problem(output)
    assert problem is None, f"{script.name}: {problem}\n{output}"


def tap_problem(output: str) -> str | None:
    """Return what is wrong with a TAP report; None if all is well."""
    results = re.findall(r"^(not )?ok (\d+)(.*)$", output, re.MULTILINE)
    failed = [n for bad, n, rest in results if bad and "# TODO" not in rest]
    plan = re.findall(r"^1\.\.(\d+)", output, re.MULTILINE)
    if failed:
        return f"failed: {', '.join(failed)}"
    if len(plan) != 1:
        return f"{len(plan)} plans"
    if len(results) != int(plan[0]):
        return f"planned {plan[0]} tests but ran {len(results)}"
    if [int(n) for _, n, _ in results] != list(range(1, len(results) + 1)):
        return "the tests are not numbered in order"
    return None


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("1..2\nok 1 - a\nok 2 - b\n", None),
        ("1..2\nok 1 - a\nnot ok 2 - b\n", "failed: 2"),
        ("1..1\nnot ok 1 - a # TODO later\n", None),
        ("1..3\nok 1 - a\n", "planned 3 tests but ran 1"),
        ("ok 1 - a\n", "0 plans"),
        ("1..2\nok 1 - a\nok 1 - b\n", "the tests are not numbered in order"),
    ],
)
def test_a_bad_tap_report_is_noticed(output: str, problem: str | None) -> None:
    assert tap_problem(output) == problem
