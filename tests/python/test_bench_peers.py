"""`make bench-peers` in a tiny size: jobq alone, and the arithmetic of its table."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from servers import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PEERS = ROOT / "tests" / "bench" / "peers"
figures: Any = SimpleNamespace(**runpy.run_path(str(PEERS / "figures.py")))


def entry(measure: str, **found: float) -> dict[str, Any]:
    return {"system": "slow", "measure": measure, "figures": found}


def test_the_help_lists_systems_and_measures_with_a_line_each() -> None:
    code = (
        "import json, measures, systems; print(json.dumps([*measures.MEASURES, *systems.SYSTEMS]))"
    )
    known, said = (
        subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, cwd=PEERS, check=True
        )
        for words in (("-c", code), ("run.py", "--help"))
    )
    listed = {line.strip().split("  ")[0] for line in said.stdout.splitlines()}
    assert set(json.loads(known.stdout)) <= listed


@pytest.mark.prove
@pytest.mark.long
def test_jobq_is_measured_and_tabled(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = (
        "--systems jobq --measures drain2,single1 --rounds 2 --jobs 300 --single-seconds 0.2"
    ).split()
    done = subprocess.run(
        [sys.executable, str(PEERS / "run.py"), *options, "--json", str(report)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
    found = json.loads(report.read_text())
    taken = [(e["measure"], e["round"], e.get("failed")) for e in found["figures"]]
    assert taken == [(m, n, None) for n in (1, 2) for m in ("drain2", "single1")]
    assert all(
        value > 0
        for e in found["figures"]
        for name, value in e["figures"].items()
        if name in ("rate", "bulk", "jobs")
    )
    assert found["figures"][0]["figures"]["jobs"] == 300
    assert found["settings"]["fsync"] == "on"
    assert "| jobq " in done.stdout


def test_a_cell_is_the_median_with_the_range() -> None:
    raw = [entry("single1", rate=rate) for rate in (300.0, 100.0, 2000.0)]
    assert figures.cell(raw, "slow", [("single1", "rate", ",.0f")]) == "300 (100 to 2,000)"
    assert figures.cell(raw[:1], "slow", [("single1", "rate", ",.0f")]) == "300"


def test_what_was_cut_short_or_failed_is_marked() -> None:
    raw = [
        entry("drain1", rate=9.0, cut_short=0.0),
        entry("drain1", rate=9.0, cut_short=1.0, bulk=7.0),
        {"system": "slow", "measure": "idle", "failed": "no answer"},
    ]
    assert figures.cell(raw, "slow", [("drain1", "rate", ".0f")]) == "9 (9 to 9)†"
    assert figures.cell(raw, "slow", [("drain1", "bulk", ".0f")]) == "7", "that was not cut short"
    assert figures.cell(raw, "slow", [("idle", "per_second", ".1f")]) == "failed"
    assert figures.cell(raw, "slow", [("pinned", "ratio", ".1f")]) == ""
    assert figures.failures(raw) == ["failed: slow, idle: no answer"]


def test_tenths_are_rates_of_the_first_and_the_last_jobs() -> None:
    progress = [(0.0, 0), (1.0, 100), (4.0, 800), (5.0, 900), (7.0, 1000)]
    assert figures.tenths(progress, 1000) == (pytest.approx(100), pytest.approx(50))


def test_percentiles() -> None:
    values = [float(n) for n in range(200)]
    assert figures.percentile(values, 0.5) == 100
    assert figures.percentile(values, 0.99) == 198
    assert figures.percentile([1.0], 0.99) == 1.0
