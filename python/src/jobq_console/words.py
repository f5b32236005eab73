"""How pages write times, lengths, counts, and what others have written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec

from jobq.unseen import visible
from jobq.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

SCALE: Final = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
NOTHING: Final = "\N{EN DASH}"
MOST_TEXT: Final = 64 * 1024
MOST_COUNTED: Final = 10_000
WAITING: Final = ("queued", "scheduled", "retrying")


def version() -> str:
    """Return jobq's version."""
    return __version__


def parsed(text: str | datetime) -> datetime:
    """Return an instant."""
    return text if isinstance(text, datetime) else datetime.fromisoformat(text)


def length(milliseconds: float | None) -> str:
    """Return a length of time in the two largest units that it has."""
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
    """Return how long ago an instant was, or how far ahead it lies."""
    if text is None:
        return NOTHING
    past = datetime.now(UTC) - parsed(text)
    milliseconds = past / timedelta(milliseconds=1)
    if milliseconds < -500:
        return f"in {length(-milliseconds)}"
    return "now" if milliseconds < 1000 else f"{length(milliseconds)} ago"


def moment(text: str | datetime | None) -> str:
    """Return an instant to the second, in UTC."""
    return "" if text is None else f"{parsed(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(text: str | datetime) -> str:
    """Return an instant as its own zone's clock shows it, with the day where it is not today."""
    at = parsed(text)
    is_today = at.date() == datetime.now(at.tzinfo).date()
    return f"{at:%H:%M}" if is_today else f"{at:%a %d %b %H:%M}"


def number(value: float | None) -> str:
    """Return a number with its thousands apart."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"


def capped(value: int, most: int = MOST_COUNTED) -> str:
    """Return a count that ends: at more than `most` it says so."""
    return f"{most:,}+" if value > most else f"{value:,}"


def count(counts: Mapping[str, Any], name: str) -> str:
    """Return one of the counts of a document, and whether there may be more."""
    most = counts["ends_at"] if name in WAITING and "ends_at" in counts else MOST_COUNTED
    return f"{min(counts[name], most):,}" + ("+" if name in counts["goes_on"] else "")


def short(value: float) -> str:
    """Return a number in little room: 1500 is 1.5k."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def plain(text: object, most: int = MOST_TEXT) -> str:
    """Return what others wrote with what is unseen in it made visible, and cut."""
    return visible(str(text)[:most])


def json(value: object) -> str:
    """Return a value as it stands in JSON, a text as it is."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def sql(text: object) -> str:
    """Return a text as a literal of SQL."""
    whole = str(text)
    quoted = whole.replace("'", "''").replace("\\", "\\\\")
    shown = visible(quoted)
    return f"E'{shown}'" if "\\" in shown else f"'{shown}'"


def query(parameters: Mapping[str, object]) -> str:
    """Return parameters as an address has them, without the empty ones."""
    return urlencode({name: value for name, value in parameters.items() if value})
