"""Which jobs: a filter that stands in the address, so that it can be sent to a colleague."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

import msgspec

from jobq.console.words import query
from jobq.http.errors import ApiError

if TYPE_CHECKING:
    from jobq.console.visit import Visit

STATES = ("queued", "running", "retrying", "blocked", "succeeded", "dead", "cancelled")
METADATA = "metadata: tenant=acme, retries:=3 (a number, true, null …), or a JSON object"


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
        metadata: name=text, name:=JSON (a number, true, null …), or a whole JSON object.
    """

    state: str = ""
    kind: str = ""
    queue: str = ""
    error: str = ""
    worker: str = ""
    after: str = ""
    until: str = ""
    metadata: str = ""

    @classmethod
    def asked(cls, visit: Visit) -> Self:
        """Read a filter from an address.

        Raises:
            ApiError: it is by metadata, which are hidden here: they could be guessed.
        """
        given = visit.request.query_params
        # Names are taken as they are: with a blank at an end it is another queue or kind.
        words = {f.name: given.get(f.name, "") for f in fields(cls)}
        words |= {name: words[name].strip() for name in ("after", "until", "metadata")}
        words["state"] = ",".join(s for s in given.getlist("state") if s)
        if words["metadata"] and visit.console.options.hides_payloads:
            raise ApiError("FORBIDDEN", message="Metadata are hidden here, and find no jobs.")
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
            "metadata": metadata(self.metadata),
        }
        return {name: value for name, value in known.items() if value}


NAMES = tuple(f.name for f in fields(Filter))


def instant(name: str, text: str) -> datetime | None:
    """Return an instant that somebody wrote, in UTC where it says nothing else."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ApiError("INVALID_REQUEST", f"{name}: like 2026-03-15T14:30") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def metadata(text: str) -> str | None:
    """Return the JSON object that metadata must contain."""
    if not text:
        return None
    if not text.startswith("{"):
        name, is_given, value = (part.strip() for part in text.partition("="))
        if not is_given:
            raise ApiError("INVALID_REQUEST", METADATA)
        if not name.endswith(":"):
            return msgspec.json.encode({name: value}).decode()
        text = f"{{{msgspec.json.encode(name[:-1].strip()).decode()}: {value}}}"
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError as error:
        raise ApiError("INVALID_REQUEST", METADATA) from error
    return text


def cursor(text: str | None) -> UUID | None:
    """Return where a page goes on."""
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError as error:
        raise ApiError("INVALID_REQUEST", "this is no place in the list") from error
