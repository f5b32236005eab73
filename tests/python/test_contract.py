"""What the sources' headers say is what the code does."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_header_names_every_error_that_can_be_raised(name: str) -> None:
    header = CONTRACTS.by_name[name].header
    if not name.startswith("jobq_private."):
        assert "Raises" in header.texts, "say what it raises, or: nothing"
    raised = CONTRACTS.raised(name)
    missing = sorted(e for e in raised if e.sqlstate not in header.sqlstates)
    assert not missing, "add them to Raises, or their codes to Never"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_header_names_no_error_that_cannot_be_raised(name: str) -> None:
    # PostgreSQL itself raises what is not of class JQ.
    header = CONTRACTS.by_name[name].header
    possible = {error.sqlstate for error in CONTRACTS.possible(name)}
    assert not {s for s in header.sqlstates - possible if s.startswith("JQ")}
    assert not header.never - {e.code for e in CONTRACTS.reached(name)}, "stale: Never"
