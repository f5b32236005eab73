"""The work: fetch the prices of a day, transform, check and store them.

Prices come from ``<DAILY_PIPELINE_UPSTREAM>/<symbol>/<day>.csv`` with the columns time,
price and volume; the day's bar goes to ``<DAILY_PIPELINE_STORAGE>/<symbol>/<day>.json``. The
same day again replaces the same file, so a repeated job leaves no duplicate.
"""

from __future__ import annotations

import csv
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jobq.registry import JobContext, Registry, Retry
from jobq_examples.daily_pipeline.contract import (
    JOB_TYPE,
    MAX_ATTEMPTS,
    VISIBILITY_TIMEOUT,
    ErrorCode,
    JobMessage,
    JobStatus,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobq.registry.typed import HandlerOptions

logger = logging.getLogger("daily_pipeline")
registry = Registry()

# The options of every job type by the contract.
CONTRACT: HandlerOptions = {
    "max_attempts": MAX_ATTEMPTS,
    "lease": VISIBILITY_TIMEOUT,
    "timeout": 600,
    "retry": "delivery",
    "reuse_key_after_failure": True,
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A symbol's day."""

    symbol: str
    asof: str
    open: float
    high: float
    low: float
    close: float
    volume: int


@registry.handler(JOB_TYPE, **CONTRACT)
def run_pipeline(payload: JobMessage, context: JobContext) -> dict[str, str]:
    """Do a job: fetch, transform, check, store.

    Raises:
        Retry: with the code of what failed; the fifth failure makes a dead letter.
    """
    fields = {"symbol": payload.symbol, "asof": payload.asof.isoformat()}
    logger.info("pipeline started", extra={**fields, "status": JobStatus.RUNNING})
    try:
        rows = fetch(payload)
        context.progress({"rows": len(rows)})
        bar = transform(payload, rows)
        quality(bar)
        path = store(bar)
    except Exception as error:
        code = error.code if isinstance(error, Retry) else "ERROR"
        failure = {"status": JobStatus.FAILED, "error_code": code}
        logger.warning("pipeline failed", extra={**fields, **failure})
        raise
    logger.info("pipeline finished", extra={**fields, "status": JobStatus.SUCCEEDED})
    return {"result_ref": str(path)}


def fetch(message: JobMessage) -> list[dict[str, str]]:
    """Read what upstream has.

    Raises:
        Retry: UPSTREAM_EMPTY.
    """
    folder = Path(os.environ.get("DAILY_PIPELINE_UPSTREAM", "upstream"))
    path = folder / message.symbol / f"{message.asof.isoformat()}.csv"
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        rows = []
    if not rows:
        raise Retry(f"upstream has nothing at {path.name}", code=ErrorCode.UPSTREAM_EMPTY)
    return rows


def transform(message: JobMessage, rows: Sequence[dict[str, str]]) -> Bar:
    """Make a bar of a day's trades, in the order of their times.

    Raises:
        Retry: TRANSFORM_INVALID.
    """
    try:
        trades = sorted((row["time"], float(row["price"]), int(row["volume"])) for row in rows)
    except (KeyError, TypeError, ValueError) as error:
        raise Retry(f"a row is malformed: {error}", code=ErrorCode.TRANSFORM_INVALID) from error
    prices = [price for _, price, _ in trades]
    return Bar(
        symbol=message.symbol,
        asof=message.asof.isoformat(),
        open=prices[0],
        high=max(prices),
        low=min(prices),
        close=prices[-1],
        volume=sum(volume for *_, volume in trades),
    )


def quality(bar: Bar) -> None:
    """Check that a bar can be true.

    Raises:
        Retry: QUALITY_FAILED.
    """
    if not bar.low > 0 or bar.volume < 0:
        raise Retry("a price is not positive", code=ErrorCode.QUALITY_FAILED)


def store(bar: Bar) -> Path:
    """Write a bar, in place of an earlier one of the same day; return where.

    Raises:
        Retry: STORAGE_WRITE_FAILED.
    """
    folder = Path(os.environ.get("DAILY_PIPELINE_STORAGE", "storage")) / bar.symbol
    path = folder / f"{bar.asof}.json"
    part = path.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.encode(bar))
        part.replace(path)
    except OSError as error:
        raise Retry(str(error), code=ErrorCode.STORAGE_WRITE_FAILED) from error
    return path
