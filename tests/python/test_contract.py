"""What the sources' headers say is what the code does."""

from __future__ import annotations

from contract import Contracts
from servers import ROOT

CONTRACTS = Contracts(ROOT)
FUNCTIONS = sorted(
    name
    for name, promise in CONTRACTS.by_name.items()
    if any(t.kind == "function" and t.name == name for t in promise.source.code.things)
)


def test_there_are_functions_to_look_at() -> None:
    assert len(FUNCTIONS) > 200


def test_the_headers_name_every_error_that_can_be_raised() -> None:
    for name in FUNCTIONS:
        header = CONTRACTS.by_name[name].header
        if not name.startswith("jobq_private."):
            assert "Raises" in header.texts, f"{name}: say what it raises, or: nothing"
    missing = {
        name: [e for e in sorted(CONTRACTS.raised(name)) if e.sqlstate not in header.sqlstates]
        for name in FUNCTIONS
        for header in [CONTRACTS.by_name[name].header]
    }
    assert {n: e for n, e in missing.items() if e} == {}, "add to Raises, or the codes to Never"


def test_the_headers_name_no_error_that_cannot_be_raised() -> None:
    """PostgreSQL itself raises what is not of class JQ."""
    stale = {}
    for name in FUNCTIONS:
        header = CONTRACTS.by_name[name].header
        possible = {error.sqlstate for error in CONTRACTS.possible(name)}
        raised = {s for s in header.sqlstates - possible if s.startswith("JQ")}
        stale[name] = raised | (header.never - {e.code for e in CONTRACTS.reached(name)})
    assert {name: words for name, words in stale.items() if words} == {}, "of Raises or Never"
