"""next_tick against two other programs and against the definition of a firing.

Cases are drawn at random from a fixed seed. croniter and cronsim are independent of jobq and
of each other. `cronsim_differs`, `croniter_knows` and `croniter_gap` describe each known
difference as narrowly as possible. Around clock changes, where the libraries have rules of their
own, a third answer comes from trying every minute. JOBQ_CRON_CASES=3000 runs more cases.

Differences of cronsim 2.8:

- In the second pass of a fold it returns a time of day in the first pass, possibly before `after`.
- With six fields it has no times of day: it behaves as gap `skip` and fold `both`.
- Around changes by part of an hour (Lord Howe, Caracas, Pyongyang) it steps by whole hours and
  misses firings at the start of an hour: `* 8 * * *` first fires at 08:30 on that day.
- If midnight is in a gap (Santiago, Tehran, Apia in 2011), an interval fires at the gap's end
  or an hour late.
- For St. John's before 2011, where clocks changed at 00:01, it may not return: left out.
- `1/2` as day of the week includes Sunday.

Differences of croniter 7.0 (`second_at_beginning`, `implement_cron_bug`):

- It skips a gap if the hour names every hour, and fires otherwise. Every fold fires twice. It is
  compared with jobq's `gap` and `fold` set accordingly.
- It has no `LW`, and writes `L5` for `5L`.
- `31W` in a month of 30 days is the weekday nearest to the 30th.
- `5L` and `FRI#2` with a restricted day of the month must both match.
- A list that includes every day (`1-4,*/1`) is not restricted.
"""

import functools
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import psycopg
import pytest
from croniter import CroniterBadDateError, croniter
from cronsim import CronSim, CronSimError

CASES = int(os.environ.get("JOBQ_CRON_CASES", "200"))
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()
ZONES = [
    "UTC",
    "America/New_York",
    "America/Santiago",
    "America/Caracas",
    "Europe/London",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Asia/Pyongyang",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Apia",
]


@dataclass(frozen=True, slots=True)
class Case:
    cron: str
    zone: str
    after: datetime
    gap: str = "auto"
    fold: str = "auto"

    @property
    def is_interval(self) -> bool:
        return any(field.startswith("*") for field in self.cron.split()[:-3])


def field(rng: random.Random, low: int, high: int) -> tuple[str, set[int]]:
    """A random field without names, as text and as the numbers that it means."""
    if rng.random() < 0.35:
        return "*", set(range(low, high + 1))
    texts: list[str] = []
    numbers: set[int] = set()
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        first, last = sorted(rng.sample(range(low, high + 1), 2))
        step = rng.randint(1, high - low + 1)
        text, meant = rng.choice(
            [
                (f"{first}", [first]),
                (f"{first}-{last}", range(first, last + 1)),
                (f"{first}-{last}/{step}", range(first, last + 1, step)),
                (f"*/{step}", range(low, high + 1, step)),
            ]
        )
        texts.append(text)
        numbers.update(meant)
    return ",".join(texts), numbers


def expression(rng: random.Random, *, seconds: bool) -> str:
    day = rng.choice(["*", "*", field(rng, 1, 31)[0], field(rng, 1, 31)[0], "L", "LW"])
    month = rng.choice(["*", field(rng, 1, 12)[0], rng.choice(MONTHS)])
    weekday = rng.choice(
        [
            "*",
            "*",
            field(rng, 0, 6)[0],
            rng.choice(WEEKDAYS),
            f"{rng.randint(0, 7)}L",
            f"{rng.choice(WEEKDAYS)}#{rng.randint(1, 5)}",
        ]
    )
    fields = [field(rng, 0, 59)[0], field(rng, 0, 23)[0], day, month, weekday]
    return " ".join([field(rng, 0, 59)[0], *fields] if seconds else fields)


@functools.cache
def changes(zone: str, first_year: int, last_year: int) -> list[datetime]:
    """The instants at which the clocks of a zone change."""
    tz = ZoneInfo(zone)
    found = []
    low = datetime(first_year, 1, 1, tzinfo=UTC)
    while low.year <= last_year:
        high = low + timedelta(days=1)
        if offset(low, tz) != offset(high, tz):
            before, after = low, high
            while after - before > timedelta(seconds=1):
                middle = before + (after - before) // timedelta(seconds=2) * timedelta(seconds=1)
                if offset(middle, tz) == offset(low, tz):
                    before = middle
                else:
                    after = middle
            found.append(after)
        low = high
    return found


def offset(at: datetime, tz: ZoneInfo) -> timedelta:
    shown = at.astimezone(tz).utcoffset()
    assert shown is not None
    return shown


def cases(rng: random.Random, zones: list[str], count: int, *, seconds: bool) -> Iterator[Case]:
    """Random cases, most of them within four hours of a change of clocks if there is one."""
    known = {zone: changes(zone, 2011, 2023) for zone in zones}
    for _ in range(count):
        zone = rng.choice(zones)
        after = datetime(2011, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randint(0, 400_000_000))
        if known[zone] and rng.random() < 0.7:
            after = rng.choice(known[zone]) + timedelta(seconds=rng.randint(-14400, 14400))
        yield Case(expression(rng, seconds=seconds), zone, after)


def next_ticks(database: str, asked: list[Case]) -> list[datetime | None]:
    """What jobq answers to all cases, in one call."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select jobq.next_tick(c.cron, c.time_zone, c.after, c.gap, c.fold)"
            " from unnest(%s::text[], %s::text[], %s::timestamptz[], %s::text[], %s::text[])"
            " with ordinality as c (cron, time_zone, after, gap, fold, ordinal)"
            " order by c.ordinal",
            [
                [case.cron for case in asked],
                [case.zone for case in asked],
                [case.after for case in asked],
                [case.gap for case in asked],
                [case.fold for case in asked],
            ],
        ).fetchall()
    return [row[0] and row[0].astimezone(UTC) for row in rows]


def start(case: Case) -> datetime:
    return case.after if case.zone == "UTC" else case.after.astimezone(ZoneInfo(case.zone))


def ask_cronsim(case: Case) -> datetime | None:
    """What cronsim answers; none if it finds that the expression never fires."""
    try:
        return next(CronSim(case.cron, start(case))).astimezone(UTC)
    except (StopIteration, CronSimError):
        return None


def as_croniter(cron: str) -> str:
    """The same expression for croniter, which writes 5L as L5."""
    return re.sub(r"\b(\d)L\b", r"L\1", cron)


def ask_croniter(case: Case) -> datetime | None:
    """What croniter answers; none if it finds that the expression never fires."""
    found = croniter(
        as_croniter(case.cron),
        start(case),
        ret_type=datetime,
        second_at_beginning=True,
        implement_cron_bug=True,
    )
    try:
        next_run: datetime = found.get_next()
    except CroniterBadDateError:
        return None
    return next_run.astimezone(UTC)


def is_at_missing_midnight(case: Case, *answers: datetime) -> bool:
    """Whether an answer falls on a day that has no 00:00, where a library starts it."""
    tz = ZoneInfo(case.zone)
    days = {answer.astimezone(tz).date() for answer in answers}
    for change in changes(case.zone, case.after.year, max(answers).year):
        before = (change - timedelta(seconds=1)).astimezone(tz).replace(tzinfo=None)
        shown = change.astimezone(tz).replace(tzinfo=None)
        midnight = datetime.combine(before + timedelta(days=1), time())
        if shown > midnight and shown.date() in days and case.after < change:
            return True
    return False


def cronsim_differs(case: Case, ours: datetime, theirs: datetime) -> bool:
    """Whether the difference from cronsim is a known one."""
    tz = ZoneInfo(case.zone)
    is_fixed = not case.is_interval and case.gap == "auto"
    # in the second pass of a fold it goes back to the first pass
    if theirs <= case.after:
        return start(case).fold == 1 and is_fixed
    # it steps by whole hours across a change by part of an hour
    moved = [
        offset(change, tz) - offset(change - timedelta(seconds=1), tz)
        for change in changes(case.zone, case.after.year, ours.year)
        if case.after < change + timedelta(hours=1) and change <= ours
    ]
    return not is_fixed and (
        any(by % timedelta(hours=1) for by in moved) or is_at_missing_midnight(case, ours, theirs)
    )


def croniter_knows(case: Case) -> bool:
    """Whether croniter reads the expression as jobq does."""
    day, weekday = case.cron.split()[-3], case.cron.split()[-1]
    if day == "LW":
        return False
    if day.startswith("*") or weekday.startswith("*"):
        return True
    # it joins 5L and FRI#1 to the day of the month by "and", and takes a list that names
    # every day, such as 1-4,*/1, for *
    expanded = croniter(as_croniter(case.cron), second_at_beginning=True).expanded
    return not re.search("[L#]", weekday) and ["*"] not in (expanded[2], expanded[4])


def show(case: Case, ours: datetime | None, theirs: datetime | None) -> str:
    tz = ZoneInfo(case.zone)
    return (
        f"{case.cron!r} in {case.zone} after {case.after.astimezone(tz)}:"
        f" {ours and ours.astimezone(tz)}, not {theirs and theirs.astimezone(tz)}"
    )


@pytest.mark.parametrize("seconds", [False, True])
def test_the_calendar_is_that_of_cronsim(database: str, seconds: bool) -> None:
    asked = list(cases(random.Random(f"cronsim {seconds}"), ["UTC"], CASES, seconds=seconds))
    asked = [case for case in asked if ask_cronsim(case) is not None]
    assert len(asked) > 0.95 * CASES
    for case, ours in zip(asked, next_ticks(database, asked), strict=True):
        assert ours == ask_cronsim(case), show(case, ours, ask_cronsim(case))


def test_what_never_fires_in_cronsim_is_refused(database: str) -> None:
    asked = list(cases(random.Random("never"), ["UTC"], CASES, seconds=False))
    asked = [case for case in asked if ask_cronsim(case) is None]
    assert asked
    for case in asked:
        with pytest.raises(psycopg.Error) as refused:
            next_ticks(database, [case])
        assert refused.value.sqlstate == "JQ009", show(case, None, None)


@pytest.mark.parametrize("seconds", [False, True])
def test_the_calendar_is_that_of_croniter(database: str, seconds: bool) -> None:
    asked = list(cases(random.Random(f"croniter {seconds}"), ["UTC"], CASES, seconds=seconds))
    asked = [case for case in asked if croniter_knows(case) and ask_croniter(case) is not None]
    assert len(asked) > 0.6 * CASES
    for case, ours in zip(asked, next_ticks(database, asked), strict=True):
        assert ours == ask_croniter(case), show(case, ours, ask_croniter(case))


def test_nearest_weekdays_and_wrapping_ranges_are_those_of_croniter(
    database: str,
) -> None:
    """To the 28th: it takes 31W for the last weekday of a month of 30 days."""
    rng = random.Random("W")
    asked = []
    for case in cases(rng, ["UTC"], 1000, seconds=False):
        hours = sorted(rng.sample(range(24), 2), reverse=True)
        months = sorted(rng.sample(range(1, 13), 2), reverse=True)
        cron = f"0 {hours[0]}-{hours[1]} {rng.randint(1, 28)}W {months[0]}-{months[1]} *"
        asked.append(Case(cron, "UTC", case.after))
    for case, ours in zip(asked, next_ticks(database, asked), strict=True):
        assert ours == ask_croniter(case), show(case, ours, ask_croniter(case))


@pytest.mark.parametrize(
    ("seconds", "gap", "fold"), [(False, "auto", "auto"), (True, "skip", "both")]
)
def test_clocks_change_as_in_cronsim(database: str, seconds: bool, gap: str, fold: str) -> None:
    rng = random.Random(f"zones {seconds}")
    drawn = [
        Case(case.cron, case.zone, case.after, gap, fold)
        for case in cases(rng, ZONES, CASES, seconds=seconds)
    ]
    asked = [case for case in drawn if ask_cronsim(case) is not None]
    explained = 0
    for case, ours in zip(asked, next_ticks(database, asked), strict=True):
        theirs = ask_cronsim(case)
        if ours != theirs:
            assert ours is not None and theirs is not None
            assert cronsim_differs(case, ours, theirs), show(case, ours, theirs)
            explained += 1
    assert explained < len(asked) / 50


def test_clocks_change_as_in_croniter(database: str) -> None:
    """It skips a gap if any hour will do, and runs in both passes of every fold."""
    asked = [
        Case(case.cron, case.zone, case.after, croniter_gap(case), "both")
        for case in cases(random.Random("zones croniter"), ZONES, CASES, seconds=False)
        if croniter_knows(case) and ask_croniter(case) is not None
    ]
    for case, ours in zip(asked, next_ticks(database, asked), strict=True):
        assert ours == ask_croniter(case), show(case, ours, ask_croniter(case))


def croniter_gap(case: Case) -> str:
    hours = croniter(as_croniter(case.cron)).expanded[1]
    return "skip" if hours == ["*"] else "run"


def firings(case: Case, numbers: list[set[int]], change: datetime) -> list[datetime]:
    """Every firing of an every-day expression around a change, by trying every minute."""
    tz = ZoneInfo(case.zone)
    runs = case.gap == "run" or (case.gap == "auto" and not case.is_interval)
    repeats = case.fold == "both" or (case.fold == "auto" and case.is_interval)
    found = set()
    clock = change.astimezone(tz).replace(tzinfo=None, second=0, fold=0) - timedelta(hours=50)
    for _ in range(100 * 60):
        clock += timedelta(minutes=1)
        if clock.minute not in numbers[0] or clock.hour not in numbers[1]:
            continue
        passes = [clock.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (0, 1)]
        if passes[0].astimezone(tz).replace(tzinfo=None, fold=0) != clock:
            found.update([change] if runs else [])
        else:
            found.update(passes if repeats else passes[:1])
    return sorted(found)


@pytest.mark.long
def test_every_minute_around_a_change(database: str) -> None:
    rng = random.Random("every minute")
    zones = [zone for zone in [*ZONES, "America/St_Johns"] if changes(zone, 2008, 2019)]
    asked: list[Case] = []
    expected: list[datetime] = []
    while len(asked) < CASES // 2:
        zone = rng.choice(zones)
        change = rng.choice(changes(zone, 2008, 2019))
        minutes, hours = field(rng, 0, 59), field(rng, 0, 23)
        gap = rng.choice(["auto", "run", "skip"])
        fold = rng.choice(["auto", "once", "both"])
        template = Case(f"{minutes[0]} {hours[0]} * * *", zone, change, gap, fold)
        known = firings(template, [minutes[1], hours[1]], change)
        for _ in range(6):
            after = change + timedelta(seconds=rng.randint(-7200, 7200))
            later = [firing for firing in known if firing > after]
            if later:
                asked.append(Case(template.cron, zone, after, gap, fold))
                expected.append(later[0])
    for case, ours, right in zip(asked, next_ticks(database, asked), expected, strict=True):
        assert ours == right, f"{case.gap}, {case.fold}: {show(case, ours, right)}"
