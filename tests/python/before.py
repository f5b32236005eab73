"""Settings before a test imports jobq: its generated modules, and compiled modules that are kept.

Containers often set PYTHONDONTWRITEBYTECODE. Then each of the hundreds of processes that tests
start would compile all that it imports, for several seconds.
"""

import os
import runpy
import sys
from pathlib import Path

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
runpy.run_path(str(Path(__file__).resolve().parents[2] / "python" / "generate.py"))["update"]()
