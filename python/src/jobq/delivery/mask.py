"""Masks: what may be stored and shown of a text that may hold secrets.

A target may echo a secret in an escape of its own choice, or in one within another, or in
several. So a text is read in every way that its escapes allow, up to three within each other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from jobq.delivery.escapes import (
    LEVELS,
    LONGEST,
    MARKS,
    Readings,
    as_bytes,
    as_characters,
    unescaped,
)
from jobq.outcomes import Permanent, Retry
from jobq.redaction import error_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobq.models import Json

__all__ = ["Mask"]

MASK: Final = "***"
SIGNING: Final = "whsec_"
MOST_PARTS: Final = 100
# A text whose escapes can be read in more ways is hidden as a whole.
MOST_STEPS: Final = 100_000
# From how many characters on a part is hidden: of a log-in, of others, of a path's.
SHORT, LONG, TOKEN = 4, 8, 16


class Mask:
    """Hides secrets, as they are and however URLs, JSON, HTML and programs write them.

    Args:
        secrets: what nobody may see.

    Attributes:
        longest: how many characters a secret may take, escaped, to be found across an end.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = Forms({form for secret in secrets for form in forms_of(secret)})
        self.longest = LONGEST * self._forms.longest

    def text(self, text: str, most: int | None = None) -> str:
        """Return a text without secrets, or the masked beginning of one.

        Args:
            text: the text; of a beginning, `longest` more characters than that.
            most: so many characters of the text; a secret across their end is one mask.
        """
        if not self.longest:
            return text[:most]
        whole = as_bytes(text)
        end = len(whole) if most is None else len(as_bytes(text[:most]))
        parts: list[str] = []
        start = 0
        for first, last in merged(self._forms.places(whole)):
            if first >= end:
                break
            parts += (whole[start:first], MASK)
            start = last
        parts.append(whole[start:end])
        return as_characters("".join(parts))

    def json(self, value: Json) -> Json:
        """Return JSON without secrets."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {name: self.json(item) for name, item in value.items()}
            case list():
                return [self.json(item) for item in value]
            case _:
                return value

    def failure(self, error: Exception) -> Retry | Permanent:
        """Return what may be told of a failure, an expected one or any other."""
        match error:
            case Retry():
                message, details = self.text(error.message), self.json(error.details)
                return Retry(
                    message,
                    in_=error.in_,
                    code=error.code,
                    details=details,
                    holds_key=error.holds_key,
                )
            case Permanent():
                message, details = self.text(error.message), self.json(error.details)
                return Permanent(error.code, message, details=details)
            case _:
                return Retry(self.text(error_text(_Named(error, self))), code="ERROR")


class _Named:
    """An unexpected error's name and words, masked before anybody cuts them."""

    def __init__(self, error: Exception, mask: Mask) -> None:
        self._error = error
        self._mask = mask

    def __str__(self) -> str:
        return f"{type(self._error).__name__}: {self._mask.text(str(self._error))}"


def parts_of(secret: str) -> Iterator[str]:
    """Yield the parts of a secret that a target may tell without the rest.

    Of several with blanks between them each one, without the mark of signing secrets too; of
    what may be an address the log-in, and what the target is asked for.
    """
    words = secret.split()
    if len(words) > MOST_PARTS:
        return
    for word in words:
        yield from of_length(LONG, (word, word.removeprefix(SIGNING)))
        login, at, _ = re.split(r"[/?#]", word.partition("://")[2], maxsplit=1)[0].rpartition("@")
        if at:
            yield from of_length(SHORT, (login, login.partition(":")[2]))
        _, slash, target = word.partition("://")[2 if "://" in word else 0].partition("/")
        path, _, query = target.partition("#")[0].partition("?")
        yield from of_length(
            LONG, (slash + target, slash + target.partition("#")[0], slash + path, query)
        )
        yield from of_length(LONG, (field.partition("=")[2] for field in query.split("&")))
        yield from of_length(TOKEN, path.split("/"))


def of_length(least: int, texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts of so many characters."""
    return (text for text in texts if len(text) >= least)


def forms_of(secret: str) -> set[str]:
    """Return a secret and its parts as they are and as less escapes write them, in bytes."""
    forms = {as_bytes(text) for text in (secret, secret.strip(), *parts_of(secret))}
    for _ in range(LEVELS):
        forms |= {less for form in forms for less in unescaped(form)}
    return forms - {""}


def merged(places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield places in order, those that meet as one."""
    last = None
    for place in sorted(places):
        if last is None or place[0] > last[1]:
            if last is not None:
                yield last
            last = place
        else:
            last = last[0], max(last[1], place[1])
    if last is not None:
        yield last


class Forms:
    """What is sought in a text, in bytes, in all ways to read the text.

    A bit stands for a beginning of a form, one byte longer than that of the bit below. So a
    text is read once, whatever is sought.

    Attributes:
        longest: of how many bytes the longest is.
    """

    def __init__(self, forms: Iterable[str]) -> None:
        self.longest = 0
        self._first = self._last = bits = 0
        self._of: dict[str, int] = {}
        sought = sorted(forms)
        self._start = start_of([plus_as_space(form) for form in sought])
        for form in sought:
            self.longest = max(self.longest, len(form))
            self._first |= 1 << bits
            for character in plus_as_space(form):
                self._of[character] = self._of.get(character, 0) | 1 << bits
                bits += 1
            self._last |= 1 << bits - 1
        self._of |= {"+": self._of[" "]} if " " in self._of else {}
        self._begin = {c for c, bits in self._of.items() if bits & self._first}

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the parts of the text that spell a form: a character or an escape each."""
        readings = Readings(text)
        reached: dict[int, int] = {}
        passed: list[int] = []
        is_found, tried = False, 0
        starts = {start.start() for start in self._start.finditer(text)}
        for place in range(len(text)):
            state = reached.get(place, 0)
            if not state and place not in starts:
                continue
            for size, meaning in readings.at(place):
                if not state and meaning[0] not in self._begin:
                    continue
                steps = self._steps(state, meaning)
                tried += 1
                if steps[-1]:
                    end = place + size
                    reached[end] = reached.get(end, 0) | steps[-1]
                is_found = is_found or any(step & self._last for step in steps)
            passed.append(place)
            if readings.steps + tried > MOST_STEPS:
                return iter([(0, len(text))])
        return self._spelled(passed, reached, readings) if is_found else iter(())

    def _steps(self, state: int, meaning: str) -> list[int]:
        """Return what is reached by each byte of a meaning."""
        steps = []
        for byte in meaning:
            state = (state << 1 | self._first) & self._of.get(byte, 0)
            steps.append(state)
        return steps

    def _spelled(
        self, passed: list[int], reached: dict[int, int], readings: Readings
    ) -> Iterator[tuple[int, int]]:
        """Yield of what was passed what leads to the end of a form, the last one first."""
        wanted: dict[int, int] = {}
        for place in reversed(passed):
            state = reached.get(place, 0)
            for size, meaning in readings.at(place):
                want, is_part = wanted.get(place + size, 0), False
                for step in reversed(self._steps(state, meaning)):
                    good = step & (want | self._last)
                    is_part = is_part or good > 0
                    want = (good & ~self._first) >> 1
                wanted[place] = wanted.get(place, 0) | want & state
                if is_part:
                    yield place, place + size


def start_of(forms: Iterable[str]) -> re.Pattern[str]:
    """Return what a form may begin with in a text: its first two bytes, or a mark for one."""
    seconds: dict[str, set[str]] = {}
    for form in forms:
        seconds.setdefault(form[0], set()).add(form[1:2])
    ways = [one_of({first}) + following(then) for first, then in seconds.items()]
    return re.compile("|".join([one_of(set(MARKS)), *ways]))


def following(characters: set[str]) -> str:
    """Return the pattern of what comes next: one of these, or a mark; the empty one is any."""
    return "" if "" in characters else f"(?={one_of(characters | set(MARKS))})"


def one_of(characters: set[str]) -> str:
    """Return the pattern of one of these, of which a space may be a plus sign."""
    more = {"+"} if " " in characters else set()
    return f"[{''.join(map(re.escape, sorted(characters | more)))}]"


def plus_as_space(text: str) -> str:
    """Return a text with its plus signs as the spaces that they are in the query of a URL."""
    return text.replace("+", " ")
