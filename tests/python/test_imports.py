"""What a worker process does not import until it needs it: libraries are most of its memory."""

from __future__ import annotations

import subprocess
import sys

SHOW = """
import sys
import jobq_cli, jobq_delivery, jobq.worker
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_a_worker_imports_no_library_of_deliveries_and_no_server() -> None:
    """Of 54 MB that a worker takes, these would be another 20."""
    shown = subprocess.run([sys.executable, "-c", SHOW], check=True, capture_output=True, text=True)
    imported = set(shown.stdout.split())
    assert {"jobq", "psycopg", "msgspec"} <= imported
    assert not {"cryptography", "httpx", "jsonschema", "starlette", "uvicorn"} & imported
