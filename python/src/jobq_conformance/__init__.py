"""The conformance suite: whether a program in any language keeps to docs/protocol.md.

`jobq conformance -- COMMAND` starts the program, talks to it by JSON lines, and brings about what
is hard on a private server: docs/conformance.md. The scenarios lie in ``scenarios/``.
"""

from jobq_conformance.suite import run
from jobq_conformance.vocabulary import LEVELS

__all__ = ["LEVELS", "run"]
