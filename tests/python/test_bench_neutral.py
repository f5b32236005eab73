"""The adapter for a harness of others keeps that harness's contract, also under its chaos."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NEUTRAL = ROOT / "tests" / "bench" / "neutral"
REQUIRED = {
    "claim_p50_ms", "claim_p95_ms", "claim_p99_ms",
    "enqueue_rate", "completion_rate", "queue_depth",
}  # fmt: skip
KILL = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
"""


@contextmanager
def adapter(url: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run the adapter as the harness does; it must end well, and in time."""
    process = subprocess.Popen(
        [sys.executable, str(NEUTRAL / "adapter.py")],
        env={**os.environ, "DATABASE_URL": url, "SAMPLE_EVERY_S": "1", "WORKER_COUNT": "4",
             "PRODUCER_RATE": "40", **environment},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


def records(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    return map(json.loads, process.stdout)


def until(process: subprocess.Popen[str], metric: str, least: float) -> set[str]:
    """Read samples until one is so large; return which metrics came."""
    seen = set()
    for record in records(process):
        seen.add(record.get("metric", "none: it describes itself"))
        if record.get("metric") == metric and record["value"] >= least:
            return seen
    raise AssertionError("the adapter has ended")


@pytest.mark.prove
@pytest.mark.long
def test_the_adapter_describes_itself_and_does_what_is_offered(empty_database: str) -> None:
    manifest = json.loads((NEUTRAL / "adapter.json").read_text())
    with adapter(empty_database) as process:
        described = next(records(process))
        assert described["kind"] == "descriptor"
        assert set(described["event_tables"]) >= set(manifest["event_tables"])
        until(process, "completion_rate", 20)
        assert {*until(process, "completion_rate", 20), *until(process, "queue_depth", 0)} >= (
            REQUIRED
        )
        with psycopg.connect(empty_database, autocommit=True) as connection:
            for table in manifest["event_tables"] + manifest["event_indexes"]:
                assert connection.execute("select to_regclass(%s)", [table]).fetchone() != (None,)
            connection.execute(KILL)
        until(process, "completion_rate", 20)


@pytest.mark.prove
@pytest.mark.long
def test_the_adapter_keeps_jobs_waiting_and_a_second_one_joins(empty_database: str) -> None:
    many = {"PRODUCER_MODE": "depth-target", "TARGET_DEPTH": "300", "JOB_WORK_MS": "50"}
    with adapter(empty_database, **many) as first:
        until(first, "queue_depth", 200)
        started = time.monotonic()
        with adapter(empty_database, BENCH_INSTANCE_ID="1") as second:
            seen = until(second, "completion_rate", 1)
        assert "queue_depth" not in seen
        assert time.monotonic() - started < 60


def test_a_table_has_a_line_for_each_cell_of_its_last_run(tmp_path: Path) -> None:
    run: Any = SimpleNamespace(**runpy.run_path(str(NEUTRAL / "run.py")))
    file = tmp_path / "results.csv"
    head = {"system": "jobq", "cell": "event_burst", "ended": "complete"}
    for at, afterwards in (("1", 10.0), ("2", 99.0)):
        run.write(file, [
            {**head, "at": at, "phase": phase, "enqueue_rate": 100.0, "completion_rate": rate,
             "depth_peak": 7, "jobs_lost": "", "recovery_s": "", "claim_p99_ms": 5.0}
            for phase, rate in (("clean", 100.0), ("stress", 150.0), ("recovery", afterwards))
        ])  # fmt: skip
    run.write(file, [{"system": "pgmq", "cell": "idle_in_tx", "ended": "Error: gone", "at": "3"}])
    lines = run.table(run.read(file)).splitlines()
    assert lines[2:] == [
        "| event_burst | jobq | complete | 100 | 150% | 99% |  |  | 5.0 | 7 |",
        "| idle_in_tx | pgmq | Error: gone | | | | | | | |",
    ]
    assert len(run.CELLS) == 12
