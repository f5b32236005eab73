"""Lists: an opaque cursor in, items and the next cursor out."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from jobq.http.errors import ApiError
from jobq.http.operation import json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response

T = TypeVar("T")

Cursor = Annotated[
    str, Meta(description="From the page before.", max_length=128, pattern="^[-_=0-9A-Za-z]*$")
]
Next = Annotated[str | None, Meta(description="For the next page; null on the last.")]
Limit = Annotated[int, Meta(description="Items in a page.", ge=1, le=200)]


class Paging(Struct, forbid_unknown_fields=True, kw_only=True):
    """The parameters of every list."""

    limit: Limit = 50
    cursor: Cursor | None = None

    def position(self, kind: type[T]) -> T | None:
        """Return what the cursor holds, or None without one.

        Args:
            kind: the type of what it must hold.

        Raises:
            ApiError: it was not made here.
        """
        if self.cursor is None:
            return None
        try:
            text = urlsafe_b64decode(self.cursor + "=" * (-len(self.cursor) % 4))
            return msgspec.convert(text.decode(), kind, strict=False)
        except (ValueError, msgspec.ValidationError) as error:
            raise ApiError("INVALID_REQUEST", "cursor: not one from here") from error

    def number(self, most: int) -> int | None:
        """Return the number that the cursor holds, or None without one.

        Raises:
            ApiError: it was not made here.
        """
        number = self.position(int)
        if number is not None and not 0 <= number <= most:
            raise ApiError("INVALID_REQUEST", "cursor: not one from here")
        return number


def next_of(last: object) -> str | None:
    """Return the cursor that leads on from what a function has told, or None at the end."""
    return None if last is None else urlsafe_b64encode(str(last).encode()).rstrip(b"=").decode()


def page(rows: Sequence[tuple[Any, ...]]) -> Response:
    """Answer with the rows (item, cursor) of a function, and the last one's cursor.

    A last row may have a cursor alone: a search has stopped there.
    """
    cursor = msgspec.json.encode(next_of(rows[-1][1] if rows else None))
    items = b",".join(item for item, _ in rows if item is not None)
    return json(b'{"items":[' + items + b'],"cursor":' + cursor + b"}")
