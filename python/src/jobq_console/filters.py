"""Which jobs: a filter that stands in the address, so that it can be sent to a colleague."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

import msgspec

from jobq_console.words import query
from jobq_http.errors import ApiError

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

STATES = ("queued", "running", "retrying", "blocked", "succeeded", "dead", "cancelled")
MEMBERS = "{}: tenant=acme, retries:=3 (a number, true, null …), user.id=7, or a JSON object"
MOST_IDS = 100


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs, in the words of the address; empty means all.

    Attributes:
        state: states with commas between them.
        kind: of the jobs.
        queue: where they are.
        error: the code of their last error.
        worker: who runs them, or ran them last.
        after: made at this instant or later, in UTC.
        until: made before this instant.
        metadata: name=text, name:=JSON (a number, true, null …), or a whole JSON object; names with
            dots between them are a path.
        payload: the same of their payload.
        search: how their id begins or ends, one of their keys, or a part of their last error.
        batch: the batch that they are members of.
        ids: ids of single jobs with commas between them.
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
        """Read a filter from an address.

        Raises:
            ApiError: it is by payload or metadata, which are hidden here: they could be guessed.
        """
        # Names are taken as they are: with a blank at an end it is another queue or kind.
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
        """What is given, by name."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name))}

    @property
    def address(self) -> str:
        """The filter as an address has it."""
        return query(self.words)

    @property
    def states(self) -> list[str]:
        """The states, one by one."""
        return self.state.split(",") if self.state else []

    @property
    def job_ids(self) -> list[UUID]:
        """The ids, one by one.

        Raises:
            ApiError: one of them is none, or they are too many.
        """
        found = [i for part in self.ids.split(",") if (i := identity("ids", part))]
        if len(found) > MOST_IDS:
            raise ApiError("INVALID_REQUEST", f"ids: at most {MOST_IDS}")
        return found

    def but(self, **changes: str) -> str:
        """Return the address of this filter with changes."""
        return query({**self.words, **changes})

    def arguments(self) -> dict[str, Any]:
        """Return what jobq_http.show_jobs() takes.

        Raises:
            ApiError: a value is not what it should be.
        """
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
    """Return an id that somebody wrote."""
    try:
        return UUID(text.strip()) if text else None
    except ValueError as error:
        raise ApiError("INVALID_REQUEST", f"{name}: an id is a UUID") from error


def instant(name: str, text: str) -> datetime | None:
    """Return an instant that somebody wrote, in UTC where it says nothing else."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ApiError("INVALID_REQUEST", f"{name}: like 2026-03-15T14:30") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def members(what: str, text: str) -> str | None:
    """Return the JSON object that metadata or a payload must contain."""
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


def cursor(text: str | None) -> UUID | None:
    """Return where a page goes on."""
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError as error:
        raise ApiError("INVALID_REQUEST", "invalid cursor") from error
