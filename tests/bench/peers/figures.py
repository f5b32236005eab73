"""What becomes of raw figures: medians, ranges, and the table that shows them."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# The table's columns: the heading, and of which measures it shows which figure, how.
COLUMNS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    ("drain, 1 worker, jobs/s", (("drain1", "rate", ",.0f"),)),
    ("drain, 2 workers, jobs/s", (("drain2", "rate", ",.0f"),)),
    (
        "CPU a job, server / worker, µs",
        (("drain1", "server_us", ",.1f"), ("drain1", "worker_us", ",.1f")),
    ),
    ("bulk enqueue, jobs/s", (("drain1", "bulk", ",.0f"),)),
    ("single enqueue, 1 connection, jobs/s", (("single1", "rate", ",.0f"),)),
    ("8 connections", (("single8", "rate", ",.0f"),)),
    (
        "pick-up idle, p50 / p99, ms",
        (("idle-latency", "p50_ms", ".1f"), ("idle-latency", "p99_ms", ".1f")),
    ),
    (
        "at a steady rate",
        (("loaded-latency", "p50_ms", ".1f"), ("loaded-latency", "p99_ms", ".1f")),
    ),
    ("server CPU a job there, µs", (("loaded-latency", "server_us", ",.0f"),)),
    ("pinned snapshot, last / first tenth", (("pinned", "ratio", ".2f"),)),
    ("idle, transactions/s", (("idle", "per_second", ".1f"),)),
    ("1,000 keys, one job of each at a time, jobs/s", (("keyed", "rate", ",.0f"),)),
    ("workflows of three steps/s", (("flows", "rate", ",.0f"),)),
    ("workflows that call another one/s", (("calls", "rate", ",.0f"),)),
)
MARKS = {"cut_short": "†", "falls_behind": "‡"}
LEGEND = (
    "Median of the rounds, with the range where there were several. "
    "† cut short by the time limit: the rate of what was done until then. "
    "‡ falls behind the rate that was asked for."
)

Raw = dict[str, Any]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the others lie."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def tenths(progress: Sequence[tuple[float, int]], jobs: int) -> tuple[float, float]:
    """Return the rates of the first and of the last tenth of a drain, in jobs a second.

    Args:
        progress: how many jobs had started in all, at each noted time.
        jobs: how many there were.
    """
    begin = progress[0]
    first = next(step for step in progress if step[1] >= 0.1 * jobs)
    ninth = next(step for step in progress if step[1] >= 0.9 * jobs)
    return _rate(begin, first), _rate(ninth, progress[-1])


def _rate(begin: tuple[float, int], end: tuple[float, int]) -> float:
    return (end[1] - begin[1]) / (end[0] - begin[0])


def collected(raw: Sequence[Raw], system: str, measure: str, figure: str) -> list[float]:
    """Return one figure of one measure of a system, of every round."""
    return [
        entry["figures"][figure]
        for entry in raw
        if (entry["system"], entry["measure"]) == (system, measure)
        and figure in entry.get("figures", {})
    ]


def cell(raw: Sequence[Raw], system: str, shown: Sequence[tuple[str, str, str]]) -> str:
    """Return what the table says: medians with their ranges, or why there are none."""
    parts = []
    marks = set()
    for measure, figure, form in shown:
        values = collected(raw, system, measure, figure)
        if not values:
            failed = any((entry["system"], entry["measure"]) == (system, measure) for entry in raw)
            return "failed" if failed else ""
        parts.append(middle_and_range(values, form))
        marks |= {
            mark
            for flag, mark in MARKS.items()
            if figure != "bulk" and any(collected(raw, system, measure, flag))
        }
    return " / ".join(parts) + "".join(sorted(marks))


def middle_and_range(values: Sequence[float], form: str) -> str:
    """Return the median, and the range in brackets where there is more than one value."""
    middle = format(statistics.median(values), form)
    if len(values) == 1:
        return middle
    return f"{middle} ({format(min(values), form)} to {format(max(values), form)})"


def failures(raw: Sequence[Raw]) -> list[str]:
    """Return a line for each measure that failed, with the reason."""
    return [
        f"failed: {entry['system']}, {entry['measure']}: {entry['failed']}"
        for entry in raw
        if "failed" in entry
    ]


def table(raw: Sequence[Raw], versions: dict[str, str], calls: dict[str, str]) -> str:
    """Return a table in Markdown, a line for each system.

    Args:
        raw: the figures.
        versions: of the systems, by their names.
        calls: what one call of a system's handler gets.
    """
    columns = [
        (title, shown)
        for title, shown in COLUMNS
        if any(collected(raw, entry["system"], shown[0][0], shown[0][1]) for entry in raw)
    ]
    lines = [
        "| | a handler's call gets | " + " | ".join(title for title, _ in columns) + " |",
        "| --- | --- |" + " --- |" * len(columns),
    ]
    for name in dict.fromkeys(entry["system"] for entry in raw):
        cells = [cell(raw, name, shown) for _, shown in columns]
        start = f"| {name} {versions.get(name, '')} | {calls.get(name, '')} | "
        lines.append(start + " | ".join(cells) + " |")
    return "\n".join(lines)
