"""Escapes, as URLs, JSON, HTML, shells and the literals of many languages write a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from html.entities import html5
from typing import Final

__all__ = ["LONGEST", "Unescaped", "as_bytes", "as_characters"]

# The most characters for one byte as &amp;amp;#x00041; is, thrice within HTML.
LONGEST: Final = 20
ESCAPE: Final = re.compile(
    r"""(?xi)
    %   (?P<percent>[0-9a-f]{2})
    | (?-i:\\U) (?P<long>[0-9a-f]{8})
    | (?-i:\\u) (?P<high>d[89ab][0-9a-f]{2}) \\u (?P<low>d[c-f][0-9a-f]{2})
    | (?-i:\\u) (?P<short>[0-9a-f]{4})
    | %u (?P<percent_unit>[0-9a-f]{4})
    | \\u\{ (?P<braced>[0-9a-f]{1,6}) \}
    | \\x (?P<byte>[0-9a-f]{2})
    | \\ (?P<octal>[0-3][0-7]{2})
    | \\  (?P<letter>[bfnrt]|[!-/:-@[-`{-~\ ])
    | &\# (?P<decimal>[0-9]{1,7}) ;?
    | &\#x (?P<hex>[0-9a-f]{1,6}) ;?
    | &   (?P<name>[a-z][a-z0-9]{1,30};)
    """
)
LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
LAST: Final = 0x10FFFF


def as_bytes(text: str) -> str:
    """Return a text's bytes in UTF-8, each as a character, since escapes may stand for bytes."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def as_characters(text: str) -> str:
    """Return what `as_bytes` was given; half a character, as a cut leaves it, is replaced."""
    return text.encode("latin-1").decode("utf-8", "replace")


class Unescaped:
    """A text of `as_bytes` with its escapes resolved, once, and where each part comes from.

    Attributes:
        text: the result.
        is_same: whether there was no escape.
    """

    def __init__(self, source: str) -> None:
        parts: list[str] = []
        # Where escapes begin in the result, and in the source; where they end in both.
        self._begins, self._from = [0], [0]
        self._ends, self._to = [0], [0]
        place = start = 0
        for escape in ESCAPE.finditer(source):
            meaning = resolved(escape)
            if meaning is None:
                continue
            parts += (source[start : escape.start()], meaning)
            place += escape.start() - start
            start = escape.end()
            self._begins.append(place)
            self._from.append(escape.start())
            place += len(meaning)
            self._ends.append(place)
            self._to.append(start)
        parts.append(source[start:])
        self.text = "".join(parts)
        self.is_same = not start

    def source(self, begin: int, end: int) -> tuple[int, int]:
        """Return where a part of the result stands in the source, with its escapes whole."""
        first = bisect_right(self._begins, begin) - 1
        last = bisect_right(self._begins, end - 1) - 1
        return (
            self._from[first]
            if begin < self._ends[first]
            else self._to[first] + begin - self._ends[first],
            self._to[last] if end <= self._ends[last] else self._to[last] + end - self._ends[last],
        )


def resolved(escape: re.Match[str]) -> str | None:
    """Return what an escape stands for, in bytes; None if for nothing."""
    kind, digits = escape.lastgroup or "", escape[escape.lastgroup or 0]
    match kind:
        case "percent" | "byte":
            return chr(int(digits, 16))
        case "letter":
            return LETTERS.get(digits.lower(), digits)
        case "name":
            known = html5.get(digits) or html5.get(digits.lower())
            return None if known is None else as_bytes(known)
        case "octal":
            return chr(int(digits, 8))
        case "low":
            pair = bytes.fromhex(escape["high"] + digits)
            return as_bytes(pair.decode("utf-16-be"))
    code = int(digits, 10 if kind == "decimal" else 16)
    return as_bytes(chr(code)) if code <= LAST else None
