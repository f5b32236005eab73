"""Escapes, as URLs, JSON, HTML, shells and the literals of many languages write a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html.entities import html5
from typing import Final, TypeAlias

__all__ = ["LEVELS", "LONGEST", "MARKS", "Readings", "as_bytes", "as_characters", "unescaped"]

# So many escapes may stand within each other.
LEVELS: Final = 3

# The most characters for one byte as &amp;amp;#x00041; is, thrice within HTML.
LONGEST: Final = 20
ESCAPES: Final = r"""
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
ESCAPE: Final = re.compile(ESCAPES, re.IGNORECASE | re.VERBOSE)
Ways: TypeAlias = Sequence[tuple[int, str]]
# What an escape begins with, and what it may be the beginning of; of names, see NAMES.
MARKS: Final = "%\\&"
BEGUN: Final = re.compile(
    r"""(?xi)
    % ( [0-9a-f]? | u [0-9a-f]{0,3} )
    | (?-i:\\U) [0-9a-f]{0,7}
    | (?-i:\\u) ( [0-9a-f]{0,3} | \{ [0-9a-f]{0,6} )
    | (?-i:\\u) d[89ab][0-9a-f]{2} ( \\ ( u ( d ( [c-f] [0-9a-f]? )? )? )? )?
    | \\ ( x [0-9a-f]? | [0-3] [0-7]? )?
    | & ( \# ( [0-9]{0,7} | x [0-9a-f]{0,6} ) )?
    """
)
# The escapes of URLs, of JSON and programs, and of HTML alone.
OF_ONE: Final = [
    re.compile(rf"(?={re.escape(mark)}) (?: {ESCAPES} )", re.IGNORECASE | re.VERBOSE)
    for mark in MARKS
]
NAMES: Final = frozenset(f"&{name[:end]}" for name in html5 for end in range(1, len(name)))
# Of the ways to spell one escape so many are followed.
MOST_SPELLINGS: Final = 100
# Parts of a text of so many characters are read once.
WINDOWS: Final = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24)
LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
LAST: Final = 0x10FFFF


def as_bytes(text: str) -> str:
    """Return a text's bytes in UTF-8, each as a character, since escapes may stand for bytes."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def as_characters(text: str) -> str:
    """Return what `as_bytes` was given; half a character, as a cut leaves it, is replaced."""
    return text.encode("latin-1").decode("utf-8", "replace")


class Readings:
    """The ways to read a text of `as_bytes`: each place of it as it is, or as an escape.

    What one program wrote as it is may begin an escape of another, as a backslash before a
    percent sign does. So no way is preferred.

    Attributes:
        steps: how many characters of escapes were looked at.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: list[dict[int, tuple[Ways, int]]] = [{} for _ in range(LEVELS)]
        self._windows: dict[str, Ways] = {}
        self.steps = 0

    def at(self, place: int) -> Ways:
        """Return what may be read at a place: how much of the text, and its meaning in bytes."""
        text = self._text
        for size in WINDOWS:
            known = self._windows.get(text[place : place + size])
            if known is not None:
                return known
        ways, seen = self._at(place, LEVELS)
        for size in WINDOWS:
            if seen <= size <= len(text) - place:
                self._windows[text[place : place + size]] = ways
                break
        return ways

    def _at(self, place: int, level: int) -> tuple[Ways, int]:
        """Return the ways within so many levels, and how much of the text they depend on."""
        mark = self._text[place]
        if not level or mark not in MARKS:
            return [(1, mark)], 1
        known = self._known[level - 1]
        if place not in known:
            known[place] = self._escapes(place, level - 1)
        return known[place]

    def _escapes(self, place: int, level: int) -> tuple[Ways, int]:
        """Return the ways with one level more: spell escapes in any way to read the text."""
        within, seen = self._at(place, level)
        ways = dict.fromkeys(within)
        begun = [(mark, size) for size, mark in within if mark in MARKS]
        for spelled, size in begun:
            seen = max(seen, size + 1)
            if place + size == len(self._text):
                continue
            following, further = self._at(place + size, level)
            seen = max(seen, size + further)
            for more, character in following:
                self.steps += 1
                meanings, is_begun = meant(spelled + character)
                ways |= dict.fromkeys((size + more, meaning) for meaning in meanings)
                if is_begun and len(begun) < MOST_SPELLINGS:
                    begun.append((spelled + character, size + more))
        return list(ways), seen


@lru_cache(10_000)
def meant(spelled: str) -> tuple[tuple[str, ...], bool]:
    """Return what an escape may stand for, and whether it may go on."""
    escape = ESCAPE.fullmatch(spelled)
    meanings = [] if escape is None else [resolved(escape), of_one_byte(escape)]
    is_begun = BEGUN.fullmatch(spelled) or spelled in NAMES or spelled.lower() in NAMES
    return tuple(meaning for meaning in meanings if meaning), bool(is_begun)


def unescaped(text: str) -> set[str]:
    """Return a text of `as_bytes` with its escapes resolved, once: all, or those of one sort."""
    return {escape.sub(plainly, text) for escape in (ESCAPE, *OF_ONE)}


def plainly(escape: re.Match[str]) -> str:
    """Return what an escape stands for, or itself."""
    return resolved(escape) or escape[0]


def of_one_byte(escape: re.Match[str]) -> str | None:
    """Return the character that an escape of one byte stands for in programs of Latin-1."""
    if escape.lastgroup in {"percent", "byte", "octal"}:
        return as_bytes(resolved(escape) or "")
    return None


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
