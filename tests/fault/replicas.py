"""Failover: a primary with two standbys, of which every commit waits for one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from jobq_embedded import Server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rig import Rig

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
SETTINGS = {
    "synchronous_standby_names": "ANY 1 (node0, node1, node2)",
    "wal_keep_size": "512MB",
    "wal_retrieve_retry_interval": "200ms",
    "wal_receiver_timeout": "5s",
}


ATTACHED = "exists (select from pg_stat_replication where sync_state = 'quorum')"

# All that has come is replayed, and no more comes.
DRAINED = (
    "not exists (select from pg_stat_wal_receiver) and exists (select from pg_stat_activity"
    " where backend_type = 'startup' and wait_event = 'RecoveryRetrieveRetryInterval')"
)


@dataclass
class Replicas:
    """Three servers; the first of the list is the primary."""

    rig: Rig
    folder: Path
    settings: Mapping[str, str]
    nodes: list[Server] = field(default_factory=list)

    @property
    def primary(self) -> Server:
        return self.nodes[0]

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    @property
    def standbys(self) -> list[Server]:
        return self.nodes[1:]

    def url_of(self, database: str) -> str:
        """Return a URL that names all nodes, and asks for the one that takes writes."""
        given = conninfo_to_dict(self.primary.url)
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return (
            f"postgresql://{given['user']}:{given['password']}@{hosts}/{database}"
            "?target_session_attrs=read-write"
        )

    def start(self) -> None:
        """Make the primary and both standbys, and wait until one of these is attached."""
        self.nodes = [self.server(0)]
        self.primary.start()
        for number in (1, 2):
            self.nodes.append(self.clone(number))
        self.wait_for(self.primary, ATTACHED)

    def server(self, number: int, port: int | None = None) -> Server:
        settings = {**self.settings, **SETTINGS, "cluster_name": f"node{number}"}
        return Server(self.folder / f"node{number}", "15", DEBIAN_15, port, settings=settings)

    def clone(self, number: int, port: int | None = None) -> Server:
        """Make a standby of the primary, in place of what lies in its folder."""
        node = self.server(number, port)
        shutil.rmtree(node.data_dir, ignore_errors=True)
        node.data_dir.mkdir(mode=0o700)
        shutil.chown(node.data_dir, "postgres", "postgres")
        subprocess.run(
            ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups",
             str(DEBIAN_15 / "pg_basebackup"), "-R", "-X", "stream", "-c", "fast",
             "--no-sync", "-D", str(node.data_dir / "cluster"), "-d", self.primary.url],
            check=True, capture_output=True, cwd="/",
        )  # fmt: skip
        shutil.copy2(self.primary.data_dir / "password", node.data_dir / "password")
        node.start()
        return node

    def kill_primary(self) -> None:
        """Kill the primary's postmaster; its sessions end by themselves."""
        pid_file = self.primary.data_dir / "cluster" / "postmaster.pid"
        os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)

    def cancel_waits(self) -> None:
        """Take the standbys away, and cancel commits that wait for them.

        Such a commit ends with a warning, and is lost with the primary.
        """
        for node in self.standbys:
            node.stop()
        cancel = "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'"
        with psycopg.connect(self.primary.url, autocommit=True) as connection:
            cancelled = 0
            while cancelled < 10:
                cancelled += len(connection.execute(cancel).fetchall())
        self.kill_primary()
        for node in self.standbys:
            node.start()

    def fail_over(self) -> None:
        """Promote the standby that has received most; the other follows it, the dead anew."""
        for node in self.standbys:
            self.wait_for(node, DRAINED)
        dead = self.primary
        self.nodes = [*sorted(self.standbys, key=received, reverse=True), dead]
        with psycopg.connect(self.primary.url, autocommit=True) as connection:
            connection.execute("select pg_promote()")
        with psycopg.connect(self.standbys[0].url, autocommit=True) as connection:
            upstream = sql.Literal(self.primary.url)
            connection.execute(sql.SQL("alter system set primary_conninfo = {}").format(upstream))
            connection.execute("select pg_reload_conf()")
        self.wait_for(self.primary, ATTACHED)
        self.nodes[2] = self.clone(int(dead.data_dir.name[-1]), dead.port)

    def wait_for(self, node: Server, condition: str) -> None:
        """Wait until a condition in SQL holds on a node."""
        with psycopg.connect(node.url, autocommit=True) as connection:
            self.rig.wait(
                lambda: connection.execute(f"select where {condition}").fetchone() is not None,
                f"on {node.data_dir.name} it never holds that {condition}",
            )

    def stop(self) -> None:
        for node in reversed(self.nodes):
            node.stop()


def received(node: Server) -> int:
    """Return how far a drained standby has the primary's log, in bytes."""
    with psycopg.connect(node.url) as connection:
        row = connection.execute(
            "select pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')"
        ).fetchone()
    assert row is not None
    return int(row[0])


def failover(rig: Rig) -> None:
    """SIGKILL for the primary, and a standby takes over.

    Every second time commits have their wait for a standby cancelled before.
    """
    rig.is_cut_off = True
    settings = {k: v for k, v in rig.server.settings.items() if k != "max_notify_queue_pages"}
    replicas = Replicas(rig, rig.folder, settings)
    try:
        replicas.start()
        # They have what producers and workers ask of a server.
        rig.server = cast("Server", replicas)
        rig.prepare()
        rig.start()

        def kill() -> None:
            if rig.faults % 2:
                replicas.cancel_waits()
            else:
                replicas.kill_primary()
            rig.faults += 1
            replicas.fail_over()

        rig.every(1.0, 2.0, kill)
        rig.outcome = rig.check()
    finally:
        rig.stop()
        replicas.stop()
