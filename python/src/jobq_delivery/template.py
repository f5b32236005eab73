"""Templates: JSON whose texts contain references such as {{input.user.name}}.

A text that is one reference becomes the value with its type; references within a text are
inserted as text. Values are never searched for references again, so input cannot read configs
or secrets. `{{input.nick ?? "none"}}` has a default for missing and null values. Templates have
no other features.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import quote, unquote

import msgspec

from jobq.models import Json

BRACES: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
REFERENCE: Final = re.compile(
    r"\s*(?P<namespace>input|config|secret|job)(?P<path>(?:\.[\w-]+)*)"
    r'\s*(?:\?\?\s*(?P<default>"[^"\\]*"|-?\d+(?:\.\d+)?|true|false|null|\[\])\s*)?'
)
INDEX: Final = re.compile("[0-9]{1,9}")
# In URLs, values of these two are percent-encoded and not allowed in the host.
GIVEN: Final = ("input", "job")
# A part of a path that leads nowhere or up, to those too who end it at a mark.
DOTS: Final = re.compile(r"(?:^|[/\\])[\x00-\x20]*\.\.?(?=$|[/\\?#;,\x00-\x20])")
# Characters in forms that some decode: of JavaScript, and in more bytes of UTF-8 than needed.
UNIT: Final = re.compile("%u([0-9a-f]{4})", re.IGNORECASE)
OVERLONG: Final = re.compile("%(?:c|e0%8|f0%80%8)([01])%([89ab][0-9a-f])", re.IGNORECASE)

_DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


class TemplateError(ValueError):
    """A reference cannot be resolved; the text contains the reference but no value."""


class TooLargeError(ValueError):
    """The values of templates exceed the limit."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a scope: ``input``, ``config``, ``secret`` or ``job``, and the path in it.

    The default is JSON instead of a missing or null value; None if the value is required.
    """

    namespace: str
    path: tuple[str, ...]
    default: str | None = None

    def __str__(self) -> str:
        """Return the reference as it is written, without its default."""
        return f"{{{{{'.'.join((self.namespace, *self.path))}}}}}"


class Rendering:
    """One rendering of templates, which stops at a size limit.

    Args:
        scope: the values of ``input``, ``config``, ``secret`` and ``job``.
        limit: maximum bytes of all inserted values.
    """

    def __init__(self, scope: Mapping[str, Json], limit: int) -> None:
        self._scope = scope
        self._left = limit
        self._known: dict[Reference, tuple[Json, str, int]] = {}

    def value(self, template: Json) -> Json:
        """Return a template with its references resolved.

        Raises:
            TemplateError: a reference has no value.
            TooLargeError: they exceed the limit.
        """
        match template:
            case str():
                parts = parsed(template)
                if len(parts) == 1 and isinstance(parts[0], Reference):
                    return self._resolved(parts[0])[0]
                return self._joined(parts, lambda _, text: text)
            case dict():
                return {name: self.value(value) for name, value in template.items()}
            case list():
                return [self.value(value) for value in template]
            case _:
                return template

    def url(self, template: str) -> str:
        """Return a URL; values of input and job are percent-encoded.

        They cannot reach the host, or lead up in the path.
        """
        parts = parsed(template)
        made = self._joined(parts, lambda r, text: quote(text, safe="") if is_given(r) else text)
        if any(is_given(part) for part in parts):
            plain = self._joined(parts, lambda r, text: "x" if is_given(r) else text)
            if authority(made) != authority(plain):
                raise TemplateError("input cannot be used in the host of a URL")
            if dots(made) != dots(plain):
                raise TemplateError("input cannot lead up in the path of a URL")
        return made

    def _joined(
        self, parts: Sequence[str | Reference], write: Callable[[Reference, str], str]
    ) -> str:
        return "".join(
            part if isinstance(part, str) else write(part, self._resolved(part)[1])
            for part in parts
        )

    def _resolved(self, reference: Reference) -> tuple[Json, str]:
        """Return a value and its text form, and count its size."""
        known = self._known.get(reference)
        if known is None:
            value = resolve(reference, self._scope)
            text = as_text(value)
            known = self._known[reference] = value, text, len(text.encode("utf-8", "replace"))
        self._left -= known[2]
        if self._left < 0:
            raise TooLargeError("the templates bring more than may be sent")
        return known[0], known[1]


@lru_cache(maxsize=4096)
def parsed(template: str) -> Sequence[str | Reference]:
    """Split a text into plain parts and references."""
    parts: list[str | Reference] = []
    end = 0
    for braces in BRACES.finditer(template):
        found = REFERENCE.fullmatch(braces[1])
        if found is None or not (found["path"] or found["namespace"] == "input"):
            raise TemplateError(f"{braces[0]} is not input, config, secret or job and a path")
        parts.append(template[end : braces.start()])
        path = tuple(found["path"].split(".")[1:])
        parts.append(Reference(found["namespace"], path, found["default"]))
        end = braces.end()
    parts.append(template[end:])
    return [part for part in parts if part != ""]


def resolve(reference: Reference, scope: Mapping[str, Json]) -> Json:
    """Return the value of a reference, or its default."""
    value: Any = scope.get(reference.namespace)
    for name in reference.path:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        elif reference.default is not None:
            return exact(reference.default)
        else:
            raise TemplateError(f"{reference} cannot be resolved")
    if value is None and reference.default is not None:
        return exact(reference.default)
    return value


def is_given(part: str | Reference) -> bool:
    """Return whether a part is chosen by the enqueuer."""
    return isinstance(part, Reference) and part.namespace in GIVEN


def authority(url: str) -> str:
    """Return the scheme and the host of a URL, with all that stands between and around."""
    found = re.match(r"[^/?#\\]*//[^/?#\\]*(?=[/?#\\])", url)
    return found[0] if found else url


def dots(url: str) -> int:
    """Count the parts of a URL's path that lead nowhere or up, to whoever decodes it."""
    path = re.split(r"[?#]", url, maxsplit=1)[0]
    while (decoded := decoded_once(path)) != path:
        path = decoded
    return len(DOTS.findall(path))


def decoded_once(path: str) -> str:
    """Return a path as the most willing of targets decodes it."""
    path = UNIT.sub(lambda found: chr(int(found[1], 16)), path)
    path = OVERLONG.sub(lambda found: chr(int(found[1]) * 64 + int(found[2], 16) % 64), path)
    return normalize("NFKC", unquote(path))


def exact(text: str | bytes) -> Json:
    """Return JSON with all digits of its numbers."""
    return _DECODER.decode(text)


def as_json(value: Json) -> bytes:
    """Return a value as JSON, with unchanged numbers."""
    return _ENCODER.encode(value)


def as_text(value: Json) -> str:
    """Return the text form of a value: a text unchanged, otherwise its JSON."""
    return value if isinstance(value, str) else as_json(value).decode()
