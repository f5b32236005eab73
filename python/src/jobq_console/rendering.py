"""The templates of pages and their filters."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from jobq.version import __version__
from jobq_console import charts, markup, words


class Pages(Environment):
    """Templates that read documents of the database."""

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401 - as Jinja has it
        """Return a member of a document without checking for an attribute of that name first."""
        if type(obj) is dict and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


TEMPLATES = Pages(
    loader=PackageLoader("jobq_console"),
    autoescape=True,
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
FILTERS = (
    words.ago, words.capped, words.clock, words.count, words.indented, words.json, words.moment,
    words.number, words.plain, words.plural, words.short, words.sql, markup.bars, markup.listed,
    markup.state, markup.when, markup.written,
)  # fmt: skip
TEMPLATES.filters.update({each.__name__: each for each in FILTERS})
TEMPLATES.filters.update(span=words.length, urlencode_dict=words.query)
TEMPLATES.globals.update(charts=charts, most_text=words.MOST_TEXT, version=__version__)
