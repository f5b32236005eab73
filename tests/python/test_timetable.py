"""Schedules from Python: the client, the decorator, the command line."""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from commands import invoked

from jobq import AsyncClient, Client, Registry, Schedule, Slot
from jobq.errors import IllegalState, InvalidArgument, InvalidSchedule, NotFound

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]
    Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    with Client(database) as client:
        yield client


@pytest.fixture
def jobq(database: str) -> Run:
    """A function that runs a jobq command on the test's database."""
    return partial(invoked, database)


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that a command that succeeded has printed."""
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# The client


def test_a_schedule_is_declared_changed_and_retired(client: Client) -> None:
    first = client.create_schedule(
        "report",
        "make_report",
        "0 9 * * MON",
        time_zone="Asia/Kolkata",
        payload={"a": 1},
        jitter=timedelta(seconds=5),
        metadata={"team": "x"},
        ends_at=datetime(2099, 1, 1, tzinfo=UTC),
    )
    found = client.get_schedule("report")
    assert (found.schedule_id, found.version, found.status) == (first, 1, "active")
    assert (found.cron, found.every, found.time_zone) == ("0 9 * * MON", None, "Asia/Kolkata")
    assert (found.payload, found.metadata, found.jitter) == (
        {"a": 1},
        {"team": "x"},
        timedelta(seconds=5),
    )
    second = client.update_schedule(
        "report", every=timedelta(minutes=90), jitter=None, ends_at=None, payload={"b": [2]}
    )
    found = client.get_schedule(second)
    assert (found.cron, found.every, found.jitter) == (None, timedelta(minutes=90), timedelta())
    assert (found.ends_at, found.payload, found.previous_version_id) == (None, {"b": [2]}, first)
    assert [s.schedule_id for s in client.schedule_versions("report")] == [second, first]
    client.pause_schedule("report", "holiday")
    assert [s.pause_reason for s in client.list_schedules("paused")] == ["holiday"]
    client.resume_schedule(second)
    assert [s.name for s in client.list_schedules(kind="make_report")] == ["report"]
    assert client.schedule_status("report")["health"] == "IDLE"
    client.retire_schedule("report")
    assert client.list_schedules() == []
    with pytest.raises(IllegalState):
        client.update_schedule("report", priority=1)


def test_a_schedule_has_every_column_of_the_view(connect: Callable[[], Connection]) -> None:
    cursor = connect().execute("select * from jobq.schedule")
    assert [column.name for column in cursor.description or ()] == [
        f.name for f in fields(Schedule)
    ]


def test_previews_tell_instants_and_local_times(client: Client) -> None:
    slots = client.preview_cron(
        "30 1 * * *",
        "America/New_York",
        2,
        after=datetime(2026, 11, 1, tzinfo=UTC),
        fold="both",
    )
    assert slots == [
        Slot(datetime(2026, 11, 1, hour, 30, tzinfo=UTC), datetime(2026, 11, 1, 1, 30))
        for hour in (5, 6)
    ]
    client.create_schedule("s", "k", every="1 h", starts_at=datetime(2099, 1, 1, tzinfo=UTC))
    hours = [slot.slot_at.hour for slot in client.preview_schedule("s", 3)]
    assert hours == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: c.create_schedule("s", "k", "61 * * * *"), InvalidSchedule),
        (lambda c: c.create_schedule("s", "k", "@daily", time_zone="Mars/Base"), InvalidSchedule),
        (lambda c: c.create_schedule("s", "k"), InvalidArgument),
        (lambda c: c.update_schedule("nobody", priority=1), NotFound),
        (lambda c: c.get_schedule(uuid4()), NotFound),
        (lambda c: c.preview_cron("@never"), InvalidSchedule),
    ],
)
def test_refusals_have_classes(
    client: Client, call: Callable[[Client], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        call(client)


def test_the_same_is_awaited(database: str) -> None:
    async def declare() -> str:
        async with AsyncClient(database) as client:
            await client.create_schedule("s", "k", "@daily")
            return (await client.get_schedule("s")).name

    assert asyncio.run(declare()) == "s"


# The decorator


def test_a_registry_declares_the_schedules_of_its_handlers(client: Client) -> None:
    registry = Registry()

    @registry.schedule("nightly", "0 2 * * *", time_zone="Europe/Berlin")
    @registry.schedule("often", every=90, payload={"fast": True})
    @registry.handler("report", max_attempts=2)
    async def report() -> None: ...

    @registry.schedule("clean", "@daily")
    @registry.handler("clean_up")
    class CleanUp:
        def __call__(self) -> None: ...

    registry.declare(client)
    registry.declare(client)
    found = {s.name: (s.kind, s.cron, s.every, s.version) for s in client.list_schedules()}
    assert found == {
        "nightly": ("report", "0 2 * * *", None, 1),
        "often": ("report", None, timedelta(seconds=90), 1),
        "clean": ("clean_up", "@daily", None, 1),
    }


def test_a_schedule_needs_a_handler_and_a_name_of_its_own() -> None:
    registry = Registry()

    async def report() -> None: ...

    with pytest.raises(TypeError, match="above the decorator"):
        registry.schedule("nightly", "@daily")(report)
    registry.handler("report")(report)
    registry.schedule("nightly", "@daily")(report)
    with pytest.raises(ValueError, match="already"):
        registry.schedule("nightly", "@hourly")(report)
    with pytest.raises(TypeError):
        registry.schedule("other", "@daily", tme_zone="UTC")(report)  # type: ignore[call-arg]


# The command line


def test_preview_shows_an_expression_by_the_clocks_of_a_zone(jobq: Run) -> None:
    lines = said(
        jobq(
            *("preview", "0 9 * * MON", "--zone", "Asia/Kolkata"),
            *("--count", "2", "--after", "2026-03-15T00:00+0000"),
        )
    )
    assert lines == [
        "Asia/Kolkata             UTC",
        "Mon 2026-03-16 09:00:00  2026-03-16 03:30:00",
        "Mon 2026-03-23 09:00:00  2026-03-23 03:30:00",
    ]


def test_a_refused_expression_ends_preview_in_one_line(jobq: Run) -> None:
    done = jobq("preview", "61 * * * *")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Error: INVALID_CRON: ")
    assert done.stderr.count("\n") == 1
    assert "minute" in done.stderr


def test_schedules_are_listed_and_looked_after(jobq: Run, client: Client) -> None:
    client.create_schedule("report", "make_report", "0 9 * * MON", time_zone="Asia/Kolkata")
    client.create_schedule("poll", "poll_api", every="90 s", from_completion=True)
    lines = said(jobq("schedules"))
    assert [line.split()[0] for line in lines] == ["name", "poll", "report"]
    assert "every 0:01:30 after its job" in lines[1]
    [row] = said(jobq("schedules", "--kind", "make_report", "--json"))
    assert json.loads(row)["cron"] == "0 9 * * MON"

    said(jobq("schedules", "pause", "report", "--reason", "holiday"))
    assert said(jobq("schedules", "--status", "paused"))[1].startswith("report")
    shown = said(jobq("schedules", "show", "report"))
    assert any(line.split() == ["pause_reason", "holiday"] for line in shown)
    assert any(line.split() == ["health", "IDLE"] for line in shown)
    said(jobq("schedules", "resume", "report"))
    assert len(said(jobq("schedules", "preview", "report", "--count", "3"))) == 4
    client.update_schedule("report", payload={"a": 1})
    assert [line.split()[0] for line in said(jobq("schedules", "versions", "report"))] == [
        "version",
        "2",
        "1",
    ]
    said(jobq("schedules", "retire", "report"))
    assert client.get_schedule("report").status == "retired"
    assert jobq("schedules", "retire", "nobody").returncode == 1
