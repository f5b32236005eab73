"""Which part of the code may import which: what is below knows nothing of what is above."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final

import pytest

from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE: Final = ROOT / "python" / "src"

# Each imports only what stands before it, as types too.
CORE: Final = """
    version models errors redaction tracing database calls registry client worker
""".split()
PACKAGES: Final = """
    jobq jobq_embedded jobq_operations jobq_sharding jobq_testing jobq_delivery jobq_http
    jobq_console jobq_mcp jobq_examples jobq_conformance jobq_cli jobq_contrib
""".split()
MOST_IN_CORE: Final = 12


def name_of(path: Path) -> str:
    """The name of a module by its file."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    return {
        name_of(path): path for path in SOURCE.rglob("*.py") if "template" not in path.parent.parts
    }


def imported(name: str, path: Path) -> Iterator[str]:
    """The modules of ours that a module imports, wherever it does, also for types alone."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} has a relative import"
            of = node.module or ""
            found = [f if (f := f"{of}.{a.name}") in modules() else of for a in node.names]
        else:
            continue
        yield from (each for each in found if each in modules() and each != name)


@cache
def imports() -> dict[str, set[str]]:
    return {name: set(imported(name, path)) for name, path in modules().items()}


def part_of(name: str) -> str:
    """The part of the core, or the package beside it, that a module belongs to."""
    package, _, rest = name.partition(".")
    return rest.partition(".")[0] or "jobq" if package == "jobq" else package


def test_no_part_imports_one_above_it() -> None:
    order = {part: n for n, part in enumerate((*CORE, *PACKAGES))}
    wrong = {
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in others
        if order[part_of(name)] < order[part_of(other)]
    }
    assert wrong == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))


def test_the_core_is_seen_at_a_glance() -> None:
    found = {path.stem for path in (SOURCE / "jobq").iterdir() if path.suffix == ".py"}
    folders = {path.name for path in (SOURCE / "jobq").iterdir() if (path / "__init__.py").exists()}
    assert found | folders == {"__init__", *CORE}
    assert len(CORE) < MOST_IN_CORE
