"""Lists: an opaque cursor in, items and the next cursor out.

A cursor contains a position and a hash of the list's path and filters, so that it is valid only for
that list.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2s
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Meta
from starlette.responses import Response

from jobq_http.call import Call, encoded, json
from jobq_http.errors import ApiError
from jobq_http.values import RequestPart

T = TypeVar("T")

# Parameters that do not change which items are in a list.
ASIDE: Final = frozenset({"limit", "cursor", "vocabulary"})

Cursor = Annotated[
    str,
    Meta(
        description="From the previous page, with the same filters.",
        max_length=10_000,  # a position may have a key of 1,024 bytes, each escaped
        pattern="^[-_=0-9A-Za-z]*$",
    ),
]
# Positions in lists, by the types of the database.
Integer = Annotated[int, Meta(ge=0, le=2**31 - 1)]
BigInteger = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Limit = Annotated[int, Meta(description="Items in a page.", ge=1, le=200)]


class Paging(RequestPart):
    """The parameters of every list."""

    limit: Limit = 50
    cursor: Cursor | None = None

    def position(self, call: Call, kind: type[T]) -> T | None:
        """Return the position in the cursor, if there is one; refuse that of another list."""
        if self.cursor is None:
            return None
        try:
            held = urlsafe_b64decode(self.cursor + "=" * (-len(self.cursor) % 4)).decode()
            mark, _, place = held.partition(":")
            if mark != mark_of(call):
                raise ApiError("INVALID_REQUEST", "cursor: of another list or other filters")
            return msgspec.convert(place, kind, strict=False)
        except (ValueError, msgspec.ValidationError) as error:
            raise ApiError("INVALID_REQUEST", "cursor: not one from here") from error


def mark_of(call: Call) -> str:
    """Return a hash of the path and the filters of a list."""
    items = call.request.query_params.multi_items()
    filters = urlencode(sorted(item for item in items if item[0] not in ASIDE))
    return blake2s(f"{call.request.url.path}?{filters}".encode(), digest_size=6).hexdigest()


def next_of(call: Call, last: object) -> str | None:
    """Return the cursor for the next page after a position, or None at the end."""
    if last is None:
        return None
    return urlsafe_b64encode(f"{mark_of(call)}:{last}".encode()).rstrip(b"=").decode()


def cut(
    call: Call,
    wanted: Paging,
    items: Iterable[Mapping[str, Any]],
    order: Callable[[Mapping[str, Any]], Any],
) -> Response:
    """Answer with a page of a list that the database has returned as a whole.

    `order` returns the sort key of an item, which is also its cursor: JSON.
    """
    after = wanted.position(call, str)
    found = sorted(items, key=order)
    if after is not None:
        last = msgspec.json.decode(after)
        found = [item for item in found if order(item) > last]
    shown = found[: wanted.limit]
    more = len(found) > len(shown)
    last = msgspec.json.encode(order(shown[-1])).decode() if more else None
    return encoded({"items": shown, "cursor": next_of(call, last)})


def page(call: Call, rows: Sequence[tuple[Any, ...]]) -> Response:
    """Answer with the rows (item, cursor) of a function, and the cursor of the last one.

    The last row has no item if a search has stopped there.
    """
    cursor = msgspec.json.encode(next_of(call, rows[-1][1] if rows else None))
    items = b",".join(item for item, _ in rows if item is not None)
    return json(b'{"items":[' + items + b'],"cursor":' + cursor + b"}")
