"""Servers, databases, agents and worker processes of a benchmark run."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

import psycopg
from psycopg import sql

from jobq_embedded import Server, bin_dirs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from systems import System

HERE = Path(__file__).resolve().parent
SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "8GB", "max_connections": "200"}
TICKS = os.sysconf("SC_CLK_TCK")


class AgentError(RuntimeError):
    """An agent failed or took too long; the message is for the report."""


@dataclass
class Rig:
    """Starts what is needed, once, and stops it in the end.

    Args:
        peers: the folder of the peers' environments.
    """

    peers: Path
    versions: dict[str, str] = field(default_factory=dict)
    _servers: dict[str, Server] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="jobq-peers-")))
        self.folder.chmod(0o755)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def server(self, version: str) -> Server:
        """Return the running server of a major version."""
        if version not in self._servers:
            server = Server(self.folder / version, bin_dir=bin_dirs()[version], settings=SETTINGS)
            self._servers[version] = self._stack.enter_context(server)
        return self._servers[version]

    def admin(self, version: str, statement: str, *names: str) -> list[tuple[Any, ...]]:
        """Run a statement in the database that is nobody's."""
        with psycopg.connect(self.server(version).url, autocommit=True) as connection:
            cursor = connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self, system: System) -> Iterator[str]:
        """Make a fresh database with a system in it, yield its URL, and drop it."""
        version, template = system.postgres, self._template(system)
        name = f"bench_{next(self._numbers)}"
        self.admin(version, "create database {} template {}", name, template)
        self.admin(version, "checkpoint")
        try:
            yield self.server(version).url_of(name)
        finally:
            self.admin(version, "drop database {} with (force)", name)

    def _template(self, system: System) -> str:
        """Return the database that a system has been installed into, once."""
        template = f"template_{system.agent.partition('.')[0]}"
        if system.name in self.versions:
            return template
        self.admin(system.postgres, "create database {}", template)
        try:
            url = self.server(system.postgres).url_of(template)
            self.versions[system.name] = self.ask(system, "install", url)["version"]
        except AgentError:
            self.admin(system.postgres, "drop database {} with (force)", template)
            raise
        return template

    def ask(
        self,
        system: System,
        verb: str,
        url: str,
        *numbers: float,
        notes: Path | None = None,
        patience: float = 60,
    ) -> Any:
        """Have an agent do something and return its answer.

        Args:
            system: whose agent.
            verb: what to do.
            url: the database.
            numbers: the verb's arguments.
            notes: the file that the workers write to.
            patience: seconds until it is given up.

        Raises:
            AgentError: it failed, or was given up.
        """
        command = [*self._command(system), verb, url, *map(str, numbers)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                cwd=self._folder(system),
                env=self._environment(notes),
                timeout=patience,
            )
        except subprocess.TimeoutExpired:
            raise AgentError(f"{verb}: no answer in {patience:.0f} s") from None
        if done.returncode != 0:
            words = done.stderr.strip().splitlines() or ["no message"]
            raise AgentError(f"{verb}: {words[-1][:200]}")
        try:
            return json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError) as error:
            raise AgentError(f"{verb}: no answer that is JSON: {error}") from error

    @contextmanager
    def team(self, system: System, url: str, workers: int) -> Iterator[Team]:
        """Start worker processes, ready before the gate; stop them in the end."""
        team = Team(self.folder / f"gate_{next(self._numbers)}")
        environment = {**self._environment(team.notes), "GATE": str(team.gate)}
        with team.log.open("wb") as log:
            team.processes = [
                subprocess.Popen(
                    [*self._command(system), "work", url],
                    cwd=self._folder(system),
                    env=environment,
                    stdout=log,
                    stderr=log,
                )
                for _ in range(workers)
            ]
            try:
                team.wait_until_ready()
                yield team
            finally:
                team.stop()

    def cpu(self, version: str, without: Sequence[int] = ()) -> float:
        """Return the seconds of CPU that a server has used, dead processes included.

        Args:
            version: the server's major version.
            without: backends that belong to the harness.
        """
        folder = self.server(version).data_dir / "cluster"
        postmaster = int((folder / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        living = sum(cpu_of(int(pid)) for pid in children if int(pid) not in without)
        return living + cpu_of(postmaster)

    def _command(self, system: System) -> list[str]:
        agent = HERE / "agents" / system.agent
        if system.environment == "product":
            return [sys.executable, str(agent)]
        if system.environment == "python":
            return [str(self.peers / "venv" / "bin" / "python"), str(agent)]
        return [node(self.peers), system.agent]

    def _folder(self, system: System) -> Path:
        return self.peers / "node" if system.environment == "node" else self.folder

    def _environment(self, notes: Path | None) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "DATABASE"))}
        return {**clean, "NOTES": str(notes)}


def node(peers: Path) -> str:
    """Return the program Node.js, the one from the packages where there is one."""
    found = sorted((peers / "node" / "node_modules").glob("node-*/bin/node"))
    return str(found[0]) if found else (shutil.which("node") or "node")


@dataclass
class Team:
    """Worker processes, and what their handlers have noted.

    Attributes:
        gate: the path that they wait for.
        processes: the workers.
    """

    gate: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _read: int = field(default=0, init=False)
    _counts: dict[str, int] = field(default_factory=dict, init=False)
    _steps: list[tuple[float, int]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.notes = Path(f"{self.gate}.notes")
        self.notes.touch()
        self.log = Path(f"{self.gate}.log")

    def wait_until_ready(self, patience: float = 60) -> None:
        """Return when every worker waits at the gate.

        Raises:
            AgentError: a worker has ended, or they take too long.
        """
        deadline = time.monotonic() + patience
        while not all(Path(f"{self.gate}.{p.pid}").exists() for p in self.processes):
            self.check()
            if time.monotonic() > deadline:
                raise AgentError("work: the workers do not start")
            time.sleep(0.01)

    def go(self) -> None:
        """Open the gate."""
        self.gate.touch()

    def check(self) -> None:
        """Complain when a worker has ended by itself."""
        for process in self.processes:
            if process.poll() is not None:
                words = self.log.read_text(errors="replace").strip().splitlines() or ["no message"]
                raise AgentError(f"work: a worker has ended: {words[-1][:200]}")

    def progress(self) -> list[tuple[float, int]]:
        """Return how many jobs had been started in all, at each noted time."""
        with self.notes.open() as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole)
        noted = [line.split() for line in whole.splitlines()]
        for pid, count, moment in sorted(noted, key=lambda note: float(note[2])):
            self._counts[pid] = int(count)
            self._steps.append((float(moment), sum(self._counts.values())))
        return self._steps

    def started(self) -> dict[int, float]:
        """Return when each stamped job started first."""
        moments: dict[int, float] = {}
        for line in self.notes.read_text().splitlines():
            number, moment = line.split()
            moments.setdefault(int(number), float(moment))
        return moments

    def cpu(self) -> float:
        """Return the seconds of CPU that the workers have used."""
        return sum(cpu_of(process.pid) for process in self.processes)

    def stop(self) -> None:
        """Stop the workers, by force those that do not stop by themselves."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU of a process and of its children that have ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, text.rpartition(")")[2].split()[11:15])) / TICKS
