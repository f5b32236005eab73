"""Carry the Sqitch project, which lies beside python/, inside the package."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROJECT = ("sqitch.plan", "sqitch.conf", "deploy", "revert", "verify", "jobq.sql", "router.sql")


class SqitchProject(BuildHookInterface[Any]):
    """Force the project's files into wheels (jobq/sqitch/) and sdists (sqitch/)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; an editable install reads them from the checkout instead."""
        if version == "editable":
            return
        checkout = Path(self.root).parent
        inside_sdist = Path(self.root) / "sqitch"
        source = inside_sdist if inside_sdist.is_dir() else checkout
        target = "sqitch" if self.target_name == "sdist" else "jobq/sqitch"
        for name in PROJECT:
            build_data["force_include"][str(source / name)] = f"{target}/{name}"
