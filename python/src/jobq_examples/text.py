"""Summarize a text by the sentences with its frequent words.

After H. P. Luhn, "The Automatic Creation of Literature Abstracts", 1958: the weight of a sentence
is the frequency of its words in the text, without common words.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from jobq.registry import Permanent

COMMON = frozenset(
    "a an and are as at be been but by can do for from had has have he her his if in into is it "
    "its may more no not of on or she so than that the their them then there these they this to "
    "was we were what when which who will with would you".split()
)


@dataclass(frozen=True, slots=True)
class SummarizeText:
    """A text, and how long its summary may be.

    Args:
        text: plain text.
        sentences: how many sentences to keep.
    """

    text: str
    sentences: int = 3


def summarize_text(payload: SummarizeText) -> dict[str, str | int]:
    """Return the sentences with the greatest weight, in the order of the text.

    Raises:
        Permanent: the text or the number of sentences is empty.
    """
    sentences = [s for s in re.split(r"(?<=[.!?])\s+", payload.text.strip()) if s]
    if not sentences or payload.sentences < 1:
        raise Permanent("NOTHING_TO_SUMMARIZE", "a text and at least one sentence are needed")
    frequency = Counter(words(payload.text))
    ranked = sorted(range(len(sentences)), key=lambda n: -weight(sentences[n], frequency))
    kept = sorted(ranked[: payload.sentences])
    return {"summary": " ".join(sentences[n] for n in kept), "sentences": len(kept)}


def words(text: str) -> list[str]:
    """The words of a text in lower case, without common ones."""
    return [w for w in re.findall(r"[^\W\d_]+", text.lower()) if w not in COMMON]


def weight(sentence: str, frequency: Counter[str]) -> float:
    """The mean frequency of the words of a sentence."""
    found = words(sentence)
    return sum(frequency[w] for w in found) / len(found) if found else 0.0
