"""The conformance suite: checks a program in any language against docs/protocol.md.

`jobq conformance -- COMMAND` starts the program, exchanges JSON lines with it, and causes difficult
situations on a private server: see docs/conformance.md. The scenarios are in ``scenarios/``.
"""

from jobq_conformance.suite import run
from jobq_conformance.vocabulary import LEVELS

__all__ = ["LEVELS", "run"]
