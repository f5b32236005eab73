"""Escapes, as URLs, JSON, programs and HTML write a text, resolved one within another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.entities import html5
from typing import Final

# The maximum depth of nested escapes.
LEVELS: Final = 2
# The most characters for one byte, as in &amp;#x00041; or a long name.
LONGEST: Final = 20
LAST: Final = 0x10FFFF
LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

OF_URLS: Final = re.compile(r"(?i) % (?P<byte>[0-9a-f]{2}) | %u (?P<unit>[0-9a-f]{4})", re.VERBOSE)
OF_PROGRAMS: Final = re.compile(
    r"""
    \\U (?P<long>[0-9A-Fa-f]{8})
    | \\u (?P<high>[Dd][89ABab][0-9A-Fa-f]{2}) \\u (?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})
    | \\u (?P<unit>[0-9A-Fa-f]{4})
    | \\u \{ (?P<braced>[0-9A-Fa-f]{1,6}) \}
    | \\x (?P<byte>[0-9A-Fa-f]{2})
    | \\  (?P<octal>[0-3][0-7]{2})
    | \\  (?P<letter>[bfnrt]|[!-/:-@[-`{-~\ ])
    """,
    re.VERBOSE,
)
OF_HTML: Final = re.compile(
    r"(?i) &\# (?P<decimal>[0-9]{1,7}) ;? | &\#x (?P<hex>[0-9a-f]{1,6}) ;?"
    r"| & (?P<name>[a-z][a-z0-9]{1,30};)",
    re.VERBOSE,
)
# Of each sort, whether an escape of one byte stands for a character of Latin-1.
SORTS: Final = (
    (OF_URLS, False),
    (OF_URLS, True),
    (OF_PROGRAMS, False),
    (OF_PROGRAMS, True),
    (OF_HTML, False),
)


def as_bytes(text: str) -> str:
    """Return a text's bytes in UTF-8, each as a character, since escapes may stand for bytes."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def as_characters(text: str) -> str:
    """Return what `as_bytes` was given; half a character, as a cut leaves it, is replaced."""
    return text.encode("latin-1").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Reading:
    """A text of `as_bytes` after its escapes of one sort, or of two, were resolved.

    Attributes:
        text: as it reads.
        places: where each character of it, and its end, stands in what was read.
    """

    text: str
    places: Sequence[int]

    def resolved(self, escapes: re.Pattern[str], *, is_latin: bool) -> Reading:
        """Return the reading with these escapes resolved."""
        parts: list[str] = []
        places: list[int] = []
        end = 0
        for escape in escapes.finditer(self.text):
            start, meaning = escape.start(), meaning_of(escape, is_latin=is_latin)
            parts += (self.text[end:start], meaning)
            places += self.places[end:start]
            places += [self.places[start]] * len(meaning)
            end = escape.end()
        if not parts:
            return self
        return Reading("".join(parts) + self.text[end:], places + list(self.places[end:]))

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the text stands in what was read, its last escape as a whole."""
        while end < len(self.text) and self.places[end] == self.places[end - 1]:
            end += 1
        return self.places[start], self.places[end]


def readings(text: str) -> list[Reading]:
    """Return the ways to read a text of `as_bytes`: as it is, and with escapes resolved."""
    found = {text: Reading(text, range(len(text) + 1))}
    newest = list(found.values())
    for _ in range(LEVELS):
        resolved = [r.resolved(sort, is_latin=latin) for r in newest for sort, latin in SORTS]
        newest = [reading for reading in resolved if reading.text not in found]
        found |= {reading.text: reading for reading in newest}
    return list(found.values())


def meaning_of(escape: re.Match[str], *, is_latin: bool) -> str:
    """Return what an escape stands for, in bytes; itself, if for nothing."""
    kind = escape.lastgroup or ""
    digits = escape[kind]
    match kind:
        case "letter":
            return LETTERS.get(digits, digits)
        case "name":
            known = html5.get(digits) or html5.get(digits.lower())
            return escape[0] if known is None else as_bytes(known)
        case "low":
            pair = bytes.fromhex(escape["high"] + digits)
            return as_bytes(pair.decode("utf-16-be"))
    code = int(digits, {"decimal": 10, "octal": 8}.get(kind, 16))
    if kind in {"byte", "octal"} and not is_latin:
        return chr(code)
    return as_bytes(chr(code)) if code <= LAST else escape[0]
