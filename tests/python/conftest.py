"""Private PostgreSQL servers, and fresh databases with jobq in them.

A test that takes `database` (a URL) or `connect` runs on the version of --pg. What depends on
the server is marked `oldest_version`: `make prove` runs it on PostgreSQL 15 besides, and so does
`make test` if the mark says `is_usual`. Servers start when first needed and stop with pytest, on
Ctrl-C and SIGTERM too. They and all temporary files lie in memory where there is enough of it.

With `-n 3` three processes of pytest-xdist run tests side by side, each with servers of its own.
"""

from __future__ import annotations

import multiprocessing.util
import os
import shutil
import signal
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import before  # noqa: F401 - before jobq is imported
import chance
import deadline
import history
import psycopg
import pytest
from keeper import keeping
from replay import replay

from servers import OLDEST_VERSION, Cluster, copy_project

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import FrameType

    Connection = psycopg.Connection[tuple[Any, ...]]

CHANCE = pytest.StashKey[str | None]()
DEADLINE = pytest.StashKey[deadline.Deadline]()
LAST = ("~",)
"""After the names of all groups."""
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 4 * 2**30


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
    config.stash[CHANCE] = chance.settle()
    config.stash[DEADLINE] = deadline.Deadline()
    if not hasattr(config, "workerinput") and has_room_in_memory():
        files = ExitStack()
        files.enter_context(kept_in_memory())
        config.add_cleanup(files.close)

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def has_room_in_memory() -> bool:
    """Tell whether there is a file system in memory with room, where programs may run."""
    if not MEMORY.is_dir() or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(MEMORY).free > MEMORY_NEEDED


@contextmanager
def kept_in_memory() -> Iterator[None]:
    """Let the tests, and all that they start, keep temporary files in memory.

    A third of what many of them cost is the disk's file system otherwise.
    """
    multiprocessing.util.get_temp_dir()  # elsewhere, because multiprocessing removes it later
    folder = Path(tempfile.mkdtemp(prefix="jobq-", dir=MEMORY))
    folder.chmod(0o755)
    with keeping(servers=folder, files=folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.stash[CHANCE] and terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"the same again: {config.stash[CHANCE]}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pg" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.getoption("--pg")
    versions = [pytest.param(chosen, id=f"pg{chosen}")]
    marker = metafunc.definition.get_closest_marker("oldest_version")
    if marker and chosen != OLDEST_VERSION:
        marks = () if marker.kwargs.get("is_usual") else pytest.mark.prove
        versions.append(pytest.param(OLDEST_VERSION, id=f"pg{OLDEST_VERSION}", marks=marks))
    metafunc.parametrize("pg", versions, scope="session")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Keep the tests of a group together, so that what they share is made once.

    The tests of an older server are a group. Groups go first, then what is long, so that no
    process waits for another in the end. Marks are read by pytest-xdist; then pytest itself sorts
    by parameters, which mixes groups.
    """
    for item in items:
        call = getattr(item, "callspec", None)
        version = call and call.params.get("pg")
        if version not in (None, config.getoption("--pg")):
            item.add_marker(pytest.mark.xdist_group(f"pg{version}"))
    yield
    items.sort(
        key=lambda item: (
            min((mark.args for mark in item.iter_markers("xdist_group")), default=LAST),
            item.get_closest_marker("long") is None,
        )
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    with item.config.stash[DEADLINE].limit(f"setup of {item.nodeid}", deadline.limit_of(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with item.config.stash[DEADLINE].limit(item.nodeid, deadline.limit_of(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    with item.config.stash[DEADLINE].limit(f"teardown of {item.nodeid}", deadline.limit_of(item)):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def servers_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where servers keep their data.

    What tests have started ends with this fixture at the latest, even if it never ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="servers-"))
    with keeping(servers=folder, files=tmp_path_factory.getbasetemp()):
        yield folder


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the Sqitch project as sql/ now makes it, the same for all tests."""
    return copy_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session")
def clusters(
    servers_folder: Path,
    project: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[str], Cluster]]:
    """A function from a version to its running cluster."""
    isolation = request.config.getoption("--isolation")
    running: dict[str, Cluster] = {}
    with ExitStack() as stack:

        def cluster(version: str) -> Cluster:
            if version not in running:
                started = Cluster.started(
                    version, servers_folder / f"pg{version}", project, isolation
                )
                running[version] = stack.enter_context(started)
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
def replayed(database: str) -> Iterator[None]:
    """Record what the test commits, and replay it against the specification at the end."""
    history.record(database)
    yield
    rejected = replay(database).rejected
    history.forget(database)
    assert not rejected, "\n".join(rejected[:20])


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
