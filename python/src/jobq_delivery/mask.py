"""Masks secrets in texts that are stored or shown.

A target may echo a secret with the escapes of URLs, JSON, programs or HTML, at up to two levels.
So a text is searched as it is, and with one or two levels of escapes resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from jobq.models import Json
from jobq.redaction import error_text
from jobq.registry.outcomes import Permanent, Retry
from jobq_delivery.escapes import LONGEST, as_bytes, as_characters, readings

MASK: Final = "***"
SIGNING: Final = "whsec_"
MOST_PARTS: Final = 100
# The minimum length of masked parts: of a login, of others, of a path.
SHORT, LONG, TOKEN = 4, 8, 16


class Mask:
    """Masks secrets, plain and with the escapes of URLs, JSON, HTML and programs.

    Args:
        secrets: the secrets.

    Attributes:
        longest: maximum length of an escaped secret, to find one that crosses the end of a cut.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = {form for secret in secrets for form in forms_of(secret)}
        self.longest = LONGEST * max(map(len, self._forms), default=0)

    def text(self, text: str, most: int | None = None) -> str:
        """Return the text, or its beginning, with masked secrets.

        Args:
            text: the text; for a beginning, with `longest` more characters.
            most: maximum number of characters; a secret across the end becomes one mask.
        """
        if not self.longest:
            return text[:most]
        whole = as_bytes(text)
        end = len(whole) if most is None else len(as_bytes(text[:most]))
        parts: list[str] = []
        start = 0
        for first, last in merged(self._places(whole)):
            if first >= end:
                break
            parts += (whole[start:first], MASK)
            start = last
        parts.append(whole[start:end])
        return as_characters("".join(parts))

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where a secret stands in a text of `as_bytes`, in any way to read that."""
        for reading in readings(text):
            spelled = plus_as_space(reading.text)
            for form in self._forms:
                start = spelled.find(form)
                while start >= 0:
                    yield reading.place(start, start + len(form))
                    start = spelled.find(form, start + 1)

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
        """Return the masked text of an expected or unexpected failure."""
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
    """The name and text of an unexpected error, masked before they are cut."""

    def __init__(self, error: Exception, mask: Mask) -> None:
        self._error = error
        self._mask = mask

    def __str__(self) -> str:
        return f"{type(self._error).__name__}: {self._mask.text(str(self._error))}"


def parts_of(secret: str) -> Iterator[str]:
    """Yield the parts of a secret that a target may show without the rest.

    Each word, also without the prefix of signing secrets; and if it may be an address, its login
    and the parts of its path and query.
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
    """Yield the texts with at least this many characters."""
    return (text for text in texts if len(text) >= least)


def forms_of(secret: str) -> set[str]:
    """Return a secret and its parts, in bytes, as they are and with their escapes resolved."""
    texts = {as_bytes(text) for text in (secret, secret.strip(), *parts_of(secret))}
    return {plus_as_space(each.text) for text in texts for each in readings(text)} - {""}


def merged(places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield ranges in order, merging those that overlap."""
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


def plus_as_space(text: str) -> str:
    """Return a text with its plus signs as the spaces that they are in the query of a URL."""
    return text.replace("+", " ")
