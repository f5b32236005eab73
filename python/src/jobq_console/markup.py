"""The smallest parts of pages, created in Python because a page has hundreds of them."""

from __future__ import annotations

import re
from datetime import datetime
from html import escape
from typing import Final

from markupsafe import Markup

from jobq_console.charts import Stack
from jobq_console.words import NOTHING, ago, moment, parsed, plain

NONE: Final = Markup(f'<span class="none">{NOTHING}</span>')  # noqa: S704 - a constant


# Spaces that pages do not show, although the name differs.
ENDS: Final = re.compile(r"^ +| +$")


def written(text: object, most: int = 200) -> Markup:
    """Return user text: escaped, with an isolated direction, and cut with an ellipsis."""
    whole = NOTHING if text is None else str(text)
    cut = "…" if len(whole) > most else ""
    shown = ENDS.sub(lambda blanks: r"\u0020" * len(blanks.group()), plain(whole, most))
    return Markup(f"<bdi>{escape(shown)}{cut}</bdi>")  # noqa: S704 - escaped


def listed(names: list[str], most: int = 12, letters: int = 60) -> Markup:
    """Return names separated by commas, each cut, and the number of the others."""
    first = Markup(", ").join(written(name, letters) for name in names[:most])
    more = len(names) - most
    return first + (f" and {more:,} more" if more > 0 else "") if names else NONE


def when(given: str | datetime | None) -> Markup:
    """Return how long ago a time was, with the time as a tooltip."""
    if given is None:
        return NONE
    at = parsed(given)
    machine = escape(given if isinstance(given, str) else at.isoformat())
    return Markup(f'<time datetime="{machine}" title="{moment(at)}">{ago(at)}</time>')  # noqa: S704 - escaped


def state(name: str) -> Markup:
    """Return a state with its color."""
    word = escape(name)
    return Markup(f'<span class="state s-{word}">{word}</span>')  # noqa: S704 - escaped


def bars(chart: Stack, colors: list[str]) -> Markup:
    """Return the bars of a chart, each with its text as a tooltip."""
    return Markup(  # noqa: S704 - escaped
        "".join(
            f'<rect class="{colors[b.color]}" x="{b.x}" y="{b.y}" width="{b.width}" '
            f'height="{b.height}"><title>{escape(plain(b.words, 200))}</title></rect>'
            for b in chart.bars
        )
    )
