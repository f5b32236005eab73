"""Write the generated modules of jobq, if their sources are newer, before a test imports them."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "python" / "generate.py"))["update"]()
