"""All parts of a release have one version."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from http_api import served

from jobq import __version__
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg


def test_the_schema_and_the_clients_have_the_version_of_the_package(
    connect: Callable[[], psycopg.Connection[tuple[str]]],
) -> None:
    [[schema]] = connect().execute("select jobq.version()")
    package = json.loads((ROOT / "clients/typescript/package.json").read_text())
    gem = re.search(r'version = "(.+)"', (ROOT / "clients/ruby/jobq.gemspec").read_text())
    assert gem
    assert {schema, package["version"], gem[1]} == {__version__}


async def test_the_server_says_its_version(database: str) -> None:
    async with served(database) as api:
        answer = await api.ask("GET", "/healthz")
    assert answer.json() == {"status": "ok", "version": __version__}
