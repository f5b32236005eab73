"""The conformance suite: checks a program in any language against docs/protocol.md.

`jobq conformance -- COMMAND` starts the program, exchanges JSON lines with it, and causes difficult
situations on a private server: see docs/contributing/conformance.md. ``scenarios/`` has them.
"""

from jobq_conformance.suite import run
from jobq_conformance.vocabulary import LEVELS

__all__ = ["LEVELS", "run"]
