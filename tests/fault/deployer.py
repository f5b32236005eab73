"""Bring a database to the schema of a Sqitch project, as `jobq deploy` does.

Usage: python deployer.py PROJECT URL
"""

from __future__ import annotations

import sys
from pathlib import Path

from jobq_operations import deploy

if __name__ == "__main__":
    project, url = Path(sys.argv[1]), sys.argv[2]
    deploy.project_dir = lambda: project
    deploy.deploy(url, print)
