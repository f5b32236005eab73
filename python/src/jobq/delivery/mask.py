"""Masks: what may be stored and shown of a text that may hold secrets."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from jobq.outcomes import Permanent, Retry
from jobq.redaction import error_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobq.models import Json

__all__ = ["Mask"]

MASK: Final = "***"


class Mask:
    """Hides secrets, as they are and as JSON, URLs, HTML and Python write them.

    Args:
        secrets: what nobody may see.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in forms_of(secret) if form}
        # The longest first, so that a secret within another leaves nothing of that.
        ordered = sorted(forms, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self.longest = len(ordered[0]) if ordered else 0

    def text(self, text: str, most: int | None = None) -> str:
        """Return a text without secrets, or the masked beginning of one.

        Args:
            text: the text; of a beginning, `longest` more characters than that.
            most: so many characters of the text; a secret across their end is one mask.
        """
        if self._found is None:
            return text[:most]
        parts: list[str] = []
        start = 0
        end = len(text) if most is None else most
        for found in self._found.finditer(text):
            if found.start() >= end:
                break
            parts += (text[start : found.start()], MASK)
            start = found.end()
        parts.append(text[start:end])
        return "".join(parts)

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
                    code=self.text(error.code),
                    details=details,
                    holds_key=error.holds_key,
                )
            case Permanent():
                message, details = self.text(error.message), self.json(error.details)
                return Permanent(self.text(error.code), message, details=details)
            case _:
                return Retry(self.text(error_text(_Named(error, self))), code="ERROR")


class _Named:
    """An unexpected error's name and words, masked before anybody cuts them."""

    def __init__(self, error: Exception, mask: Mask) -> None:
        self._error = error
        self._mask = mask

    def __str__(self) -> str:
        return f"{type(self._error).__name__}: {self._mask.text(str(self._error))}"


def forms_of(secret: str) -> set[str]:
    """Return how a secret may be written."""
    percents = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    return {
        secret,
        secret.strip(),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(secret).replace("/", "\\/")[1:-1],
        repr(secret)[1:-1],
        html.escape(secret),
        *percents,
        *(re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), text) for text in percents),
    }
