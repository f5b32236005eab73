"""Formats of times, durations, counts and user texts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from jobq_operations.visible import visible

SCALE: Final = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
NOTHING: Final = "\N{EN DASH}"
MOST_TEXT: Final = 64 * 1024
MOST_COUNTED: Final = 10_000


def parsed(text: str | datetime) -> datetime:
    """Parse a time."""
    return text if isinstance(text, datetime) else datetime.fromisoformat(text)


def length(milliseconds: float | None) -> str:
    """Return a duration in its two largest units."""
    if milliseconds is None:
        return NOTHING
    seconds = abs(milliseconds) / 1000
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    for n, (unit, size) in enumerate(SCALE):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            if n + 1 < len(SCALE) and whole < 10:
                smaller, less = SCALE[n + 1]
                part = int(rest // less)
                return f"{int(whole)} {unit} {part} {smaller}" if part else f"{int(whole)} {unit}"
            return f"{int(whole)} {unit}"
    return "0 s"


def ago(text: str | datetime | None) -> str:
    """Return how long ago a time was, or how far in the future it is."""
    if text is None:
        return NOTHING
    past = datetime.now(UTC) - parsed(text)
    milliseconds = past / timedelta(milliseconds=1)
    if milliseconds < -500:
        return f"in {length(-milliseconds)}"
    return "now" if milliseconds < 1000 else f"{length(milliseconds)} ago"


def moment(text: str | datetime | None) -> str:
    """Return a time to the second, in UTC."""
    return "" if text is None else f"{parsed(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(text: str | datetime) -> str:
    """Return the local time in the time's own zone, with the date unless it is today."""
    at = parsed(text)
    is_today = at.date() == datetime.now(at.tzinfo).date()
    return f"{at:%H:%M}" if is_today else f"{at:%a %d %b %H:%M}"


def number(value: float | None) -> str:
    """Return a number with thousands separators."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"


def capped(value: int, most: int = MOST_COUNTED) -> str:
    """Return a bounded count, with a + above `most`."""
    return f"{most:,}+" if value > most else f"{value:,}"


def count(counts: Mapping[str, Any], name: str) -> str:
    """Return one of the counts of a document, and whether there may be more."""
    return f"{min(counts[name], MOST_COUNTED):,}" + ("+" if name in counts["goes_on"] else "")


def short(value: float) -> str:
    """Return a short form of a number: 1500 is 1.5k."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def plain(text: object, most: int = MOST_TEXT) -> str:
    """Return user text with invisible characters made visible, and cut."""
    return visible(str(text)[:most])


def json(value: object) -> str:
    """Return a value as JSON, a text unchanged."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def indented(value: object) -> str:
    """Return a value as JSON on several lines."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def sql(text: object) -> str:
    """Return a text as an SQL literal."""
    whole = str(text)
    quoted = whole.replace("'", "''").replace("\\", "\\\\")
    shown = visible(quoted)
    return f"E'{shown}'" if "\\" in shown else f"'{shown}'"


def query(parameters: Mapping[str, object]) -> str:
    """Return parameters as a query string, without empty ones."""
    return urlencode({name: value for name, value in parameters.items() if value})
