"""Secrets in what is stored, by cases."""

from __future__ import annotations

import pytest

from jobq.delivery.mask import Mask
from jobq.outcomes import Permanent, Retry

SECRET = 'p\u00e4ss "w"/\\<1>'


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        'p\\u00e4ss \\"w\\"/\\\\<1>',
        'p\u00e4ss \\"w\\"/\\\\<1>',
        "p%C3%A4ss%20%22w%22%2F%5C%3C1%3E",
        "p%c3%a4ss+%22w%22%2f%5c%3c1%3e",
        "p\u00e4ss &quot;w&quot;/\\&lt;1&gt;",
    ],
)
def test_a_secret_is_hidden_however_it_is_written(text: str) -> None:
    assert Mask([SECRET]).text(f"<{text}>") == "<***>"


def test_a_secret_within_another_leaves_nothing_of_that() -> None:
    assert Mask(["abc", "abcdef"]).text("abcdef abc") == "*** ***"


@pytest.mark.parametrize("at", range(15))
def test_what_is_cut_was_masked_before(at: int) -> None:
    mask = Mask(["0123456789"])
    cut = mask.text("x" * at + "0123456789" + "y" * 20, 12)
    assert set(cut) <= set("x*y")
    assert len(cut) <= 14


def test_every_failure_is_masked() -> None:
    mask = Mask(["hunter2"])
    retry = mask.failure(Retry("hunter2", code="A", details={"a": ["hunter2"]}))
    assert (retry.message, retry.details) == ("***", {"a": ["***"]})
    permanent = mask.failure(Permanent("B", "so hunter2", details={"a": "hunter2"}))
    assert (permanent.message, permanent.details) == ("so ***", {"a": "***"})
    assert isinstance(permanent, Permanent)
    other = mask.failure(TypeError("an unexpected argument hunter2" + "x" * 600))
    assert other.code == "ERROR"
    assert other.message.startswith("TypeError: an unexpected argument ***x")
    # A secret across the end of what is kept of an error
    split = mask.failure(TypeError("x" * 498 + "hunter2"))
    assert "hun" not in split.message


def test_nothing_is_hidden_without_secrets() -> None:
    assert Mask([""]).text("a***b", 3) == "a**"
