"""What a handler did has one settlement, whatever it was; nothing here needs a database."""

from __future__ import annotations

import concurrent.futures
import json
import math
from asyncio import CancelledError
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NoReturn

import pytest

from jobq.errors import DatabaseUnavailable, OutcomeInvalid, QueueFull
from jobq.redaction import MAX_TRACEBACK
from jobq.registry.outcomes import Cancelled, Permanent, RateLimited, Retry, Snooze, Unable
from jobq.registry.settlement import (
    CancelConfirmed,
    Failed,
    Gone,
    Raised,
    Released,
    Returned,
    SettledError,
    Succeeded,
    settlement_of,
)
from jobq_delivery import Keyring, SecretKeyError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


class UnspeakableError(Exception):
    def __str__(self) -> NoReturn:
        raise SystemExit


class Slippery(Retry):
    @property
    def code(self) -> NoReturn:
        raise KeyboardInterrupt

    @code.setter
    def code(self, value: str) -> None: ...


class Hostile:
    def model_dump(self, **_: Any) -> NoReturn:
        raise GeneratorExit


@pytest.mark.parametrize(
    ("error", "settled"),
    [
        (Retry("m", code="C"), Failed("C", "m")),
        (Retry("m", in_=60), Failed("RETRY", "m", retry_in=timedelta(minutes=1))),
        (Retry("m", in_=-1), Failed("RETRY", "m", retry_in=timedelta(0))),
        (Retry("m", in_=1e9), Failed("RETRY", "m", retry_in=timedelta(days=365))),
        (Retry(404), Failed("RETRY", "404")),  # type: ignore[arg-type]
        (Retry("m", code=7), Failed("7", "m")),  # type: ignore[arg-type]
        (Retry("m", code="x" * 500), Failed("x" * 128, "m")),
        (Permanent("C", "m"), Failed("C", "m", is_retryable=False)),
        (Permanent("C", "m", details={"a": object()}), Failed("C", "m", is_retryable=False)),
        (Snooze(HOUR), Released(HOUR)),
        (Snooze(NOW), Released(NOW)),
        (Snooze(3600), Released(HOUR)),
        (
            OutcomeInvalid("until"),
            Failed("OUTCOME_INVALID", "OutcomeInvalid: until", is_retryable=False),
        ),
        (Unable("C", "m", in_=HOUR), Released(HOUR, ("C", "m"))),
        (Cancelled(), Failed("CANCELLED", "the handler cancelled itself", is_retryable=False)),
        (SettledError(Gone("lost")), Gone("lost")),
        (SettledError(Failed("PROCESS_DIED", "gone")), Failed("PROCESS_DIED", "gone")),
        (QueueFull("full"), Failed("QUEUE_FULL", "QueueFull: full")),
        (DatabaseUnavailable("down"), Failed("ERROR", "DatabaseUnavailable: down")),
        (ValueError("no"), Failed("ERROR", "ValueError: no")),
        (StopIteration(), Failed("ERROR", "StopIteration")),
        (CancelledError(), Failed("ERROR", "CancelledError")),
        (concurrent.futures.CancelledError(), Failed("ERROR", "CancelledError")),
        (GeneratorExit(), Failed("ERROR", "GeneratorExit")),
        (KeyboardInterrupt(), Failed("ERROR", "KeyboardInterrupt")),
        (SystemExit(1), Failed("ERROR", "SystemExit: 1")),
        (UnspeakableError(), Failed("ERROR", "UnspeakableError")),
        (Slippery(), Failed("ERROR", "KeyboardInterrupt")),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_every_exception_has_a_settlement(error: BaseException, settled: object) -> None:
    assert plain(settlement_of(Raised(error))) == settled


def test_a_missing_key_of_secrets_is_not_retried_and_its_error_names_the_variable() -> None:
    with pytest.raises(SecretKeyError) as caught:
        Keyring().encrypt("name", "value")
    settled = settlement_of(Raised(caught.value))
    assert isinstance(settled, Failed)
    assert (settled.code, settled.is_retryable) == ("SECRET_KEY_MISSING", False)
    assert settled.error.endswith(
        "key for secrets is missing; set JOBQ_SECRET_KEYS or JOBQ_SECRET_KEY_FILE"
    )


def plain(settled: object) -> object:
    """Return a settlement without its traceback, which is among its details too."""
    if not isinstance(settled, Failed) or not settled.traceback:
        return settled
    assert settled.details is not None
    assert json.loads(bytes(settled.details)) == {"traceback": settled.traceback}
    return replace(settled, details=None, traceback="")


def test_a_traceback_has_its_chain_and_no_secrets() -> None:
    def fail() -> None:
        raise ValueError("postgresql://me:hunter2@db/x") from KeyError("first")

    try:
        fail()
    except ValueError as error:
        settled = settlement_of(Raised(error))
    assert isinstance(settled, Failed)
    assert "KeyError: 'first'" in settled.traceback
    assert "direct cause" in settled.traceback and settled.traceback.endswith("***@db/x")
    assert "hunter2" not in settled.traceback


def test_a_traceback_is_bounded() -> None:
    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        raise ValueError("x" * 9999)

    try:
        deep(200)
    except ValueError as error:
        settled = settlement_of(Raised(error))
    assert isinstance(settled, Failed)
    assert 1000 < len(settled.traceback) <= MAX_TRACEBACK


NO_LENGTHS: list[Any] = ["5 s", [], math.inf, math.nan, 1e20]


@pytest.mark.parametrize(
    ("outcome", "wait"),
    [
        *((Snooze, wait) for wait in (*NO_LENGTHS, None, -1, datetime(2030, 1, 1))),
        *((RateLimited, wait) for wait in (*NO_LENGTHS, None, -1, NOW)),
        *((partial(Unable, "C", "m"), wait) for wait in (*NO_LENGTHS, None, NOW)),
        *((Retry, wait) for wait in (*NO_LENGTHS, NOW)),
    ],
)
def test_a_wait_that_cannot_be_kills_the_job(outcome: Any, wait: Any) -> None:
    with pytest.raises(OutcomeInvalid) as caught:
        outcome(wait) if outcome in (Snooze, RateLimited) else outcome(in_=wait)
    settled = settlement_of(Raised(caught.value))
    assert isinstance(settled, Failed)
    assert (settled.code, settled.is_retryable) == ("OUTCOME_INVALID", False)


def test_a_request_to_cancel_is_confirmed_by_its_handler_alone() -> None:
    assert settlement_of(Raised(Cancelled()), is_cancel_requested=True) == CancelConfirmed()
    failed = settlement_of(Raised(ValueError()), is_cancel_requested=True)
    assert plain(failed) == Failed("ERROR", "ValueError")


@pytest.mark.parametrize(
    ("value", "settled"),
    [(None, Succeeded(None)), (0, Succeeded(b"0")), ({"a": [1]}, Succeeded(b'{"a":[1]}'))],
)
def test_what_is_json_succeeds(value: object, settled: Succeeded) -> None:
    assert settlement_of(Returned(value)) == settled


def circle() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    ("value", "code", "is_retryable"),
    [
        (object(), "RESULT_INVALID", False),
        ("\0", "RESULT_INVALID", False),
        (circle(), "RESULT_INVALID", False),
        (Hostile(), "ERROR", True),
    ],
)
def test_what_is_not_fails(value: object, code: str, is_retryable: bool) -> None:
    settled = settlement_of(Returned(value))
    assert isinstance(settled, Failed)
    assert (settled.code, settled.is_retryable) == (code, is_retryable)


@pytest.mark.parametrize(
    ("until", "bounded"),
    [
        (HOUR, HOUR),
        (NOW, NOW),
        (timedelta.max, timedelta(days=36500)),
        (datetime.max.replace(tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)),
        (datetime.min.replace(tzinfo=UTC), datetime(1, 1, 2, tzinfo=UTC)),
    ],
)
def test_a_snooze_is_within_the_calendar(
    until: datetime | timedelta, bounded: datetime | timedelta
) -> None:
    assert settlement_of(Raised(Snooze(until))) == Released(bounded)
