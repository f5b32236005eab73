"""Templates: JSON whose texts hold references such as {{input.user.name}}.

A text that is one reference becomes the value itself, of whatever type; references within
a text are written into it. What a reference brings is never looked at for references again,
so input cannot reach configs or secrets. There is no other templating power.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobq.models import Json

__all__ = ["Reference", "TemplateError", "render"]

BRACES: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
REFERENCE: Final = re.compile(r"\s*(input|config|secret)\.([\w-]+(?:\.[\w-]+)*)\s*")


class TemplateError(ValueError):
    """A reference cannot be resolved; the text names it, and no value."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a scope: ``input``, ``config`` or ``secret``, and the path in it."""

    namespace: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        """Return the reference as it is written."""
        return f"{{{{{self.namespace}.{'.'.join(self.path)}}}}}"


def render(template: Json, scope: Mapping[str, Json]) -> Json:
    """Return a template with its references resolved.

    Args:
        template: any JSON.
        scope: what ``input``, ``config`` and ``secret`` hold.

    Raises:
        TemplateError: something that a reference names is not there.
    """
    match template:
        case str():
            return _text(template, scope)
        case dict():
            return {name: render(value, scope) for name, value in template.items()}
        case list():
            return [render(value, scope) for value in template]
        case _:
            return template


def _text(template: str, scope: Mapping[str, Json]) -> Json:
    parts = parsed(template)
    if len(parts) == 1 and isinstance(parts[0], Reference):
        return resolve(parts[0], scope)
    return "".join(p if isinstance(p, str) else as_text(resolve(p, scope)) for p in parts)


@lru_cache(maxsize=4096)
def parsed(template: str) -> Sequence[str | Reference]:
    """Split a text into plain parts and references.

    Raises:
        TemplateError: what stands between braces is no reference.
    """
    parts: list[str | Reference] = []
    end = 0
    for braces in BRACES.finditer(template):
        reference = REFERENCE.fullmatch(braces[1])
        if reference is None:
            raise TemplateError(f"{braces[0]} is not input, config or secret and a path")
        parts.append(template[end : braces.start()])
        parts.append(Reference(reference[1], tuple(reference[2].split("."))))
        end = braces.end()
    parts.append(template[end:])
    return [part for part in parts if part != ""]


def resolve(reference: Reference, scope: Mapping[str, Json]) -> Json:
    """Return what a reference names.

    Raises:
        TemplateError: it is not there.
    """
    value: Any = scope.get(reference.namespace)
    for name in reference.path:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise TemplateError(f"{reference} cannot be resolved")
    return value


def as_text(value: Json) -> str:
    """Return a value as it is written within a text: a text as it is, else its JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
