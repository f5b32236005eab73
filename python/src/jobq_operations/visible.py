"""Makes invisible characters visible, for terminals and pages."""

from __future__ import annotations

import re
from typing import Final

# Characters that are invisible, look like a space, change the text direction or control a
# terminal.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Return a text with such characters escaped as in JSON; line breaks stay."""
    return _UNSEEN.sub(_escaped, text)


def in_line(text: str) -> str:
    """Return a text as `visible` does, in one line."""
    return visible(text).replace("\n", "\\n")


def _escaped(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
