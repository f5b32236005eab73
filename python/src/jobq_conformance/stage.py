"""The stage: a private server, and disturbances of it."""

from __future__ import annotations

import os
import secrets
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

import psycopg

from jobq.client import Client
from jobq_embedded import Server
from jobq_operations.deploy import single_file
from jobq_operations.schema import statements

HERE: Final = Path(__file__).parent
SQL: Final[dict[str, str]] = tomllib.loads((HERE / "stage.toml").read_text())
SETTINGS: Final = {"fsync": "off", "full_page_writes": "off", "timezone": "UTC"}
LOOK: Final = 0.03


class NotSeenError(AssertionError):
    """An expectation of a scenario failed."""


class LeftOut(Exception):  # noqa: N818 - a reason
    """A scenario cannot be run here; the message is the reason."""


def until(look: Callable[[], Any], seconds: float, what: str) -> None:
    """Wait for a condition; NotSeenError if it is not met in time."""
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            raise NotSeenError(what)
        time.sleep(LOOK)


class Stage:
    """A private PostgreSQL with jobq installed, stopped at the end.

    Attributes:
        client: the suite's client, of a superuser.
    """

    def __init__(self, folder: Path, patience: float) -> None:
        self._patience = patience
        self._server = Server(folder / "server", settings=SETTINGS, durable=False)
        self._password = secrets.token_urlsafe(12)
        self._offset = ""
        self._connection: psycopg.Connection[Any]
        self._held = ExitStack()
        self.client: Client

    def __enter__(self) -> Self:
        self._server.start()
        try:
            # A server that is never upgraded needs no record of Sqitch, which `deploy` would make.
            with psycopg.connect(self._server.url) as connection:
                connection.execute(statements(single_file()).encode())
            self._connect()
            self.do("prepare", password=self._password)
        except BaseException:
            self._server.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self._server.stop()

    @property
    def url(self) -> str:
        """The database's URL for the program, with the rights of a producer and a worker."""
        password = f"conformance:{self._password}@"
        return f"postgresql://{password}127.0.0.1:{self._server.port}/postgres"

    # ---- actions

    def do(self, name: str, **values: object) -> list[Any]:
        """Run statements of stage.toml; return the rows of the last one with a result."""
        rows: list[Any] = []
        cursor = self._connection.execute(SQL[name].format(**values))
        while True:
            if cursor.description is not None:
                rows = cursor.fetchall()
            if not cursor.nextset():
                return rows

    def value(self, name: str, **values: object) -> Any:  # noqa: ANN401 - any value
        """Return the one value of a statement of stage.toml, or None."""
        rows = self.do(name, **values)
        return rows[0][0] if rows else None

    def hold(self, job_id: str) -> None:
        """Lock a job's row in another transaction, until `let_go`."""
        other = psycopg.connect(self._server.url)
        self._held.callback(other.close)
        other.execute(SQL["hold"].format(job_id=job_id))

    def let_go(self) -> None:
        """End all transactions that hold locks."""
        self._held.close()

    def hang(self) -> None:
        """Let commits of the program's enqueues and completions hang, done but not confirmed.

        Returns when they do. Other commits do not hang.
        """
        self.do("hang")
        self.do("reload")
        probing = threading.Thread(target=self._probe, daemon=True)
        probing.start()
        until(lambda: self.value("is_probe_hanging"), self._patience, "commits do not hang")
        self.do("end_probe")
        probing.join(self._patience)

    def _probe(self) -> None:
        """Commit repeatedly, until a commit hangs and is ended."""
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(self._server.url, autocommit=True, application_name="probe") as probe,
        ):
            while True:
                probe.execute(SQL["probe"])

    def unhang(self) -> None:
        """Let commits be confirmed again."""
        self.do("unhang")
        self.do("reload")

    def restart(self, clock: str = "") -> None:
        """Restart the server as after a crash; ``clock`` is an offset of its clock: ``+3600``."""
        self._close()
        self._server.stop()
        with _wrong_clock(clock):
            self._server.start()
        self._offset = clock
        self._connect()

    def clear(self) -> None:
        """Prepare for the next scenario: no jobs, the right time, no disturbance."""
        self.let_go()
        self.do("clear")
        if self._offset:
            self.restart()

    # ---- connections of the suite

    def _connect(self) -> None:
        self._connection = psycopg.connect(
            self._server.url,
            autocommit=True,
            # A statement that waits for a lock of the program fails the scenario.
            options=f"-c synchronous_commit=local -c statement_timeout={self._patience:.0f}s",
        )
        self.client = Client(self._connection)

    def _close(self) -> None:
        self.let_go()
        self._connection.close()


@contextmanager
def _wrong_clock(offset: str) -> Iterator[None]:
    """Let programs that are started meanwhile have a wrong clock; LeftOut without faketime."""
    if not offset:
        yield
        return
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        raise LeftOut("faketime is not installed")
    fake = {"LD_PRELOAD": str(library), "FAKETIME": f"{offset}s", "DONT_FAKE_MONOTONIC": "1"}
    before = os.environ.copy()
    os.environ.update(fake)
    try:
        yield
    finally:
        for name in fake:
            os.environ.pop(name)
        os.environ.update({name: before[name] for name in fake if name in before})
