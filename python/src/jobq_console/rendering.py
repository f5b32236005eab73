"""The templates of pages and their filters."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from jobq_console import charts, graph, markup, words


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
TEMPLATES.filters.update(
    ago=words.ago,
    clock=words.clock,
    span=words.length,
    number=words.number,
    short=words.short,
    capped=words.capped,
    count=words.count,
    plain=words.plain,
    moment=words.moment,
    plural=words.plural,
    sql=words.sql,
    json=words.json,
    indented=words.indented,
    urlencode_dict=words.query,
    bars=markup.bars,
    state=markup.state,
    when=markup.when,
    written=markup.written,
    listed=markup.listed,
    fitting=graph.fitting,
)
TEMPLATES.globals.update(charts=charts, most_text=words.MOST_TEXT, version=words.version())
