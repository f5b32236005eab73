"""The geometry of charts; templates draw them as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from jobq_console.words import length, parsed

WIDTH: Final = 1000
LEAST: Final = 0.012  # of the width, so that what was short is still seen
MOST_PARTS: Final = 60
SORTS: Final = {"backed": "backed off", "running": "runs", "success": "succeeded"}


@dataclass(frozen=True, slots=True)
class Part:
    """A segment of a timeline, with its position and width of 1000.

    Its sort is waited, backed, or the state that an attempt left the job in.
    """

    sort: str
    x: float
    width: float
    length: timedelta
    words: str


def time_line(job: dict[str, Any], attempts: Sequence[dict[str, Any]]) -> list[Part]:
    """Return the segments of a job's timeline: waited, ran, backed off."""
    now = datetime.now(UTC)
    stretches: list[tuple[str, datetime, datetime, str]] = []
    at = parsed(job["created_at"])
    for attempt in attempts[-MOST_PARTS:]:
        if attempt["started_at"] is None:
            continue
        began = parsed(attempt["started_at"])
        ended = parsed(attempt["completed_at"]) if attempt["completed_at"] else now
        sort = "backed" if stretches else "waited"
        word = "backed off" if stretches else "waited"
        stretches.append((sort, at, began, word))
        words = f"attempt {attempt['attempt_number']} {attempt['status'].lower()}, ran"
        stretches.append((attempt["status"].lower(), began, ended, words))
        at = ended
    if job["finished_at"] is None and job["state"] != "running":
        stretches.append(("backed" if stretches else "waited", at, now, "waits, so far"))
    elif job["finished_at"] is not None and not stretches:
        stretches.append(("waited", at, parsed(job["finished_at"]), "waited"))
    return laid_out([s for s in stretches if s[2] > s[1]])


def laid_out(stretches: Sequence[tuple[str, datetime, datetime, str]]) -> list[Part]:
    """Return segments in a row, each as wide as its duration, but always visible."""
    lengths = [(end - begin).total_seconds() for _, begin, end, _ in stretches]
    least = sum(lengths) * LEAST
    wide = [max(n, least) for n in lengths]
    scale = WIDTH / sum(wide) if wide else 0
    parts, x = [], 0.0
    for (sort, begin, end, words), width in zip(stretches, wide, strict=True):
        told = f"{words} {length((end - begin) / timedelta(milliseconds=1))}"
        wide_as = round(max(width * scale - 1.5, 1), 1)
        parts.append(Part(sort, round(x, 1), wide_as, end - begin, told))
        x += width * scale
    return parts


def legend(parts: Sequence[Part]) -> list[tuple[str, str, str]]:
    """Return each sort in a timeline, with its name and total duration."""
    sums: dict[str, timedelta] = {}
    for part in parts:
        sums[part.sort] = sums.get(part.sort, timedelta()) + part.length
    return [
        (sort, SORTS.get(sort, sort), length(whole / timedelta(milliseconds=1)))
        for sort, whole in sums.items()
    ]


HEIGHT: Final = 150
MOST_NAMES: Final = 6
MOST_BARS: Final = 180  # thinner ones could not be told apart
LONG: Final = 1_800_000  # milliseconds of a bucket, from which on a time needs its day
OTHER: Final = "(other)"
OUTCOMES: Final = ("succeeded", "failed", "dead", "cancelled")  # as counts has them


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a stacked bar, in a chart of 1000 by 150; its color is a number."""

    color: int
    x: float
    y: float
    width: float
    height: float
    words: str


@dataclass(frozen=True, slots=True)
class Stack:
    """A chart of stacked bars.

    Attributes:
        names: the names of the colors, with their sums.
        bars: the bars.
        top: the value of the highest grid line.
        ticks: positions and texts of the times.
    """

    names: list[tuple[str, int]]
    bars: list[Bar]
    top: float
    ticks: list[tuple[float, str]]


def stacked(history: dict[str, Any], column: int) -> Stack:
    """Return the stacked bars of a history, with a color for each of the largest names.

    The column of its counts is 2 for enqueued jobs, 3 for succeeded ones.
    """
    buckets = count(history)
    found: dict[str, list[int]] = {}
    for row in history["counts"]:
        if (values := found.get(row[1])) is None:
            values = found[row[1]] = [0] * buckets
        values[row[0]] += row[column]
    sums = {name: sum(values) for name, values in found.items()}
    ranked = sorted((n for n in sums if n != OTHER and sums[n]), key=lambda n: (-sums[n], n))
    series = {name: found.pop(name) for name in ranked[:MOST_NAMES]}
    rest = [sum(values) for values in zip(*found.values(), strict=True)]
    return _stack(history, series | ({OTHER: rest} if sum(rest) else {}))


def outcomes(history: dict[str, Any]) -> Stack:
    """Return stacked bars whose names are outcomes, each with a color of its own."""
    series = {name: [0] * count(history) for name in OUTCOMES}
    for n, _, _, *values in history["counts"]:
        for column, value in zip(series.values(), values, strict=True):
            column[n] += value
    return _stack(history, series)


def _stack(history: dict[str, Any], series: dict[str, list[int]]) -> Stack:
    highs = [sum(values) for values in zip(*series.values(), strict=True)]
    top = ceiling(max(highs, default=0))
    step, scale = WIDTH / max(count(history), 1), HEIGHT / top
    width = round(max(step - 1.2, 0.8), 1)
    form = "%d %b %H:%M" if history["width_ms"] > LONG else "%H:%M"
    since, wide = parsed(history["since"]), timedelta(milliseconds=history["width_ms"])
    begins = [f"{since + n * wide:{form}}" for n in range(count(history))] if series else []
    stands = [float(HEIGHT)] * len(begins)
    bars = []
    for color, (name, values) in enumerate(series.items()):
        for n, value in enumerate(values):
            if not value:
                continue
            height = value * scale
            stands[n] -= height
            words = f"{begins[n]}, {name}: {value:,}"
            x, y = round(n * step, 1), round(stands[n], 1)
            bars.append(Bar(color, x, y, width, round(max(height, 0.6), 1), words))
    names = [(name, sum(values)) for name, values in series.items()]
    return Stack(names, bars, top, ticks(history))


@dataclass(frozen=True, slots=True)
class Lines:
    """A chart of lines on a logarithmic scale.

    Attributes:
        lines: path, path of single points, and color of each line.
        grid: positions and values of the grid lines.
        ticks: positions and texts of the times.
    """

    lines: list[tuple[str, str, int]]
    grid: list[tuple[float, str]]
    ticks: list[tuple[float, str]]


def latency(history: dict[str, Any]) -> Lines:
    """Return the lines of the median and the 95th percentile."""
    rows = history["latency"]
    highest = max((row[2] for row in rows), default=1000)
    decades = max(3, len(str(int(highest))))
    width, scale = WIDTH / count(history), HEIGHT / decades

    def y(value: float) -> float:
        return round(HEIGHT - math.log10(max(value, 1)) * scale, 1)

    buckets = {row[0] for row in rows}
    lines = []
    for column, color in ((1, 0), (2, 2)):
        path, dots = [], []
        for row in rows:
            point = f"{round((row[0] + 0.5) * width, 1)} {y(row[column])}"
            path.append(f"{'L' if row[0] - 1 in buckets else 'M'}{point}")
            if not buckets & {row[0] - 1, row[0] + 1}:
                dots.append(f"M{point}h0.1")
        lines.append(("".join(path), "".join(dots), color))
    grid = [(HEIGHT - n * scale, length(10**n)) for n in range(1, decades + 1)]
    return Lines(lines, grid, ticks(history))


def count(history: dict[str, Any]) -> int:
    """Return how many buckets a history has."""
    whole = parsed(history["until"]) - parsed(history["since"])
    return round(whole / timedelta(milliseconds=history["width_ms"]))


def ticks(history: dict[str, Any]) -> list[tuple[float, str]]:
    """Return positions and texts of the times below a chart."""
    since, until = parsed(history["since"]), parsed(history["until"])
    form = "%d %b" if history["width_ms"] > LONG else "%H:%M"
    sixth = (until - since) / 6
    return [(WIDTH * part / 6, f"{since + part * sixth:{form}}") for part in range(1, 6)]


def ceiling(value: float) -> float:
    """Round up to a round number."""
    size = 10 ** math.floor(math.log10(value)) if value >= 1 else 1
    return next(n * size for n in (1, 2, 3, 4, 5, 6, 8, 10) if n * size >= value)


@dataclass(frozen=True, slots=True)
class Trend:
    """Recently finished jobs of a name.

    Attributes:
        bars: one bar for each of the last thirty minutes, at most 24 high.
        rate: jobs per minute over the last five.
    """

    bars: list[tuple[int, float]]
    rate: float


def trends(history: dict[str, Any], buckets: int = 30) -> dict[str, Trend]:
    """Return the trend of each name with recently finished jobs."""
    first = count(history) - buckets
    ended: dict[str, list[int]] = {}
    for n, name, _, succeeded, _, dead, cancelled in history["counts"]:
        if n >= first and (done := succeeded + dead + cancelled):
            ended.setdefault(name, [0] * buckets)[n - first] += done
    found = {}
    for name, values in ended.items():
        bars = [(n, round(v / max(values) * 22 + 1, 1)) for n, v in enumerate(values) if v]
        found[name] = Trend(bars, sum(values[-5:]) / 5)
    return found
