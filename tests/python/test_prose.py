"""The list of phrases that `make lint` finds in documents."""

from __future__ import annotations

import prose
import pytest

SAID = {
    "A worker is told of it.": ["is told"],
    "Who asks again waits.": ["Who a"],
    "It is refused. What runs goes on.": ["What runs goes on.", "goes on"],
    "Every handler stands being run twice.": ["stands"],
    "`it goes on`, and\n```\nis told\n```\nso on.": [],
    "What do you want to do? The standby stands for many.": [],
}


@pytest.mark.parametrize("text", SAID)
def test_a_phrase_is_found_but_not_in_code(text: str) -> None:
    assert sorted(words.removeprefix(". ") for _, words, _ in prose.found(text)) == SAID[text]
