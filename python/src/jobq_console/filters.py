"""Filters of jobs, as part of the address, so that users can share them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID

import msgspec
from starlette.datastructures import QueryParams

from jobq_console.words import query
from jobq_http.errors import ApiError

STATES = ("queued", "running", "retrying", "blocked", "succeeded", "dead", "cancelled")
MEMBERS = "{}: tenant=acme, retries:=3 (a number, true, null …), user.id=7, or a JSON object"
MOST_IDS = 100
BIG_INTEGER = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of jobs as in the address; empty means all.

    Attributes:
        state: states, separated by commas.
        kind: their kind.
        queue: their queue.
        error: the code of their last error.
        worker: the worker that runs them or ran them last.
        after: created at or after this time, in UTC.
        until: created before this time.
        metadata: name=text, name:=JSON (a number, true, null …), or a whole JSON object; names with
            dots between them are a path.
        payload: the same of their payload.
        search: the beginning or end of their id, one of their keys, or a part of their last error.
        batch: their batch.
        ids: ids, separated by commas.
    """

    state: str = ""
    kind: str = ""
    queue: str = ""
    error: str = ""
    worker: str = ""
    after: str = ""
    until: str = ""
    metadata: str = ""
    payload: str = ""
    search: str = ""
    batch: str = ""
    ids: str = ""

    @classmethod
    def asked(cls, given: QueryParams, *, hides_payloads: bool) -> Self:
        """Parse the filter of an address; refuse one of what is hidden: values could be guessed."""
        # Names are not trimmed: a space at the end makes another queue or kind.
        words = {f.name: given.get(f.name, "") for f in fields(cls)}
        words |= {name: words[name].strip() for name in STRIPPED}
        for name in ("state", "ids"):
            words[name] = ",".join(part for part in given.getlist(name) if part)
        if hides_payloads and (words["metadata"] or words["payload"]):
            message = "Payloads and metadata are hidden and cannot be searched."
            raise ApiError("FORBIDDEN", message=message)
        return cls(**words)

    @property
    def words(self) -> dict[str, str]:
        """The non-empty fields, by name."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name))}

    @property
    def address(self) -> str:
        """The filter as a query string."""
        return query(self.words)

    @property
    def states(self) -> list[str]:
        """The states, one by one."""
        return self.state.split(",") if self.state else []

    @property
    def job_ids(self) -> list[UUID]:
        """The ids, one by one."""
        found = [i for part in self.ids.split(",") if (i := identity("ids", part))]
        if len(found) > MOST_IDS:
            raise ApiError("INVALID_REQUEST", f"ids: at most {MOST_IDS}")
        return found

    def but(self, **changes: str) -> str:
        """Return the address of this filter with changes."""
        return query({**self.words, **changes})

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for jobq_http.show_jobs()."""
        known = {
            "states": self.states or None,
            "kind": self.kind,
            "queue": self.queue,
            "error_code": self.error,
            "worker": self.worker,
            "created_after": instant("after", self.after),
            "created_before": instant("until", self.until),
            "metadata": members("metadata", self.metadata),
            "payload": members("payload", self.payload),
            "search": self.search,
            "batch_id": identity("batch", self.batch),
            "job_ids": self.job_ids,
        }
        return {name: value for name, value in known.items() if value}


NAMES = tuple(f.name for f in fields(Filter))
# Names are taken as they are, these are not.
STRIPPED = ("after", "until", "metadata", "payload", "search", "batch")


def identity(name: str, text: str) -> UUID | None:
    """Parse an id."""
    try:
        return UUID(text.strip()) if text else None
    except ValueError as error:
        raise ApiError("INVALID_REQUEST", f"{name}: an id is a UUID") from error


def instant(name: str, text: str) -> datetime | None:
    """Parse a time, in UTC unless it has an offset."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ApiError("INVALID_REQUEST", f"{name}: like 2026-03-15T14:30") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def members(what: str, text: str) -> str | None:
    """Parse the object that metadata or a payload must contain."""
    if not text:
        return None
    refusal = MEMBERS.format(what)
    if not text.startswith("{"):
        path, is_given, value = (part.strip() for part in text.partition("="))
        if not is_given:
            raise ApiError("INVALID_REQUEST", refusal)
        if path.endswith(":"):
            path = path[:-1].strip()
        else:
            value = msgspec.json.encode(value).decode()
        for name in reversed(path.split(".")):
            value = f"{{{msgspec.json.encode(name).decode()}: {value}}}"
        text = value
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError as error:
        raise ApiError("INVALID_REQUEST", refusal) from error
    return text


def cursor(text: str | None) -> dict[str, UUID]:
    """Return the argument for the cursor of a page, if there is one."""
    try:
        return {"before": UUID(text)} if text else {}
    except ValueError as error:
        raise ApiError("INVALID_REQUEST", "invalid cursor") from error
