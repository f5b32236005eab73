"""Parts of `make bench` in a tiny size, and the plot that one of them draws."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import psycopg
import pytest

from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., str]

BENCH = ROOT / "tests" / "bench"
WITH_SERVERS = {"cores", "sessions", "shards"}
plot: Any = SimpleNamespace(**runpy.run_path(str(BENCH / "plot.py")))
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    cores: Any = SimpleNamespace(**runpy.run_path(str(BENCH / "bench_cores.py")))


@pytest.mark.parametrize(
    ("part", "options", "lines"),
    [
        (
            "agents",
            "--streams 20 --chunks 100 --seconds 1 --calls 50 --rounds 1",
            [
                r"20 streams, \d+ chunks/s in all +-?[\d,]+ µs of the server's CPU a chunk",
                r"from append to a reader, \d+ chunks +p50 [\d.]+ ms, p99 [\d.]+ ms",
                r"50 calls, beside twice as many plain jobs +[\d,]+ % of the time",
            ],
        ),
        (
            "pick_up",
            "--idle-rounds 5 --rounds 5 --seconds 0.2",
            [r"5 rounds.* than 1 s: 0", r"pick-up at 500 jobs/s +p50 [\d.]+ ms"],
        ),
        (
            "flat",
            "--finished 100 --tomorrow 100 --calls 5",
            [r"100 jobs due tomorrow +claim of 1 +\d+ buffers", r"completion of 100 .* times\)"],
        ),
        pytest.param(
            "deploy",
            "--rate 100 --seconds 1 --deploys 1",
            [
                r"brought to this release: .*job_birth",
                r"longest claim ",
                r"errors of clients +0 \[\]",
            ],
            marks=pytest.mark.prove,
        ),
        (
            "drain",
            "--rounds 1 --jobs 1000 --tomorrow 100 --pinned 2000",
            [r"last tenth [\d,]+ jobs/s, [\d.]+ times", r"beside 100 due tomorrow [\d,]+ jobs/s"],
        ),
        pytest.param(
            "flow",
            "--jobs 300 --keys 20 --saturated 50 --large 300 --small 10 --rounds 1",
            [
                r"20 keys, limit 1 +[\d,]+ jobs/s, [\d.]+ of plain",
                r"20 keys, a rate and costs +[\d,]+ jobs/s, [\d.]+ of plain",
                r"50 saturated keys [\d.]+ ms, [\d.]+ times",
                r"50 slots: [\d.]+ times as long",
                r"next of its key, 1 queues .* p50 [\d.]+ ms",
                r"next of its key, 2 queues .* p50 [\d.]+ ms",
            ],
            marks=pytest.mark.prove,
        ),
        pytest.param(
            "sessions",
            "--jobs 300 --sessions 4 --batches 1,20",
            [r"4 sessions, batches of +20: .* jobs/s, .* 0.0 multixacts and 0.0 members"],
            marks=pytest.mark.prove,
        ),
        pytest.param(
            "cores",
            "--jobs 300 --cores 1,2,999 --rounds 1 --batches 20",
            [
                r"batches of +20, +1 cores: +[\d,]+ jobs/s, predicted +[\d,]+; [\d,]+ µs of CPU",
                r"batches of +20, +2 cores: +[\d,]+ jobs/s, predicted",
                r"999 cores: +not here, predicted +[\d,]+$",
            ],
            marks=pytest.mark.prove,
        ),
        pytest.param(
            "shards",
            "--jobs 1000 --singles 16 --shards 2 --rounds 1",
            [
                r"2 shards drain +[\d,]+ jobs/s",
                r"single with a key, 8 connections, routed .* router +[\d.]+ µs, shards +[\d.]+ µs",
                r"1000 in a call, with keys, routed ",
                r"the router: \S+% of the [\d.]+ µs that such a job costs its shard",
            ],
            marks=pytest.mark.prove,
        ),
        (
            "scale",
            "--jobs 200 --batch 1000 --priorities 20",
            [
                r"explain, head of the queue +[\d.]+ ms +\(goal 10 ms\)",
                r"cancel_many, 1,000 jobs +[\d.]+ ms +\(goal 100 ms\)",
            ],
        ),
    ],
)
@pytest.mark.long
def test_a_part_prints_its_figures(part: str, options: str, lines: list[str], run: Run) -> None:
    printed = run(part, *options.split())
    for line in lines:
        assert re.search(line, printed, re.MULTILINE), printed


@pytest.fixture
def run(database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs a part and returns what it prints.

    A part that starts no server of its own with settings of its own gets the test's database, in
    this process: a server and Python's imports are most of what it costs otherwise.
    """

    @contextmanager
    def given() -> Iterator[tuple[psycopg.Connection[Any], str]]:
        with psycopg.connect(database, autocommit=True) as connection:
            yield connection, database

    def run(part: str, *options: str) -> str:
        script = BENCH / f"bench_{part}.py"
        if part not in WITH_SERVERS:
            monkeypatch.syspath_prepend(BENCH)
            monkeypatch.setattr("bench.database", given)
            monkeypatch.setattr(sys, "argv", [script.name, *options])
            runpy.run_path(str(script), run_name="__main__")
            return capsys.readouterr().out
        done = subprocess.run(
            [sys.executable, str(script), *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
        return done.stdout

    return run


def test_the_law_of_scalability_is_found_again_in_rates_that_follow_it() -> None:
    serial, pairs = 0.05, 0.001
    rates = {n: 900 * n / (1 + serial * (n - 1) + pairs * n * (n - 1)) for n in (1, 2, 4, 8)}
    assert cores.fitted(rates) == pytest.approx((serial, pairs))
    assert cores.fitted({1: 10.0, 2: 20.0, 4: 40.0}) == pytest.approx((0, 0))


def test_a_plot_has_a_line_for_each_series_within_its_frame(tmp_path: Path) -> None:
    file = tmp_path / "plot.svg"
    panels = [
        plot.Panel("Pick-up, ms", {"p50": [1.0, 2.0, 1.5], "p99": [3.0, 6.0, 4.0]}),
        plot.Panel("Jobs/s", {"started": [0.0]}),
    ]
    plot.save(file, panels, minutes=0.5)
    drawn = ET.parse(file).findall(".//{*}polyline")
    lines = [
        [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        for line in drawn
    ]
    assert [len(line) for line in lines] == [3, 3, 1]
    assert all(0 <= x <= plot.WIDTH and 0 <= y <= plot.HEIGHT for line in lines for x, y in line)
    assert lines[1][1][0] == plot.WIDTH / 2
    assert lines[1][1][1] == pytest.approx(plot.HEIGHT * (1 - 1 / 1.2), abs=0.1)
