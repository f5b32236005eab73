"""Write docs/reference.md, tables elsewhere and jobq.error_table from a database.

Usage: python docs/reference.py [--check] [DATABASE_URL]

Without a URL it starts a private PostgreSQL and installs jobq.sql there.

What they say comes from the comments in the database, the headers of sql/ and docs/glossary.toml.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psycopg

from jobq.embedded import Server

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "sql"))

from chapters import Reference, Unexplained, table  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_DAY = """
    enqueue enqueue_many cancel get_job explain redrive claim heartbeat complete fail
    release maintain queue_stats health put_kind create_schedule
""".split()
ROLES = ("producer", "worker", "operator", "reader")
ERRORS = "select sqlstate, code, http_status, message, hint from jobq.error order by 1, 2"

ROUTES = """
    select function_name, class, case class when 'all' then '' else detail end
    from jobq_private.route order by 1
"""


def error_table(errors: list[tuple[str, str, int, str, str]]) -> str:
    """Render the errors as a module of Python's."""
    rows = "".join(
        f'    "{code}": ErrorRow(\n        "{state}",\n        {status},\n'
        f"        {json.dumps(message)},\n    ),\n"
        for state, code, status, message, _ in errors
    )
    return f'''"""The errors that the database raises, as `make docs` reads them in jobq.error."""

from typing import Final, NamedTuple

__all__ = ["ERROR_TABLE", "ErrorRow"]


class ErrorRow(NamedTuple):
    """One error of the database: its SQLSTATE, its HTTP status and its fixed message."""

    sqlstate: str
    http_status: int
    message: str


ERROR_TABLE: Final = {{
{rows}}}
"""By symbolic code, as the database names it in the error's constraint."""
'''


def route_table(routes: list[tuple[str, str, str]]) -> str:
    """Render the routes as a module of Python's."""
    rows = "".join(
        f'    "{name}": (\n        "{way}",\n        {json.dumps(detail)},\n    ),\n'
        for name, way, detail in routes
    )
    return f'''"""How each function answers in a cluster, as `make docs` reads it."""

from typing import Final

__all__ = ["ROUTES"]

ROUTES: Final = {{
{rows}}}
"""By the function's name: its class and what that needs to know."""
'''


def between(path: str, name: str, text: str) -> str:
    """Return a page with a text in place of what stands between its markers."""
    begin, end = f"<!-- {name}: make docs -->\n", "<!-- end -->"
    head, _, rest = (ROOT / path).read_text().partition(begin)
    return f"{head}{begin}{text}\n{end}{rest.partition(end)[2]}"


def render(connection: psycopg.Connection[Any]) -> dict[Path, str]:
    """Return the text of each generated page, by path."""
    errors = connection.execute(ERRORS).fetchall()
    routes = connection.execute(ROUTES).fetchall()
    reference = Reference(connection)
    functions = [f for f in reference.functions.values() if f.schema == "jobq"]
    of_first_day = [f for name in FIRST_DAY for f in functions if f.name == name]
    names = table(
        ("function", "meaning"),
        [(f"[`{f.name}`](docs/reference.md#{f.name})", f.comment) for f in of_first_day],
    )

    roles_of = {f.name: set((f.roles or "").split(", ")) for f in functions}
    for held in roles_of.values():
        if "jobq_reader" in held:
            held.add("jobq_operator")
    matrix = table(
        ("function", *ROLES),
        [
            (f"`{name}`", *("yes" if f"jobq_{role}" in held else "" for role in ROLES))
            for name, held in roles_of.items()
        ],
    )
    listed = table(
        ("SQLSTATE", "code", "HTTP", "message", "hint"),
        [(f"`{s}`", f"`{c}`", str(h), m, hint) for s, c, h, m, hint in errors],
    )
    return {
        ROOT / "README.md": between("README.md", "functions", names),
        ROOT / "docs/reference.md": reference.page(listed),
        ROOT / "docs/security.md": between("docs/security.md", "matrix", matrix),
        ROOT / "python/src/jobq/error_table.py": error_table(errors),
        ROOT / "python/src/jobq/route_table.py": route_table(routes),
    }


@contextmanager
def installed() -> Iterator[str]:
    """Run a private PostgreSQL with jobq in it, and give its URL."""
    with TemporaryDirectory() as folder, Server(Path(folder) / "data", durable=False) as server:
        environment = {**os.environ, "PGOPTIONS": "--client-min-messages=warning"}
        command = ["psql", "-Xq", "-d", server.url, "-f", str(ROOT / "jobq.sql")]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        yield server.url


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check say which of them are stale."""
    urls = [a for a in arguments if a != "--check"]
    with ExitStack() as stack:
        url = urls[0] if urls else stack.enter_context(installed())
        try:
            pages = render(stack.enter_context(psycopg.connect(url)))
        except Unexplained as error:
            print(f"{error}: say it in the header, or in docs/glossary.toml", file=sys.stderr)
            return 1
    stale = [p for p, text in pages.items() if not p.exists() or p.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run make docs", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
