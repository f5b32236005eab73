"""The templates of pages, and the words that they use."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from jobq.console import charts, words

TEMPLATES = Environment(
    loader=PackageLoader("jobq.console"),
    autoescape=True,
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
    plain=words.plain,
    moment=words.moment,
    plural=words.plural,
    sql=words.sql,
    urlencode_dict=words.query,
)
TEMPLATES.globals.update(charts=charts, version=words.version())
