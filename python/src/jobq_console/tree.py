"""JSON as a collapsible tree: large values are cut, and numbers keep all digits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from markupsafe import Markup

from jobq_console.words import MOST_TEXT, plain

MOST_NODES: Final = 2000
MOST_DEPTH: Final = 24
SHORT: Final = 12  # members of what is shown unfolded below the top


class Number(str):
    """A number with its original text."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """The displayed part of a JSON text.

    Attributes:
        markup: the tree.
        is_whole: whether nothing is cut.
    """

    markup: Markup
    is_whole: bool


def tree(text: str, name: str) -> Tree:
    """Return a JSON text as a tree.

    Args:
        text: the JSON.
        name: name of the tree, by which a browser restores expanded nodes.
    """
    pen = Pen()
    try:
        value = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)
        pen.draw(value, "", escape(name), 0)
    except RecursionError:
        pen = Pen()
        pen.text(text)
    return Tree(Markup("".join(pen.parts)), pen.is_whole)  # noqa: S704 - escaped


class Pen:
    """Renders up to a size limit."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.is_whole = True
        self._room = MOST_TEXT
        self._nodes = MOST_NODES

    def draw(self, value: Any, label: str, place: str, depth: int) -> None:  # noqa: ANN401 - JSON
        """Render a value after its name or index."""
        self._nodes -= 1
        match value:
            case dict() if value:
                members = ((f"<b>{self._name(key)}</b> ", value[key]) for key in value)
                self._fold(members, len(value), f"{label}{{{len(value):,}}}", place, depth)
            case list() if value:
                items = ((f"<i>{n}</i> ", item) for n, item in enumerate(value))
                self._fold(items, len(value), f"{label}[{len(value):,}]", place, depth)
            case _:
                self.parts.append(label)
                self._leaf(value)

    def text(self, text: str) -> None:
        """Render a text, cut at the size limit."""
        room = max(self._room, 0)
        self._room -= len(text)
        self.parts.append(escape(plain(text, room)))
        if len(text) > room:
            self._cut(f"{len(text) - room:,} more characters")

    def _fold(
        self, members: Iterable[tuple[str, Any]], count: int, label: str, place: str, depth: int
    ) -> None:
        opening = " open" if depth == 0 or (depth == 1 and count <= SHORT) else ""
        self.parts.append(f'<details data-fold="{place}"{opening}><summary>{label}</summary><ul>')
        for n, (name, value) in enumerate(members):
            if self._room <= 0 or self._nodes <= 0 or depth >= MOST_DEPTH:
                self.parts.append("<li>")
                self._cut(f"{count - n:,} more")
                self.parts.append("</li>")
                break
            self.parts.append("<li>")
            self.draw(value, name, f"{place}.{n}", depth + 1)
            self.parts.append("</li>")
        self.parts.append("</ul></details>")

    def _name(self, key: str) -> str:
        shown = plain(key, 300)
        self._room -= len(shown)
        return f"<bdi>{escape(shown)}</bdi>"

    def _leaf(self, value: Any) -> None:  # noqa: ANN401 - JSON
        if isinstance(value, str) and not isinstance(value, Number):
            self.parts.append('<bdi class="j-text">"')
            self.text(value)
            self.parts.append('"</bdi>')
            return
        word = value if isinstance(value, Number) else json.dumps(value)
        self.parts.append(f'<bdi class="j-word">{escape(word[:1000])}</bdi>')
        self._room -= len(word)

    def _cut(self, what: str) -> None:
        self.is_whole = False
        self.parts.append(f'<span class="none">… {what}</span>')
