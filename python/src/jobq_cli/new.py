"""`jobq new`: create a project."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import distribution
from importlib.resources import as_file, files
from keyword import iskeyword
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import click

from jobq_cli.terminal import say

# Placeholders of the template, and files whose names get a leading dot.
PLACEHOLDER = "myapp"
SOURCE = "JOBQ_SOURCE"
HIDDEN = ("github", "gitignore", "dockerignore")


def _checked(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    if name in {"jobq", "tests", *sys.stdlib_module_names} or iskeyword(name):
        raise click.BadParameter(f"{name} has another meaning: choose another name")
    if name.isidentifier() and name.islower():
        return name
    raise click.BadParameter("use lower-case letters, digits and _, such as my_app")


@click.command()
@click.argument("name", callback=_checked)
def new(name: str) -> None:
    """Create the project NAME: handlers, tests, compose file and CI."""
    folder = Path(name)
    if folder.exists():
        raise click.ClickException(f"{folder} already exists: choose another name")
    said = {PLACEHOLDER: name, SOURCE: shlex.quote(_source())}
    with as_file(files("jobq_cli") / "template") as template:
        for source in sorted(template.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                target = folder / _path(source.relative_to(template), name)
                target.parent.mkdir(parents=True, exist_ok=True)
                text = source.read_text()
                for placeholder, value in said.items():
                    text = text.replace(placeholder, value)
                target.write_text(text)
    say(f"created {folder}/; see its README.md for the next step")


def _path(path: Path, name: str) -> Path:
    """Return where a file of the template goes in a project."""
    parts = [f".{part}" if part in HIDDEN else part for part in path.parts]
    return Path(*(part.replace(PLACEHOLDER, name) for part in parts))


def _source() -> str:
    """Return the requirement with which pip installs this jobq again, from the same source."""
    installed = distribution("jobq")
    direct = json.loads(installed.read_text("direct_url.json") or "{}")
    if not direct:
        return f"jobq=={installed.version}"
    url = urlsplit(direct["url"])
    if url.scheme == "file" and "vcs_info" not in direct:
        return url2pathname(url.path)
    source: str = direct["url"]
    if vcs := direct.get("vcs_info"):
        source = f"{vcs['vcs']}+{source}@{vcs['commit_id']}"
    if folder := direct.get("subdirectory"):
        source += f"#subdirectory={folder}"
    return source
