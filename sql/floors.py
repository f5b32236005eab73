#!/usr/bin/env python3
"""Check that each topic of sql/ refers only to topics on its own floor or below.

    python3 sql/floors.py     print each name that reaches upward; exit with 1 if there is any

render.FLOORS says which topic is on which floor; sql/README.md is the plan for readers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from render import FLOOR_OF, without_comments

SQL = Path(__file__).resolve().parent
NAME = re.compile(r"\bjobq(?:_\w+)?\.\w+")
CREATES = re.compile(
    r"^create\s+(?:or\s+replace\s+)?(?:unlogged\s+)?(?:function|procedure|view|table|type|sequence)"
    r"\s+(?P<name>jobq(?:_\w+)?\.\w+)",
    re.MULTILINE | re.IGNORECASE,
)
# The files that fill the core's hooks in a full installation.
WIRING = "wiring"


def read_sources() -> dict[Path, tuple[str, str]]:
    """Return the topic and the text of each source, and of each topic's tables."""
    sources = {}
    for topic in FLOOR_OF:
        tables = SQL.parent / "deploy" / f"{topic}_tables.sql"
        for path in [
            *sorted((SQL / topic).rglob("*.sql")),
            *([tables] if tables.is_file() else []),
        ]:
            sources[path] = (topic, without_comments(path.read_text()))
    return sources


def find_upward() -> list[str]:
    """Return a line for each name that a source uses of a topic above its own."""
    sources = read_sources()
    # A hook is of the topic that calls it; the wiring replaces it.
    maker = {
        match["name"]: topic
        for topic, text in reversed(sources.values())
        for match in CREATES.finditer(text)
    }
    return [
        f"{path.relative_to(SQL.parent)}: {name} is of {maker[name]}"
        for path, (topic, text) in sources.items()
        if WIRING not in path.stem and path.stem != "error_tables"  # its hints name functions
        for name in sorted(set(NAME.findall(text)))
        if name in maker and FLOOR_OF[maker[name]] > FLOOR_OF[topic]
    ]


def main() -> int:
    """Print what reaches upward; return the exit status."""
    upward = find_upward()
    for line in upward:
        print(f"{line}, on a higher floor")
    return 1 if upward else 0


if __name__ == "__main__":
    sys.exit(main())
