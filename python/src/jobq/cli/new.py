"""`jobq new`: a project that runs."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import click

from jobq.cli.terminal import say

__all__ = ["new"]

# What the template calls the project, and without their dots what is hidden.
PLACEHOLDER = "myapp"
HIDDEN = ("github", "gitignore")


def _checked(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    if name.isidentifier() and name.islower():
        return name
    raise click.BadParameter("take lower-case letters, digits and _, such as my_app")


@click.command()
@click.argument("name", callback=_checked)
def new(name: str) -> None:
    """Make a project NAME here that runs: handlers, tests, compose file and CI."""
    folder = Path(name)
    if folder.exists():
        raise click.ClickException(f"{folder} is there already: choose another name")
    with as_file(files("jobq") / "template") as template:
        for source in sorted(template.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                target = folder / _path(source.relative_to(template), name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(source.read_text().replace(PLACEHOLDER, name))
    say(f"made {folder}/; its README.md has the next command")


def _path(path: Path, name: str) -> Path:
    """Return where a file of the template goes in a project."""
    parts = [f".{part}" if part in HIDDEN else part for part in path.parts]
    return Path(*(part.replace(PLACEHOLDER, name) for part in parts))
