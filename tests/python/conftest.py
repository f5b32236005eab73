"""Private PostgreSQL servers, and fresh databases with jobq in them.

A test that takes `database` (a URL) or `connect` runs on the version of --pg; marked
`every_version`, as what depends on the server is, on PostgreSQL 15, 16 and 18. Servers start
when first needed and stop with pytest, on Ctrl-C and SIGTERM too.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from servers import VERSIONS, Cluster, copy_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

    Connection = psycopg.Connection[tuple[Any, ...]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pg",
        default="18",
        help="the PostgreSQL version for tests that need only one (default: 18)",
    )
    parser.addoption(
        "--isolation",
        default="read committed",
        choices=("read committed", "repeatable read", "serializable"),
        help="the servers' default_transaction_isolation",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGTERM end the run as Ctrl-C does, so that no server outlives it.

    All that tests talk to is on this machine, and made by them: neither a proxy nor the
    caller's settings for PostgreSQL's clients have a part in it.
    """
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pg" not in metafunc.fixturenames:
        return
    every = metafunc.definition.get_closest_marker("every_version")
    chosen = list(VERSIONS) if every else [metafunc.config.getoption("--pg")]
    ids = [f"pg{version}" for version in chosen]
    metafunc.parametrize("pg", chosen, ids=ids, scope="session")


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the Sqitch project as sql/ now makes it, the same for all tests."""
    return copy_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session")
def clusters(
    tmp_path_factory: pytest.TempPathFactory,
    project: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[str], Cluster]]:
    """A function from a version to its running cluster."""
    isolation = request.config.getoption("--isolation")
    running: dict[str, Cluster] = {}
    with ExitStack() as stack:

        def cluster(version: str) -> Cluster:
            if version not in running:
                folder = tmp_path_factory.mktemp(f"pg{version}")
                running[version] = stack.enter_context(
                    Cluster.started(version, folder, project, isolation)
                )
            return running[version]

        yield cluster


@pytest.fixture(scope="session")
def cluster(pg: str, clusters: Callable[[str], Cluster]) -> Cluster:
    """The running cluster of the test's PostgreSQL version."""
    return clusters(pg)


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    """The superuser's URL of a fresh database with jobq in it."""
    with cluster.database() as url:
        yield url


@pytest.fixture
def empty_database(cluster: Cluster) -> Iterator[str]:
    """The superuser's URL of a fresh database without jobq."""
    with cluster.database(template="template0") as url:
        yield url


class PatientConnection(psycopg.Connection[Any]):
    """A connection that repeats a call, as every caller must at the stricter levels.

    A call that belongs to a transaction is not repeated: the whole of that would have to be.
    """

    def execute(self, *arguments: Any, **options: Any) -> psycopg.Cursor[Any]:
        is_whole = self.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        for _ in range(1000 if is_whole else 0):
            with suppress(psycopg.errors.SerializationFailure):
                return super().execute(*arguments, **options)
        return super().execute(*arguments, **options)


@pytest.fixture
def connect(database: str) -> Iterator[Callable[[], Connection]]:
    """A function that opens another autocommit connection to `database`."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(PatientConnection.connect(database, autocommit=True))
