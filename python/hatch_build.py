"""Write the generated modules, and carry the rendered Sqitch project inside the package."""

import atexit
import runpy
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SqitchProject(BuildHookInterface[Any]):
    """Put the project's files into wheels (jobq/sqitch/) and sdists (sqitch/)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; an editable install reads the project of the checkout instead."""
        project = Path(self.root) / "sqitch"  # of an sdist, which has the generated modules too
        if not project.is_dir():
            checkout = Path(self.root).parent
            runpy.run_path(str(checkout / "python" / "generate.py"))["update"]()
        if version == "editable":
            return
        if not project.is_dir():
            project = Path(mkdtemp())
            atexit.register(shutil.rmtree, project)
            runpy.run_path(str(checkout / "sql" / "render.py"))["export"](checkout, project)
        target = "sqitch" if self.target_name == "sdist" else "jobq/sqitch"
        build_data["force_include"][str(project)] = target
