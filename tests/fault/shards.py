"""Two shards with a router before them: one is killed, fails over, or the router is."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from replicas import DEBIAN_15, Replicas

from jobq_embedded import Server, ServerError
from jobq_sharding.router import init

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rig import Rig

# Who asks the shards: the router does with one password, the servers have one each.
LOGIN = {"user": "fault", "password": "fault"}
MAPPING = (
    "create user mapping for current_user server jobq options (user 'fault', password 'fault')"
)


def shard_killed(rig: Rig) -> None:
    """SIGKILL for the postmaster of one of two shards, and a new start."""
    other = Server(
        rig.folder / f"{rig.name}-shard", rig.server.version, settings=rig.server.settings
    )
    with routed(rig, other):
        rig.every(1.0, 2.0, killing(rig, other))


def router_killed(rig: Rig) -> None:
    """SIGKILL for the router's postmaster, and a new start: workers do not need it."""
    other = Server(
        rig.folder / f"{rig.name}-shard", rig.server.version, settings=rig.server.settings
    )
    with routed(rig, other) as router:
        rig.every(1.0, 2.0, killing(rig, router))


def shard_fails_over(rig: Rig) -> None:
    """SIGKILL for the primary of a shard, and its standby takes over."""
    settings = {k: v for k, v in rig.server.settings.items() if k != "max_notify_queue_pages"}
    folder = rig.folder / f"{rig.name}-replicas"
    folder.mkdir(mode=0o755)
    replicas = Replicas(rig, folder, settings)
    with routed(rig, replicas):

        def kill() -> None:
            replicas.kill_primary()
            rig.faults += 1
            replicas.fail_over()

        rig.every(1.0, 2.0, kill)


def killing(rig: Rig, server: Server) -> Callable[[], None]:
    """Return what kills a server and starts it again."""

    def kill() -> None:
        pid_file = server.data_dir / "cluster" / "postmaster.pid"
        pid = int(pid_file.read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        rig.faults += 1
        rig.wait(lambda: not Path(f"/proc/{pid}").exists(), "the server does not die")

        def starts() -> bool:
            try:
                server.start()
            except ServerError:  # what the crash left behind needs a moment to go
                return False
            return True

        rig.wait(starts, "the server does not start again")

    return kill


@contextmanager
def routed(rig: Rig, other: Server | Replicas) -> Iterator[Server]:
    """Put a rig on two shards, its producers on a router; check in the end, and stop all."""
    rig.is_cut_off = True
    router = Server(rig.folder / f"{rig.name}-router", "15", DEBIAN_15)
    with ExitStack() as stack:
        for server in (other, router):
            server.start()
            stack.callback(server.stop)
        stack.callback(rig.stop)
        rig.shards = [made(rig, server) for server in (rig.server, other)]
        init(router.url, rig.shards)
        with psycopg.connect(router.url, autocommit=True) as connection:
            connection.execute(MAPPING)
        rig.worker_url = "\n".join(rig.shards)
        rig.producer_url = router.url
        rig.start()
        yield router
        rig.outcome = rig.check()


def made(rig: Rig, server: Server | Replicas) -> str:
    """Make a shard's database; return its URL for who asks it."""
    with psycopg.connect(server.url, autocommit=True) as admin:
        if not admin.execute("select 1 from pg_roles where rolname = 'fault'").fetchone():
            admin.execute("create role fault login superuser password 'fault'")
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(rig.name)))
    rig.database_url = make_conninfo(server.url_of(rig.name), **LOGIN)
    rig.load()
    rig.configure()
    return url_of(rig.database_url)


def url_of(conninfo: str) -> str:
    """Return a URL, which has no spaces in it."""
    given = conninfo_to_dict(conninfo)
    hosts = str(given["host"]).split(",")
    ports = str(given["port"]).split(",")
    places = ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=True))
    wants = given.get("target_session_attrs", "any")
    return (
        f"postgresql://{given['user']}:{given['password']}@{places}/{given['dbname']}"
        f"?target_session_attrs={wants}"
    )
