"""Patroni: three hosts with etcd, Patroni and PostgreSQL each, on a bridge of their own."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psycopg

from jobq_embedded import find_bin_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rig import Rig

    from jobq_embedded import Server

PROGRAM = Path(sys.executable).with_name("patroni")
CONFIGURATION = Path(__file__).resolve().parents[2] / "docs" / "failover" / "patroni.yml"
# What a machine that is busy with more than this run may take for a step.
PATIENCE = 120.0
_NUMBERS = itertools.count()
# PostgreSQL refuses to be root. This user may read all, so also a Python in root's home.
AS_POSTGRES = (
    "setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
    "--securebits=+no_setuid_fixup",
)  # fmt: skip


@dataclass
class Host:
    """A host in a network namespace: etcd, Patroni and PostgreSQL."""

    name: str
    address: str
    port: int
    namespace: str
    folder: Path
    etcd: subprocess.Popen[bytes] | None = None
    patroni: subprocess.Popen[bytes] | None = None

    def spawn(self, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a program on this host as PostgreSQL's user."""
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, *AS_POSTGRES, *command],
                stdout=log, stderr=log, cwd=self.folder, env=os.environ | environment,
            )  # fmt: skip

    def postmaster(self) -> int | None:
        """The process id of the host's PostgreSQL, where there is one."""
        with suppress(FileNotFoundError, IndexError, ValueError):
            return int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        return None

    def kill(self) -> None:
        """SIGKILL for Patroni, then for PostgreSQL."""
        assert self.patroni is not None
        self.patroni.kill()
        self.patroni.wait()
        if (pid := self.postmaster()) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def ask(self, path: str, method: str = "GET", **document: Any) -> Any:
        """Call Patroni's REST API; return None where it does not answer."""
        body = json.dumps(document).encode() if document else None
        request = urllib.request.Request(
            f"http://{self.address}:8008/{path}", data=body, method=method
        )
        with suppress(OSError), urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode()
            return json.loads(text) if text.startswith("{") else text
        return None


@dataclass
class PatroniCluster:
    """Three hosts, their network, and what is done to them."""

    rig: Rig
    bridge: str
    subnet: str
    hosts: list[Host] = field(default_factory=list)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return a URL that names all hosts, and asks for the one that takes writes."""
        hosts = ",".join(f"{host.address}:{host.port}" for host in self.hosts)
        return (
            f"postgresql://postgres:{self.password}@{hosts}/{database}"
            "?target_session_attrs=read-write&connect_timeout=2"
        )

    def start(self) -> None:
        """Make the hosts and wait until the primary has its synchronous standby."""
        # Ports differ, as all hosts share a folder for their Unix sockets.
        port = 20000 + self.rig.random.randrange(10000)
        for number in range(3):
            name = f"node{number}"
            address = f"{self.subnet}.{11 + number}"
            folder = self.rig.folder / f"{self.bridge}-{name}"
            folder.mkdir()
            shutil.chown(folder, "postgres", "postgres")
            self.hosts.append(Host(name, address, port + number, f"{self.bridge}n{number}", folder))
        for host in self.hosts:
            host.etcd = host.spawn(*self.etcd(host))
            host.patroni = self.patroni(host)
        self.rig.wait(self.is_whole, "the cluster does not come up", PATIENCE)

    def etcd(self, host: Host) -> list[str]:
        """Return the command of a host's etcd."""
        peers = ",".join(f"{h.name}=http://{h.address}:2380" for h in self.hosts)
        return [
            "etcd", "--name", host.name, "--data-dir", str(host.folder / "etcd"),
            "--listen-peer-urls", f"http://{host.address}:2380",
            "--initial-advertise-peer-urls", f"http://{host.address}:2380",
            "--listen-client-urls", f"http://{host.address}:2379",
            "--advertise-client-urls", f"http://{host.address}:2379",
            "--initial-cluster", peers, "--initial-cluster-state", "new",
            "--heartbeat-interval", "200", "--election-timeout", "2000", "--pre-vote",
        ]  # fmt: skip

    def patroni(self, host: Host) -> subprocess.Popen[bytes]:
        """Start Patroni on a host: the file of the documents, the rest by the environment."""
        hosts = ",".join(f"'{h.address}:2379'" for h in self.hosts)
        return host.spawn(
            str(PROGRAM), str(CONFIGURATION),
            PATRONI_NAME=host.name, PATRONI_ETCD3_HOSTS=hosts,
            PATRONI_RESTAPI_LISTEN=f"{host.address}:8008",
            PATRONI_RESTAPI_CONNECT_ADDRESS=f"{host.address}:8008",
            PATRONI_POSTGRESQL_LISTEN=f"{host.address}:{host.port}",
            PATRONI_POSTGRESQL_CONNECT_ADDRESS=f"{host.address}:{host.port}",
            PATRONI_POSTGRESQL_DATA_DIR=str(host.folder / "data"),
            PATRONI_POSTGRESQL_BIN_DIR=str(find_bin_dir()),
            PATRONI_POSTGRESQL_PGPASS=str(host.folder / "pgpass"),
            PATRONI_SUPERUSER_USERNAME="postgres", PATRONI_SUPERUSER_PASSWORD=self.password,
            PATRONI_REPLICATION_USERNAME="replicator",
            PATRONI_REPLICATION_PASSWORD=self.password,
        )  # fmt: skip

    # ---- what can be seen

    def members(self) -> dict[str, dict[str, Any]]:
        """Return what the hosts tell of the cluster, the one who knows most."""
        told = [
            {m["name"]: m for m in answer["members"]}
            for host in self.hosts
            if (answer := host.ask("cluster"))
        ]
        return max(told, key=lambda m: sum(x["state"] in WELL for x in m.values()), default={})

    def leader(self) -> Host | None:
        """Return the host that holds the leader's key, where one does."""
        roles = {name: member["role"] for name, member in self.members().items()}
        return next((h for h in self.hosts if roles.get(h.name) == "leader"), None)

    def is_whole(self, is_synchronous: bool = True) -> bool:
        """Tell whether a primary and two standbys work, one of these synchronous."""
        members = self.members().values()
        roles = [member["role"] for member in members]
        return (
            sum(member["state"] in WELL for member in members) == 3
            and "leader" in roles
            and ("sync_standby" in roles) is is_synchronous
            # A member that has just started says no timeline yet.
            and all("timeline" in member for member in members)
            and len({member["timeline"] for member in members}) == 1
        )

    def wait_for_other(self, old: Host) -> None:
        """Wait until another host than the old one takes writes."""
        self.rig.wait(
            lambda: any(h is not old and h.ask("primary") is not None for h in self.hosts),
            "nobody takes over", PATIENCE,
        )  # fmt: skip

    def wait_for_copies(self, database: str) -> None:
        """Wait until each host has a new database.

        libpq tries no other host after one has answered that the database does not exist.
        """

        def has_it(host: Host) -> bool:
            url = f"postgresql://postgres:{self.password}@{host.address}:{host.port}/{database}"
            with suppress(psycopg.Error), psycopg.connect(url, connect_timeout=2):
                return True
            return False

        self.rig.wait(
            lambda: all(has_it(host) for host in self.hosts),
            "a standby does not get the database", PATIENCE,
        )  # fmt: skip

    # ---- what is done

    def primary_of_now(self) -> Host:
        """Return the leader; wait for it if need be."""
        found: list[Host] = []

        def look() -> bool:
            leader = self.leader()
            found.extend([leader] if leader else [])
            return bool(found)

        self.rig.wait(look, "there is no leader", PATIENCE)
        return found[0]

    def kill_primary(self) -> None:
        """SIGKILL for the primary and its Patroni, which starts again when it was replaced."""
        old = self.primary_of_now()
        old.kill()
        self.wait_for_other(old)
        old.patroni = self.patroni(old)

    def cut_off_primary(self) -> None:
        """Cut the primary off from the other hosts; clients still reach it."""
        old = self.primary_of_now()
        others = [host.address for host in self.hosts if host is not old]
        ended = self.rig.ended()
        with dropped(old.namespace, others):
            self.wait_for_other(old)
            self.rig.wait(
                lambda: self.rig.ended() > ended + 100, "nothing works on the new primary", PATIENCE
            )

    def switch_over(self) -> None:
        """Hand over in good order, as an operator does before maintenance."""
        old = self.primary_of_now()
        old.ask("switchover", "POST", leader=old.name)
        self.wait_for_other(old)

    def be_asynchronous(self) -> None:
        """Let commits wait for no standby."""
        self.primary_of_now().ask(
            "config", "PATCH", synchronous_mode=False, synchronous_mode_strict=False
        )
        with psycopg.connect(self.url, autocommit=True) as connection:
            self.rig.wait(
                lambda: connection.execute("show synchronous_standby_names").fetchone() == ("",),
                "commits still wait", PATIENCE,
            )  # fmt: skip
        self.rig.wait(lambda: self.is_whole(False), "a standby is still synchronous", PATIENCE)

    def stop(self) -> None:
        """End all that runs on the hosts."""
        for host in self.hosts:
            if host.patroni is not None:
                host.kill()
            if host.etcd is not None:
                host.etcd.kill()
                host.etcd.wait()


WELL = ("running", "streaming")


@contextmanager
def dropped(namespace: str, addresses: list[str]) -> Iterator[None]:
    """Drop all packets between a host and others."""
    rules = [
        [chain, flag, address, "-j", "DROP"]
        for address in addresses
        for chain, flag in (("INPUT", "-s"), ("OUTPUT", "-d"))
    ]
    try:
        for rule in rules:
            run("ip", "netns", "exec", namespace, "iptables", "-A", *rule)
        yield
    finally:
        for rule in rules:
            run("ip", "netns", "exec", namespace, "iptables", "-D", *rule)


@contextmanager
def hosts_of(rig: Rig) -> Iterator[PatroniCluster]:
    """Make a bridge with three hosts on it, and a cluster there."""
    bridge = f"jq{os.getpid() % 10000}x{next(_NUMBERS)}"
    subnet = f"10.{rig.random.randrange(128, 192)}.{rig.random.randrange(256)}"
    cluster = PatroniCluster(rig, bridge, subnet)
    try:
        run("ip", "link", "add", bridge, "type", "bridge")
        run("ip", "addr", "add", f"{subnet}.1/24", "dev", bridge)
        run("ip", "link", "set", bridge, "up")
        for number in range(3):
            add_host(bridge, f"{bridge}n{number}", f"{subnet}.{11 + number}/24")
        cluster.start()
        yield cluster
    finally:
        rig.stop()
        cluster.stop()
        for number in range(3):
            run("ip", "netns", "del", f"{bridge}n{number}", check=False)
        run("ip", "link", "del", bridge, check=False)


def add_host(bridge: str, name: str, address: str) -> None:
    """Make a network namespace with an address on the bridge."""
    inside = ("ip", "netns", "exec", name)
    run("ip", "netns", "add", name)
    run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    run("ip", "link", "set", name, "master", bridge, "up")
    run(*inside, "ip", "addr", "add", address, "dev", "eth0")
    run(*inside, "ip", "link", "set", "eth0", "up")
    run(*inside, "ip", "link", "set", "lo", "up")


def run(*command: str, check: bool = True) -> None:
    """Run a program of the system's."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


def under_patroni(
    act: Callable[[PatroniCluster], None], is_synchronous: bool = True
) -> Callable[[Rig], None]:
    """Return the run in which this happens to the primary, again when all is whole again."""

    def fault(rig: Rig) -> None:
        rig.is_cut_off = True
        rig.is_recorded = False
        with hosts_of(rig) as cluster:
            # It has what producers and workers ask of a server.
            rig.server = cast("Server", cluster)
            rig.create()
            cluster.wait_for_copies(rig.name)
            rig.load()
            rig.configure()
            if not is_synchronous:
                cluster.be_asynchronous()
            rig.start()

            def disturb() -> None:
                act(cluster)
                rig.faults += 1
                rig.wait(lambda: cluster.is_whole(is_synchronous), "it does not heal", PATIENCE)

            rig.every(1.0, 2.0, disturb)
            outcome = rig.check()
            # What asynchronous replication loses is the figure that this run is for.
            rig.outcome = outcome if is_synchronous else replace(outcome, problems=[])

    fault.__doc__ = act.__doc__
    return fault


PATRONI_FAULTS = {
    "patroni: killed": under_patroni(PatroniCluster.kill_primary),
    "patroni: cut off": under_patroni(PatroniCluster.cut_off_primary),
    "patroni: switched over": under_patroni(PatroniCluster.switch_over),
    "patroni: asynchronous": under_patroni(PatroniCluster.cut_off_primary, False),
}
PATRONI_NEEDS = ("setpriv", "ip", "iptables", "etcd", str(PROGRAM))
