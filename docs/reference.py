"""Write docs/reference.md, tables elsewhere and jobq.error_table from a database.

Usage: python docs/reference.py [--check] [DATABASE_URL]

Without a URL it starts a private PostgreSQL and installs jobq.sql there.

The descriptions are the comments of the functions and views, so there is one source.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psycopg

from jobq.embedded import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent

FUNCTIONS = """
    select p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
        obj_description(p.oid, 'pg_proc'),
        (select string_agg(r.rolname, ', ' order by r.rolname)
         from aclexplode(p.proacl) as a join pg_roles as r on r.oid = a.grantee
         where r.rolname <> 'jobq_owner')
    from pg_proc as p
    where p.pronamespace = 'jobq'::regnamespace
    order by p.proname, p.oid
"""
VIEWS = """
    select c.relname, obj_description(c.oid, 'pg_class'),
        (select string_agg(a.attname, ', ' order by a.attnum) from pg_attribute as a
         where a.attrelid = c.oid and a.attnum > 0)
    from pg_class as c
    where c.relnamespace = 'jobq'::regnamespace and c.relkind = 'v'
    order by c.relname
"""
ROLES = ("producer", "worker", "operator", "reader")
ERRORS = "select sqlstate, code, http_status, message, hint from jobq.error order by 1, 2"


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Render rows as a Markdown table."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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


def render(connection: psycopg.Connection[Any]) -> dict[Path, str]:
    """Return the text of each generated page, by path."""
    functions = connection.execute(FUNCTIONS).fetchall()
    views = connection.execute(VIEWS).fetchall()
    errors = connection.execute(ERRORS).fetchall()

    names = table(
        ("function", "meaning"),
        [(f"`{name}`", comment) for name, _, _, comment, _ in functions],
    )
    codes = table(
        ("SQLSTATE", "code", "HTTP", "message"),
        [(f"`{s}`", f"`{c}`", str(h), m) for s, c, h, m, _ in errors],
    )
    readme = (ROOT / "README.md").read_text()
    for marker, text in (("functions", names), ("errors", codes)):
        begin, end = f"<!-- {marker}: make docs -->\n", "<!-- end -->"
        head, _, rest = readme.partition(begin)
        readme = f"{head}{begin}{text}\n{end}{rest.partition(end)[2]}"

    roles_of = {name: set((roles or "").split(", ")) for name, _, _, _, roles in functions}
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
    security = (ROOT / "docs/security.md").read_text()
    begin, end = "<!-- matrix: make docs -->\n", "<!-- end -->"
    head, _, rest = security.partition(begin)
    security = f"{head}{begin}{matrix}\n{end}{rest.partition(end)[2]}"

    page = ["# Reference\n\nGenerated from the comments in the database by `make docs`.\n"]
    page.append("## Functions\n")
    for name, arguments, result, comment, roles in functions:
        listed = "".join(f"\n    {a}," for a in re.split(r", (?=\w+ )", arguments) if a)
        page.append(
            f"### {name}\n\n```sql\njobq.{name}({listed.rstrip(',')}\n) → {result}\n```\n\n"
            f"{comment}\n\nMay be called by: {roles or 'jobq_owner'}.\n"
        )
    page.append("## Views\n")
    page.extend(f"### {name}\n\n{comment}\n\nColumns: {cols}.\n" for name, comment, cols in views)
    page.append("## Errors\n")
    page.append(
        table(
            ("SQLSTATE", "code", "HTTP", "message", "hint"),
            [(f"`{s}`", f"`{c}`", str(h), m, hint) for s, c, h, m, hint in errors],
        )
    )
    return {
        ROOT / "README.md": readme,
        ROOT / "docs/reference.md": "\n".join(page) + "\n",
        ROOT / "docs/security.md": security,
        ROOT / "python/src/jobq/error_table.py": error_table(errors),
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
        pages = render(stack.enter_context(psycopg.connect(url)))
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
