"""Masks secrets in texts that are stored or shown.

A target may echo a secret as encoders of URLs, JSON, HTML, shells or programs write it, or two of
them one after the other. So a text is searched for each of these forms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from typing import Final
from urllib.parse import quote, quote_plus, unquote

from jobq.models import Json
from jobq.redaction import error_text
from jobq.registry.outcomes import Permanent, Retry

MASK: Final = "***"
SIGNING: Final = "whsec_"
MOST_PARTS: Final = 100
# The minimum length of masked parts: of a login, of others, of a path.
SHORT, LONG, TOKEN = 4, 8, 16
# The digits of an escape, in upper or lower case.
HEX: Final = re.compile(r"(?<=%)[0-9A-F]{2}|(?<=\\u)[0-9a-f]{4}|(?<=\\x)[0-9a-f]{2}")


class Mask:
    """Masks secrets, plain and escaped.

    Attributes:
        longest: maximum length of an escaped secret, to find one that crosses the end of a cut.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = frozenset[str]().union(*map(forms_of, secrets))
        self.longest = max(map(len, self._forms), default=0)

    def text(self, text: str, most: int | None = None) -> str:
        """Return the text, or its first `most` characters, with masked secrets.

        A secret across the end becomes one mask, if the text has `longest` more characters.
        """
        end = len(text) if most is None else most
        parts: list[str] = []
        start = 0
        for first, last in merged(self._places(text)):
            if first >= end:
                break
            parts += (text[start:first], MASK)
            start = last
        return "".join((*parts, text[start:end]))

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        for form in self._forms:
            start = text.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = text.find(form, start + 1)

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


@lru_cache(maxsize=32)
def forms_of(secret: str) -> frozenset[str]:
    """Return a secret and its parts, as they are, decoded, and encoded up to twice."""
    texts = {secret, secret.strip(), *parts_of(secret)}
    texts |= {unquote(text) for text in texts}
    once = {form for text in texts for form in encoded(text)}
    return frozenset({form for text in once for form in encoded(text)} - {""})


def encoded(text: str) -> Iterator[str]:
    """Yield a text as it is, and as URLs, JSON, HTML, shells and programs have it."""
    data = text.encode("utf-8", "surrogatepass")
    html, json_ascii = escape(text), json.dumps(text)[1:-1]
    yield text
    yield html
    yield html.replace("&#x27;", "&#39;")
    yield html.replace("&#x27;", "&#39;").replace("&quot;", "&#34;").replace("+", "&#43;")
    yield re.sub(r"([^\w])", r"\\\1", text)
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    for form in (
        *(quote(data, safe=safe) for safe in ("", "/", "/+", "!*'()")),
        quote_plus(data),
        json_ascii,
        json_ascii.replace("/", "\\/"),
        in_units("<>&", json.dumps(text, ensure_ascii=False)[1:-1]),  # as Go
        in_units("<>&'+`", json_ascii.replace('\\"', "\\u0022")),  # as .NET
        repr(text)[1:-1],
        repr(data)[2:-1],
    ):
        yield form
        yield HEX.sub(lambda digits: digits[0].swapcase(), form)


def in_units(characters: str, text: str) -> str:
    """Return a text with some characters as JSON can escape any."""
    return re.sub(f"[{characters}]", lambda found: f"\\u{ord(found[0]):04x}", text)


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
