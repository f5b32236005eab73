"""The peers' own environments: pinned versions, apart from the product's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from systems import System

HERE = Path(__file__).resolve().parent


class MissingError(RuntimeError):
    """An environment cannot be made here; the message says why."""


def make(peers: Path, system: System) -> None:
    """Make a system's environment, or find it made of the same versions.

    Args:
        peers: the folder of the environments.
        system: for which.

    Raises:
        MissingError: it cannot be made, or the system's server is not installed.
    """
    if system.requires is not None and not system.requires.is_file():
        raise MissingError(f"{system.requires} is missing: {system.remedy}")
    if system.environment == "python":
        _python(peers / "venv")
    elif system.environment == "node":
        _node(peers / "node")


def _python(venv: Path) -> None:
    wanted = HERE / "requirements.txt"
    if _is_made(venv, wanted):
        return
    print(f"installing {wanted.name} into {venv}", flush=True)
    if not (venv / "bin" / "pip").exists():
        _run(sys.executable, "-m", "venv", str(venv))
    pip = str(venv / "bin" / "pip")
    _run(pip, "install", "-q", "--disable-pip-version-check", "-r", str(wanted))
    _set_made(venv, wanted)


def _node(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for agent in (HERE / "agents").glob("*.mjs"):
        shutil.copy(agent, folder)
    wanted = HERE / "package-lock.json"
    if _is_made(folder, wanted):
        return
    if shutil.which("npm") is None:
        raise MissingError("Node.js with npm is not installed")
    print(f"installing {wanted.name} into {folder}", flush=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
    _set_made(folder, wanted)


def _is_made(folder: Path, wanted: Path) -> bool:
    note = folder / f"installed-{wanted.name}"
    return note.is_file() and note.read_text() == wanted.read_text()


def _set_made(folder: Path, wanted: Path) -> None:
    shutil.copy(wanted, folder / f"installed-{wanted.name}")


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise MissingError(f"{Path(command[0]).name} failed: {words[-1][:200]}")
