"""Print phrases of the documents that readers stumble over, and what to write instead.

Usage: python docs/prose.py [FILE...]

Without files it reads all documents. Code is left out. Exits with 1 if it finds anything.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What to look for, and what to write instead.
HOUSE = {
    r"\b(?:is|are|be|been) had\b": "return, take, find",
    r"\bheed(?:s|ed)?\b": "follow, respect, use",
    r"\b(?:is|are|be|been|was) told\b": "receive, report, return",
    r"\btells? (?:of|whether|which|how|what|it|him|them)\b": "report, show, return",
    r"\bsays? so\b": "report, show",
    r"\bknows? (?:nothing|of|by)\b": "cache, have, support",
    r"\bstands? (?!for\b)": "be, support",
    r"\b(?:go|goes|went|going) on\b": "continue",
    r"\b(?:anew|afresh)\b": "again",
    r"\b(?:likewise|whence|thereby)\b": "start a new sentence",
    r"\b(?:alone|as well)[.;:]": "put only or also before the verb",
    r"\bbut for\b": "except",
    r"\bat no time\b|\bin vain\b": "never; without success",
    r"\b(?:not|nothing) besides\b": "nothing else",
    r"(?:^|[.;] |\*\* |- )(?:Who|Whoever) [a-z]": "name the actor: a worker that ...",
    r"(?:^|[.;] |\*\* |- )What (?:is|are|was|has|does|runs|waits|comes|goes) [^?]*$": (
        "a clause as subject: name the thing"
    ),
}
PAGES = (
    "*.md", "docs/**/*.md", "docs/alerts.yml", "docs/glossary.toml", "sql/README.md",
    "python/README.md", "clients/README.md", "clients/*/README.md",
)  # fmt: skip
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)


def found(text: str) -> list[tuple[int, str, str]]:
    """Return the line, the words and the advice for each phrase in a document."""
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    return [
        (number, match[0].strip(), advice)
        for number, line in enumerate(prose.splitlines(), 1)
        if not line.startswith("#")
        for phrase, advice in HOUSE.items()
        for match in re.finditer(phrase, line)
    ]


def main(names: list[str]) -> int:
    """Print what is found."""
    pages = [Path(name) for name in names] or [
        path
        for pattern in PAGES
        for path in sorted(ROOT.glob(pattern))
        if path.name != "reference.md"
    ]
    lines = [
        f"{path}:{number}: {words!r}: {advice}"
        for path in pages
        for number, words, advice in found(path.read_text())
    ]
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
