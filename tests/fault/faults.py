"""The faults: each function lets one of them loose on a database under load.

A function prepares and starts its rig, does the damage for `rig.duration` seconds, and
leaves everything healed, so that what is due can finish.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from agents import agents
from definitions import definitions_changed
from hostile import hostile_handlers, hostile_producers
from limits import limit_of_one, rate_under
from patroni_cluster import PATRONI_FAULTS, PATRONI_NEEDS
from psycopg.conninfo import make_conninfo
from releases import deploy_killed, upgrade
from replicas import DEBIAN_15, failover
from shards import router_killed, shard_fails_over, shard_killed
from workflows import fan_out_fan_in, three_steps

from jobq_embedded import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rig import Rig


def quiet(rig: Rig) -> None:
    """Nothing happens: what the other figures compare with."""
    rig.prepare()
    rig.start()
    time.sleep(rig.duration)


def worker_killed(rig: Rig) -> None:
    """SIGKILL for a worker in the middle of its jobs; another one starts."""
    rig.prepare()
    rig.start()
    rig.every(0.3, 1.0, rig.kill_worker)


def worker_frozen(rig: Rig) -> None:
    """SIGSTOP for longer than the lease, then SIGCONT: the late result must be refused."""
    rig.prepare()
    rig.start()

    def freeze() -> None:
        victim = rig.random.choice(rig.workers)
        victim.send_signal(signal.SIGSTOP)
        time.sleep(rig.random.uniform(2.5, 4.0))
        victim.send_signal(signal.SIGCONT)
        rig.faults += 1

    rig.every(0.1, 0.5, freeze)


def postgres_killed(rig: Rig) -> None:
    """SIGKILL for the postmaster, and a new start."""
    rig.is_cut_off = True
    rig.prepare()
    rig.start()

    def kill() -> None:
        os.kill(rig.postmaster(), signal.SIGKILL)
        rig.faults += 1
        time.sleep(0.2)
        rig.start_server()

    rig.every(1.0, 2.0, kill)


def postgres_restarted(rig: Rig) -> None:
    """An immediate shutdown, and a new start."""
    rig.is_cut_off = True
    rig.prepare()
    rig.start()

    def restart() -> None:
        pid = rig.postmaster()
        os.kill(pid, signal.SIGQUIT)
        rig.faults += 1
        rig.wait(lambda: not Path(f"/proc/{pid}").exists(), "the server does not stop")
        rig.start_server()

    rig.every(1.0, 2.0, restart)


def backends_terminated(rig: Rig) -> None:
    """pg_terminate_backend() for any session, in the middle of whatever it does."""
    rig.is_cut_off = True
    rig.prepare()
    rig.start()
    with rig.connect() as killer:

        def terminate() -> None:
            killer.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
                " order by random() limit 1"
            )
            rig.faults += 1

        rig.every(0.05, 0.3, terminate)


def notify_full(rig: Rig) -> None:
    """A listener idle in its transaction, and a notification queue that is full."""
    rig.prepare()
    with rig.connect() as listener, rig.connect() as noisy:
        listener.execute("listen noise")
        listener.execute("begin")
        listener.execute("select 1")
        with suppress(psycopg.errors.ProgramLimitExceeded):
            while True:
                noisy.execute(
                    "select pg_notify('noise', repeat('x', 7900)) from generate_series(1, 8)"
                )
                rig.faults += 1
        rig.start()
        time.sleep(rig.duration)
        listener.execute("rollback")
        noisy.execute("select pg_notification_queue_usage()")
    errors = [error for producer in rig.producers for error in producer.errors]
    assert not errors, f"a full notification queue made enqueue fail: {errors}"


def connections_exhausted(rig: Rig) -> None:
    """Somebody takes every connection that is left, and lets go of them again."""
    rig.is_cut_off = True
    rig.prepare()
    rig.start()

    def exhaust() -> None:
        hogs: list[psycopg.Connection[Any]] = []
        with suppress(psycopg.OperationalError):
            while True:
                hogs.append(psycopg.connect(rig.url, connect_timeout=5))
        rig.faults += 1
        rig.kill_worker()
        time.sleep(rig.random.uniform(0.5, 1.5))
        for hog in hogs:
            hog.close()

    rig.every(0.2, 1.0, exhaust)


def deadlocks(rig: Rig) -> None:
    """A session that locks live jobs in the wrong order, and waits for more."""
    rig.prepare({"deadlock_timeout": "10ms"})
    rig.start()
    seen: dict[str, int] = {}

    def entangle() -> None:
        with rig.connect() as vandal:
            for _ in range(50):
                try:
                    with vandal.transaction():
                        for direction in ("desc", "asc"):
                            vandal.execute(
                                "select from jobq_private.job where state = 'running'"
                                f" order by job_id {direction} limit 4 for update"
                            )
                            time.sleep(0.003)
                except psycopg.Error as error:
                    seen[error.sqlstate or "-"] = seen.get(error.sqlstate or "-", 0) + 1
        rig.faults += 1

    rig.every(0.0, 0.05, entangle)


def calls_cancelled(rig: Rig) -> None:
    """Calls time out at random moments, in sessions that stay, and others are cancelled."""
    rig.prepare()
    rig.start()
    until = time.monotonic() + rig.duration
    with rig.connect() as vandal, rig.connect() as impatient:
        while time.monotonic() < until:
            for _ in range(20):
                impatient.execute(f"set statement_timeout = {rig.random.randint(1, 8)}")
                with suppress(psycopg.errors.QueryCanceled):
                    impatient.execute(
                        "select count(jobq.enqueue('given up', queue => 'queue ' || n % 50))"
                        " from generate_series(1, 500) as n having count(*) = 0"
                    )
                rig.faults += 1
            rig.faults += vandal.execute(
                "select pg_cancel_backend(a.pid) from pg_stat_activity as a"
                " where a.datname = current_database() and a.pid <> pg_backend_pid()"
                " and a.state = 'active' and random() < 0.5"
            ).rowcount
        leaked = vandal.execute(
            "select count(*) from pg_locks where locktype = 'advisory' and pid = %s",
            (impatient.info.backend_pid,),
        ).fetchone()
    if leaked != (0,):
        raise AssertionError(f"a session that is idle holds locks: {leaked}")


def at_isolation(level: str) -> Callable[[Rig], None]:
    """Return the run in which every transaction has this isolation level."""

    def run(rig: Rig) -> None:
        rig.producers_count, rig.workers_count, rig.pause = 4, 3, 0.002
        rig.prepare({"default_transaction_isolation": level})
        options = f"-c default_transaction_isolation={level}".replace(" re", r"\ re")
        rig.worker_url = make_conninfo(rig.url, options=options)
        rig.start()
        rig.every(0.5, 1.0, rig.kill_worker)
        rig.faults += sum(p.errors.get("40001", 0) for p in rig.producers)

    run.__doc__ = f"Every transaction at {level.upper()}, many producers, workers killed."
    return run


def snapshot_pinned(rig: Rig) -> None:
    """A transaction whose snapshot holds back vacuum all the while."""
    rig.pause = 0.001
    rig.prepare()
    with rig.connect() as holder:
        holder.execute("begin isolation level repeatable read")
        holder.execute("select count(*) from jobq.job")
        rig.start()
        time.sleep(rig.duration)
        rig.faults += 1
        holder.execute("rollback")


@contextmanager
def own_server(rig: Rig, folder: Path, **environment: str) -> Iterator[None]:
    """Give the run a server of its own, in a folder and an environment of its own."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        rig.server = Server(folder, settings=rig.server.settings)
        rig.server.start()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    try:
        yield
        rig.outcome = rig.check()
    finally:
        rig.stop()
        rig.server.stop()


@contextmanager
def small_disk(rig: Rig, size: str) -> Iterator[Path]:
    """Mount a disk of a size; yield its folder."""
    disk = rig.folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)
        disk.rmdir()


def fill_at_times(rig: Rig, disk: Path, then: Callable[[], object] = lambda: None) -> None:
    """Fill a disk, do something then, and make room, a few times; start a server that died."""

    def fill() -> None:
        ballast = disk / "ballast"
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={ballast}", "bs=64k"],
            check=False, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        rig.faults += 1
        then()
        time.sleep(rig.random.uniform(2.0, 4.0))
        ballast.unlink()
        rig.start_server()

    rig.every(0.5, 1.0, fill)


def disk_full(rig: Rig) -> None:
    """The server's disk fills up and has room again; if the server died, it is started."""
    rig.is_cut_off = True
    with small_disk(rig, "300m") as disk, own_server(rig, disk / "data"):
        rig.prepare()
        rig.start()
        fill_at_times(rig, disk)


def wal_disk_full(rig: Rig) -> None:
    """The same for a disk that holds the WAL alone: no segment is left, and the server panics."""
    rig.is_cut_off = True
    with small_disk(rig, "160m") as disk, own_server(rig, rig.folder / "wal-data"):
        wal = rig.server.data_dir / "cluster" / "pg_wal"
        rig.server.stop()
        subprocess.run(["mv", str(wal), str(disk)], check=True)
        wal.symlink_to(disk / "pg_wal")
        rig.server.start()
        rig.prepare()
        rig.start()

        panics: list[psycopg.Error] = []

        def use_up() -> None:
            try:
                with rig.connect() as connection:
                    for _ in range(20):
                        connection.execute("select pg_logical_emit_message(false, 'fault', 'x')")
                        connection.execute("select pg_switch_wal()")
            except psycopg.Error as error:
                panics.append(error)

        fill_at_times(rig, disk, use_up)
        assert panics, "it was never full"


def tablespace_full(rig: Rig) -> None:
    """The same for a disk that holds the database, and no WAL: what needs room is refused."""
    with small_disk(rig, "100m") as disk, own_server(rig, rig.folder / "tablespace-data"):
        shutil.chown(disk, (rig.server.data_dir / "cluster").owner())
        rig.create()
        with psycopg.connect(rig.server.url, autocommit=True) as admin:
            admin.execute(f"create tablespace small location '{disk}'".encode())
            admin.execute(f"alter database {rig.name} set tablespace small".encode())
        rig.load()
        rig.configure()
        rig.start()
        fill_at_times(rig, disk)
        assert any("53100" in producer.errors for producer in rig.producers), "it was never full"


@contextmanager
def faked_time_swept() -> Iterator[None]:
    """Take away what libfaketime leaves in shared memory for each process that was killed."""
    try:
        yield
    finally:
        for path in Path("/dev/shm").glob("*faketime_s[eh]m_*"):
            pid = path.name.rpartition("_")[2]
            if not Path("/proc", pid).exists():
                path.unlink(missing_ok=True)


def clock_steps(rig: Rig) -> None:
    """The database's clock goes back by an hour, forward again, and forward by an hour."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    clock = rig.folder / "clock"
    clock.write_text("+0")
    clock.chmod(0o644)
    fake = {
        "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    with faked_time_swept(), own_server(rig, rig.folder / "clock-data", **fake):
        rig.prepare()
        rig.start()
        for step in ("-3600", "+0", "+3600"):
            rig.faults += 1
            with rig.trouble(), rig.connect() as connection:
                clock.write_text(step)
                rig.wait(
                    lambda: abs(seconds_off(connection) - float(step)) < 60,  # noqa: B023
                    "the clock does not step",
                )
            rig.kill_worker()
            time.sleep(rig.duration / 3)


def seconds_off(connection: psycopg.Connection[Any]) -> float:
    """Return by how much the database's clock is ahead of ours."""
    row = connection.execute("select extract(epoch from clock_timestamp())").fetchone()
    assert row is not None
    return float(row[0]) - time.time()


def pgbouncer(rig: Rig) -> None:
    """PgBouncer in transaction mode between all of them and the server, killed at times."""
    rig.is_cut_off = True
    rig.prepare()
    folder = rig.folder / "pgbouncer"
    folder.mkdir()
    password = rig.url.split(":")[2].split("@")[0]
    port = 20000 + rig.random.randrange(10000)
    (folder / "users.txt").write_text(f'"postgres" "{password}"\n')
    (folder / "pgbouncer.ini").write_text(
        "[databases]\n"
        f"* = host=127.0.0.1 port={rig.server.port}\n"
        "[pgbouncer]\nlisten_addr = 127.0.0.1\nauth_type = plain\npool_mode = transaction\n"
        f"listen_port = {port}\nauth_file = {folder}/users.txt\nunix_socket_dir =\n"
        "default_pool_size = 5\nmax_client_conn = 100\n"
        "ignore_startup_parameters = extra_float_digits,options,statement_timeout\n"
    )
    for path in (folder, *folder.iterdir()):
        shutil.chown(path, "postgres")

    def launch() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups",
             "/usr/sbin/pgbouncer", str(folder / "pgbouncer.ini")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    running = [launch()]
    rig.listen_url = rig.url
    rig.worker_url = rig.producer_url = rig.url.replace(f":{rig.server.port}/", f":{port}/")

    def kill() -> None:
        running[0].kill()
        running[0].wait()
        rig.faults += 1
        running[0] = launch()

    try:
        rig.start()
        rig.every(1.0, 2.5, kill)
        rig.outcome = rig.check()
    finally:
        rig.stop()
        running[0].kill()
        running[0].wait()


def half_open(rig: Rig) -> None:
    """Workers on another host, whose packets are dropped without a word, both ways."""
    rig.is_cut_off = True
    name = f"jobq{os.getpid() % 10000}"
    subnet = f"10.{rig.random.randrange(64, 128)}.{rig.random.randrange(256)}"
    with network(name, subnet, rig):
        rig.prepare()
        hba = rig.server.data_dir / "cluster" / "pg_hba.conf"
        hba.write_text(f"{hba.read_text()}\nhost all all {subnet}.0/24 scram-sha-256\n")
        with rig.connect() as connection:
            connection.execute("select pg_reload_conf()")
        rig.worker_prefix = ["ip", "netns", "exec", name]
        rig.worker_url = rig.url.replace("127.0.0.1", f"{subnet}.1")
        rig.start()

        def drop() -> None:
            for chain, flag in (("INPUT", "-i"), ("OUTPUT", "-o")):
                if rig.random.random() < 0.7:
                    run("iptables", "-I", chain, flag, name, "-j", "DROP")
            rig.faults += 1
            time.sleep(rig.random.uniform(3.0, 12.0))
            run("iptables", "-D", "INPUT", "-i", name, "-j", "DROP", check=False)
            run("iptables", "-D", "OUTPUT", "-o", name, "-j", "DROP", check=False)

        rig.every(1.0, 3.0, drop)
        rig.outcome = rig.check()
        rig.stop()


@contextmanager
def network(name: str, subnet: str, rig: Rig) -> Iterator[None]:
    """Make a host beside this one, from which the server's port can be reached."""
    nat = [
        "PREROUTING", "-i", name, "-d", f"{subnet}.1", "-p", "tcp",
        "--dport", str(rig.server.port), "-j", "DNAT",
        "--to-destination", f"127.0.0.1:{rig.server.port}",
    ]  # fmt: skip
    inside = ("ip", "netns", "exec", name)
    run("ip", "netns", "add", name)
    try:
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "addr", "add", f"{subnet}.1/24", "dev", name)
        run("ip", "link", "set", name, "up")
        run(*inside, "ip", "addr", "add", f"{subnet}.2/24", "dev", "eth0")
        run(*inside, "ip", "link", "set", "eth0", "up")
        run(*inside, "ip", "link", "set", "lo", "up")
        Path(f"/proc/sys/net/ipv4/conf/{name}/route_localnet").write_text("1")
        run("iptables", "-t", "nat", "-A", *nat)
        yield
    finally:
        rig.stop()
        run("iptables", "-D", "INPUT", "-i", name, "-j", "DROP", check=False)
        run("iptables", "-D", "OUTPUT", "-o", name, "-j", "DROP", check=False)
        run("iptables", "-t", "nat", "-D", *nat, check=False)
        run("ip", "netns", "del", name, check=False)
        run("ip", "link", "del", name, check=False)


def run(*command: str, check: bool = True) -> None:
    """Run a program of the system's."""
    subprocess.run(command, check=check, capture_output=True)


def lacks(*programs: str) -> str | None:
    """Return what keeps a fault from being run here; None if nothing does."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    return None if os.geteuid() == 0 else "needs root"


FAULTS: dict[str, Callable[[Rig], None]] = {
    "none": quiet,
    "worker killed": worker_killed,
    "worker frozen": worker_frozen,
    "three-step workflows": three_steps,
    "fan-out and fan-in": fan_out_fan_in,
    "agents": agents,
    "postgres killed": postgres_killed,
    "postgres restarted": postgres_restarted,
    "sessions terminated": backends_terminated,
    "NOTIFY queue full": notify_full,
    "hostile handlers": hostile_handlers,
    "hostile producers": hostile_producers,
    "definitions changed": definitions_changed,
    "connections exhausted": connections_exhausted,
    "deadlocks": deadlocks,
    "calls cancelled": calls_cancelled,
    "repeatable read": at_isolation("repeatable read"),
    "serializable": at_isolation("serializable"),
    "snapshot pinned": snapshot_pinned,
    "disk full": disk_full,
    "WAL disk full": wal_disk_full,
    "tablespace full": tablespace_full,
    "clock steps": clock_steps,
    "limit 1, worker killed": limit_of_one,
    "rate, clock steps": rate_under(clock_steps),
    "PgBouncer": pgbouncer,
    "half-open": half_open,
    "deploy killed": deploy_killed,
    "upgrade": upgrade,
    "failover": failover,
    "shard killed": shard_killed,
    "router killed": router_killed,
    "shard fails over": shard_fails_over,
    **PATRONI_FAULTS,
}
SHORT = (
    "worker killed", "postgres killed", "NOTIFY queue full", "deadlocks", "serializable",
    "hostile handlers", "three-step workflows", "fan-out and fan-in",
)  # fmt: skip
NEEDS: dict[str, tuple[str, ...]] = {
    "disk full": ("mount",),
    "WAL disk full": ("mount",),
    "tablespace full": ("mount",),
    "clock steps": ("faketime",),
    "rate, clock steps": ("faketime",),
    "PgBouncer": ("pgbouncer", "setpriv"),
    "half-open": ("ip", "iptables"),
    "deploy killed": ("sqitch",),
    "upgrade": ("sqitch",),
    "failover": ("setpriv", str(DEBIAN_15 / "pg_basebackup")),
    "shard killed": (str(DEBIAN_15 / "postgres"),),
    "router killed": (str(DEBIAN_15 / "postgres"),),
    "shard fails over": ("setpriv", str(DEBIAN_15 / "pg_basebackup")),
    **dict.fromkeys(PATRONI_FAULTS, PATRONI_NEEDS),
}
