"""The values that requests and answers are made of, with their limits."""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta
from decimal import Decimal
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from msgspec import Meta, Raw, Struct, defstruct

from jobq.models import words_of

# PostgreSQL cannot store a NUL.
TEXT: Final = r"^[^\u0000]*$"

Name = Annotated[str, Meta(min_length=1, max_length=128, pattern=TEXT)]
Text = Annotated[str, Meta(max_length=512, pattern=TEXT)]
ConcurrencyKey = Annotated[str, Meta(min_length=1, max_length=1024, pattern=TEXT)]
KeyText = Annotated[str, Meta(min_length=1, max_length=512, pattern=TEXT)]
Reason = Annotated[str, Meta(max_length=512, pattern=TEXT)]
Priority = Annotated[float, Meta(ge=-32768, le=32767, multiple_of=1)]
Attempts = Annotated[float, Meta(ge=1, le=10000, multiple_of=1)]
Milliseconds = Annotated[float, Meta(ge=1, le=31_536_000_000, multiple_of=1)]
Rate = Annotated[float, Meta(ge=1, le=1_000_000_000, multiple_of=1)]
Json = Annotated[Raw, Meta(description="Any JSON, kept to the last digit.")]
JsonMembers = dict[str, Raw]
Status = Literal["PENDING", "QUEUED", "RUNNING", "RETRYING", "SUCCESS", "FAILED", "CANCELLED"]
Trigger = Literal["IMMEDIATE", "DELAYED", "CRON"]
EndpointType = Literal["HTTP", "KAFKA", "REDIS_STREAM"]
Vocabulary = Annotated[
    Literal["kind", "endpoint"] | None,
    Meta(description="What a job is given is its payload (kind) or its input (endpoint)."),
]
Level = Literal["DEBUG", "INFO", "WARN", "ERROR"]
Next = Annotated[str | None, Meta(description="For the next page; null on the last.")]
Moment = Annotated[datetime, Meta(tz=True)]
AnyJson = Annotated[Any, Meta(description="Any JSON.")]
JsonObject = Annotated[dict[str, Any], Meta(description="A JSON object.")]


class Request(Struct, forbid_unknown_fields=True):
    """The body of a request, or a part of one."""

    def __post_init__(self) -> None:
        """Take 5.0 for 5, where a whole number is meant."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, float) and value.is_integer():
                setattr(self, name, int(value))


def answer_of(record: type, name: str, **others: Any) -> type[Struct]:  # noqa: ANN401 - any types
    """Return the type of an answer that is a record of the client's, with its words.

    Times are instants with an offset, and lengths of time milliseconds.

    Args:
        record: a dataclass.
        name: of the type.
        others: members that are only in the answer, or have another type there; None for those
            that it does not have.
    """
    names = {"Decimal": Decimal, "datetime": datetime, "timedelta": timedelta, "UUID": UUID}
    types = get_type_hints(record, localns=names)
    words = words_of(record)
    members = {n: kind for n, kind in others.items() if n not in types}
    for attribute, kind in types.items():
        written = others.get(attribute, as_json(kind))
        if attribute not in others and attribute in words:
            written = Annotated[written, Meta(description=words[attribute].replace("None", "null"))]
        if written is not None:
            members[f"{attribute}_ms" if timedelta in kinds_of(kind) else attribute] = written
    meaning = (inspect.getdoc(record) or "").splitlines()[0]
    return defstruct(name, list(members.items()), namespace={"__doc__": meaning})


def as_json(kind: Any) -> Any:  # noqa: ANN401 - any type
    """Return the type in JSON of what has a type in Python."""
    known: dict[Any, Any] = {
        Any: AnyJson,
        Decimal: float,
        datetime: Moment,
        dict[str, Any]: JsonObject,
        timedelta: int,
    }
    kinds = [known.get(each, each) for each in kinds_of(kind)]
    return Union[tuple(kinds)]  # noqa: UP007 - of any number


def kinds_of(kind: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any type
    """Return the types of a union, or the one type that there is."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def page_of(name: str, meaning: str, item: Any) -> type[Struct]:  # noqa: ANN401 - any type
    """Return the type of a page of a list."""
    return list_of(name, meaning, item, "items", ("cursor", Next))


def list_of(
    name: str,
    meaning: str,
    item: Any,  # noqa: ANN401 - any type
    member: str = "items",
    *others: tuple[str, Any],
) -> type[Struct]:
    """Return the type of an object with one list."""
    return defstruct(name, [(member, list[item]), *others], namespace={"__doc__": meaning})
