"""The stage: a private server, and what is done to it behind the program's back."""

from __future__ import annotations

import os
import secrets
import threading
import time
import tomllib
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import psycopg

from jobq.client import Client
from jobq_embedded import Server
from jobq_operations.deploy import deploy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LeftOut", "NotSeenError", "Stage", "until"]

HERE: Final = Path(__file__).parent
SQL: Final[dict[str, str]] = tomllib.loads((HERE / "stage.toml").read_text())
SETTINGS: Final = {"fsync": "off", "full_page_writes": "off", "timezone": "UTC"}
LOOK: Final = 0.03


class NotSeenError(AssertionError):
    """What a scenario waits for did not come."""


class LeftOut(Exception):  # noqa: N818 - no error, but a reason
    """A scenario cannot be tried here; the message says why."""


def until(look: Callable[[], Any], seconds: float, what: str) -> None:
    """Wait until something is so.

    Raises:
        NotSeenError: it was not so in time.
    """
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            raise NotSeenError(what)
        time.sleep(LOOK)


class Stage:
    """A private PostgreSQL with jobq in it, stopped at the end.

    Args:
        folder: where its data lie.
        patience: seconds to wait for anything.

    Attributes:
        client: the suite's own, a superuser's.
        url: of the database, as the program logs in.
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
            deploy(self._server.url)
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
        """The database's URL for the program: a producer and a worker, and nothing else."""
        password = f"conformance:{self._password}@"
        return f"postgresql://{password}127.0.0.1:{self._server.port}/postgres"

    # ---- what is done

    def do(self, name: str, **values: object) -> list[Any]:
        """Run a statement of stage.toml; return the rows of the last one that has any."""
        rows: list[Any] = []
        cursor = self._connection.execute(SQL[name].format(**values))
        while True:
            if cursor.description is not None:
                rows = cursor.fetchall()
            if not cursor.nextset():
                return rows

    def value(self, name: str, **values: object) -> Any:  # noqa: ANN401 - whatever is asked for
        """Return the one value of a statement of stage.toml, or None."""
        rows = self.do(name, **values)
        return rows[0][0] if rows else None

    def hold(self, job_id: str) -> None:
        """Have another transaction hold a job's row, until `let_go`."""
        other = psycopg.connect(self._server.url)
        self._held.callback(other.close)
        other.execute(SQL["hold"].format(job_id=job_id))

    def let_go(self) -> None:
        """End all transactions that hold something."""
        self._held.close()

    def hang(self) -> None:
        """Have the program's enqueues and completions hang, done but not confirmed.

        Returns when they do. All else goes on, so that none of it hangs in their stead.
        """
        self.do("hang")
        self.do("reload")
        probing = threading.Thread(target=self._probe, daemon=True)
        probing.start()
        until(lambda: self.value("is_probe_hanging"), self._patience, "commits do not hang")
        self.do("end_probe")
        probing.join(self._patience)

    def _probe(self) -> None:
        """Commit again and again, until that hangs and is ended."""
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(self._server.url, autocommit=True, application_name="probe") as probe,
        ):
            while True:
                probe.execute(SQL["probe"])

    def unhang(self) -> None:
        """Let commits be confirmed again, if they are not."""
        self.do("unhang")
        self.do("reload")

    def restart(self, clock: str = "") -> None:
        """Restart the server, as if it had crashed; ``clock`` sets its clock wrong: ``+3600``."""
        self._close()
        self._server.stop()
        with _wrong_clock(clock):
            self._server.start()
        self._offset = clock
        self._connect()

    def clear(self) -> None:
        """Make the stage ready for another scenario: no jobs, the right time, no disturbance."""
        self.let_go()
        self.do("clear")
        if self._offset:
            self.restart()

    # ---- the suite's own connections

    def _connect(self) -> None:
        self._connection = psycopg.connect(
            self._server.url,
            autocommit=True,
            # A statement that waits for a lock of the program's fails its scenario.
            options=f"-c synchronous_commit=local -c statement_timeout={self._patience:.0f}s",
        )
        self.client = Client(self._connection)

    def _close(self) -> None:
        self.let_go()
        self._connection.close()


@contextmanager
def _wrong_clock(offset: str) -> Iterator[None]:
    """Have programs that are started meanwhile see a clock that is wrong.

    Raises:
        LeftOut: faketime is not installed.
    """
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
