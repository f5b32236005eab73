"""Secrets in what is stored, by cases.

JOBQ_SEED=random JOBQ_MASK_EXAMPLES=20000 draws so many others.
"""

from __future__ import annotations

import html
import json
import os
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobq.registry.outcomes import Permanent, Retry
from jobq_delivery.mask import Mask

if TYPE_CHECKING:
    from collections.abc import Callable

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


def as_go(text: str) -> str:
    """Return JSON as Go writes it."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# How programs write a text that they echo.
WAYS: list[Callable[[str], str]] = [
    str,
    quote,
    quote_plus,
    lambda text: quote(text, safe=""),
    lambda text: re.sub("%..", lambda byte: byte[0].lower(), quote(text, safe="")),
    lambda text: quote(text, safe="!*'()"),
    lambda text: quote(text, safe="/+"),
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text).replace("/", "\\/")[1:-1],
    lambda text: as_go(json.dumps(text, ensure_ascii=False)[1:-1]),
    lambda text: repr(text)[1:-1],
    lambda text: repr(text.encode())[2:-1],
    lambda text: re.sub(r"(\W)", r"\\\1", text),
    html.escape,
    lambda text: html.escape(text).replace("&#x27;", "&#39;"),
    lambda text: (
        html.escape(text)
        .replace("&#x27;", "&#39;")
        .replace("&quot;", "&#34;")
        .replace("+", "&#43;")
    ),
]
EXAMPLES = int(os.environ.get("JOBQ_MASK_EXAMPLES", "100"))
SECRETS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="[]"),
    min_size=1,
    max_size=20,
)


@settings(max_examples=EXAMPLES)
@given(SECRETS, st.sampled_from(WAYS), st.sampled_from(WAYS))
@example("k<e>y/x+1", str, lambda text: quote(text, safe="/+"))
@example("Zm9vK2Jhcg+/9A==", str, lambda text: text.replace("+", "\\u002B"))
@example("100%41", str, quote)
@example("<", str, str)
def test_a_secret_is_hidden_in_escapes_within_escapes(
    secret: str, inner: Callable[[str], str], outer: Callable[[str], str]
) -> None:
    assert Mask([secret]).text(f"[{outer(inner(secret))}]") == "[***]"


ADDRESS = "https://key-1:hunter2%21@hooks.example/services/T02B01/9fQw7ZsecretpartXYZ?token=tok12345&v=2#frag"


@pytest.mark.parametrize(
    "text",
    [
        "/services/T02B01/9fQw7ZsecretpartXYZ?token=tok12345&v=2",
        "/services/T02B01/9fQw7ZsecretpartXYZ",
        "9fQw7ZsecretpartXYZ",
        "token=tok12345&v=2",
        "tok12345",
        "key-1:hunter2!",
        "hunter2!",
        "hunter2%21",
    ],
)
def test_what_a_target_tells_of_a_secret_address_is_hidden(text: str) -> None:
    assert Mask([ADDRESS]).text(f"Cannot POST <{text}>") == "Cannot POST <***>"


def test_what_is_no_secret_of_an_address_is_left() -> None:
    mask = Mask(
        [
            "https://hooks.example/",
            "https://hooks.example/v1",
            "redis://:pass@r.example/0",
        ]
    )
    assert mask.text("GET / /v1 hooks.example 0 default") == "GET / /v1 hooks.example 0 default"
    assert mask.text("bad pass") == "bad ***"


@pytest.mark.parametrize("text", ["whsec_QUJDREVG", "QUJDREVG", "whsec_R0hJSktM", "plain-one"])
def test_each_of_several_secrets_is_hidden(text: str) -> None:
    mask = Mask(["whsec_QUJDREVG whsec_R0hJSktM plain-one"])
    assert mask.text(f"want {text}!") == "want ***!"


def test_a_secret_within_another_leaves_nothing_of_that() -> None:
    assert Mask(["abc", "abcdef"]).text("abcdef abc") == "*** ***"


@pytest.mark.parametrize("at", range(15))
def test_what_is_cut_was_masked_before(at: int) -> None:
    mask = Mask(["0123456789"])
    cut = mask.text("x" * at + "0123456789" + "y" * 20, 12)
    assert set(cut) <= set("x*y")
    assert len(cut) <= 14


def test_what_is_cut_was_masked_before_however_long_its_escapes_are() -> None:
    mask = Mask(["<s3cret> & 'more'"])
    written = html.escape(html.escape("<s3cret> & 'more'"))
    text = "x" * 20 + written + "y" * 1000
    assert mask.text(text[: 30 + mask.longest], 30) == "x" * 20 + "***"


def test_a_text_full_of_escapes_is_left_where_it_holds_no_secret() -> None:
    assert Mask(["hunter2"]).text("&#52" * 20_000) == "&#52" * 20_000


def test_every_failure_is_masked() -> None:
    mask = Mask(["hunter2"])
    retry = mask.failure(Retry("hunter2", code="A", details={"a": ["hunter2"]}))
    assert (retry.message, retry.details) == ("***", {"a": ["***"]})
    permanent = mask.failure(Permanent("B", "so hunter2", details={"a": "hunter2"}))
    assert (permanent.message, permanent.details) == ("so ***", {"a": "***"})
    assert Mask(["O"]).failure(Permanent("BODY", "o")).code == "BODY"
    assert isinstance(permanent, Permanent)
    other = mask.failure(TypeError("an unexpected argument hunter2" + "x" * 600))
    assert other.code == "ERROR"
    assert other.message.startswith("TypeError: an unexpected argument ***x")
    # A secret across the end of what is kept of an error
    split = mask.failure(TypeError("x" * 498 + "hunter2"))
    assert "hun" not in split.message


def test_nothing_is_hidden_without_secrets() -> None:
    assert Mask([""]).text("a***b", 3) == "a**"
