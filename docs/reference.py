"""Write docs/reference.md from the comments in a database, the headers of sql/ and glossary.toml.

Usage: python docs/reference.py [DATABASE_URL]

Without a URL it starts a private PostgreSQL and installs jobq there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psycopg

from jobq_embedded import Server
from jobq_http.app import OPERATIONS
from jobq_http.errors import ERRORS as SERVER_ERRORS
from jobq_http.errors import RENAMED

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "sql"))

from chapters import Reference, Unexplained, table  # noqa: E402

from render import single_file  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = ROOT / "docs/reference.md"
ROLES = ("producer", "worker", "operator", "reader")
ERRORS = "select sqlstate, code, http_status, message, hint from jobq.error order by 1, 2"


def render(connection: psycopg.Connection[Any]) -> str:
    """Return the text of the reference."""
    errors = connection.execute(ERRORS).fetchall()
    reference = Reference(connection)
    roles_of = {
        f.name: set((f.roles or "").split(", "))
        for f in reference.functions.values()
        if f.schema != "jobq_http"
    }
    for held in roles_of.values():
        if "jobq_reader" in held:
            held.add("jobq_operator")
    matrix = table(
        ("function", *ROLES),
        [
            (f"[{name}](#{name})", *("yes" if f"jobq_{role}" in held else "" for role in ROLES))
            for name, held in roles_of.items()
        ],
    )
    listed = table(
        ("SQLSTATE", "code", "HTTP", "message", "hint"),
        [(f"`{s}`", f"`{c}`", str(h), m, hint) for s, c, h, m, hint in errors],
    )
    return "\n".join((reference.page(listed, matrix), http_routes(), http_errors()))


def http_routes() -> str:
    """Render the routes of the HTTP API with their scopes."""
    rows = [
        (f"`{o.method} {o.path}`", o.summary.rstrip("."), ", ".join(o.scopes) or "no key")
        for o in sorted(OPERATIONS, key=lambda o: (o.path, o.method))
    ]
    return f"""## HTTP routes

[The HTTP API](http.md) describes them. Any of the scopes allows a request. `/docs` of a server
lists parameters and bodies.

{table(("route", "does", "scopes"), rows)}
"""


def http_errors() -> str:
    """Render the errors of the HTTP server."""
    own = [(f"`{code}`", str(status), text) for code, (status, text) in SERVER_ERRORS.items()]
    renamed = [(f"`{code}`", f"`{name}`") for code, name in RENAMED.items()]
    return f"""## HTTP errors

The server raises these itself:

{table(("code", "HTTP", "message"), own)}

All others are [errors](#errors) of the database. Some have another code over HTTP:

{table(("database", "HTTP"), renamed)}
"""


@contextmanager
def installed() -> Iterator[str]:
    """Run a private PostgreSQL with jobq in it, and give its URL."""
    with TemporaryDirectory() as folder, Server(Path(folder) / "data", durable=False) as server:
        environment = {**os.environ, "PGOPTIONS": "--client-min-messages=warning"}
        command = ["psql", "-Xq", "-d", server.url, "-f", "-"]
        subprocess.run(
            command, input=single_file(ROOT), text=True, check=True, env=environment,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        yield server.url


def main(urls: list[str]) -> int:
    """Write the page."""
    with ExitStack() as stack:
        url = urls[0] if urls else stack.enter_context(installed())
        try:
            text = render(stack.enter_context(psycopg.connect(url)))
        except Unexplained as error:
            print(f"{error}: say it in the header, or in docs/glossary.toml", file=sys.stderr)
            return 1
    if not REFERENCE.exists() or REFERENCE.read_text() != text:
        REFERENCE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
