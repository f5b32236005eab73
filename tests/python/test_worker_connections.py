"""Workers whose connections break: the server restarts, the network goes silent."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from waiting import until, until_async
from worker_process import working

from jobq import AsyncClient, Client
from jobq.errors import DatabaseUnavailable, JobCancelled, JobqError
from jobq.registry import JobContext, Registry
from jobq.worker import Worker, tuning
from jobq.worker.connections import Link
from jobq.worker.listener import Listener, Wakeups
from jobq_embedded import Server
from servers import SETTINGS, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Connection = psycopg.Connection[tuple[Any, ...]]

LOG_TABLE = "create table public.processed_log (job_id uuid, attempt int, worker int)"


def noops() -> Registry:
    registry = Registry()

    @registry.handler("noop")
    async def noop() -> None: ...

    return registry


@pytest.fixture
def own_server(pg: str, project: Path, tmp_path: Path) -> Iterator[tuple[Server, str]]:
    """A server that the test may restart, and a database on it with jobq."""
    settings = {**SETTINGS, "fsync": "on", "full_page_writes": "on"}
    with (
        Server(tmp_path / "server", pg, settings=settings) as server,
        Cluster(server, project).database() as url,
    ):
        yield server, url


def restart(server: Server) -> None:
    """Pull the plug of a server, and start it again."""
    server._pg_ctl("restart", "-m", "immediate", "-l", str(server._log_file))


@pytest.mark.prove
def test_a_restart_under_load_loses_nothing(own_server: tuple[Server, str], tmp_path: Path) -> None:
    server, url = own_server
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(LOG_TABLE)
    with Client(url) as client:
        client.configure(lease="2 s")
    acknowledged: list[str] = []
    stop = threading.Event()

    def produce() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            try:
                with psycopg.connect(url, autocommit=True, connect_timeout=2) as connection:
                    while not stop.is_set():
                        job = Client(connection).enqueue("record", {"n": n})
                        acknowledged.append(str(job.job_id))
            except (JobqError, psycopg.Error):
                time.sleep(0.02)

    producer = threading.Thread(target=produce)
    with working(url, tmp_path, "--concurrency", "4") as one, working(url, tmp_path) as two:
        producer.start()
        until(lambda: len(acknowledged) > 50, "for load")
        restart(server)
        until(lambda: len(acknowledged) > 300, "for load after the restart")
        restart(server)
        until(lambda: len(acknowledged) > 500, "for load after the restarts")
        stop.set()
        producer.join()
        with psycopg.connect(url, autocommit=True) as connection:
            live = "select count(*) from jobq_private.job"
            until(lambda: connection.execute(live).fetchone() == (0,), "for all to end")
            ended = connection.execute(
                "select job_id::text, state from jobq_private.job_archive"
            ).fetchall()
        assert one.process.poll() is None, one.log
        assert two.process.poll() is None, two.log
    states: dict[str, str] = dict(ended)
    assert [states.get(job_id) for job_id in acknowledged] == ["succeeded"] * len(acknowledged)


async def test_a_worker_waits_for_a_server_that_is_down(
    own_server: tuple[Server, str],
) -> None:
    server, url = own_server
    server._pg_ctl("stop", "-m", "immediate")
    worker = Worker(url, noops())
    entering = asyncio.create_task(worker.__aenter__())
    await asyncio.sleep(0)
    server._launch()
    await asyncio.wait_for(entering, 30)
    try:
        async with AsyncClient(url) as client:
            job = await client.enqueue("noop")
            assert await client.result(job.job_id, timeout=30) is None
    finally:
        await worker.stop()


async def test_every_connection_comes_back(
    database: str, connect: Callable[[], Connection]
) -> None:
    """All sessions of a worker are terminated, the listening one too, which listens again."""
    connection = connect()
    sessions = (
        "select pid, application_name from pg_stat_activity where datname = current_database()"
        " and application_name in ('jobq worker', 'jobq listener')"
    )
    async with Worker(database, noops(), poll=3600), AsyncClient(database) as client:
        for _ in range(3):
            job = await client.enqueue("noop")
            await client.result(job.job_id, timeout=30)

            async def are_there() -> dict[int, str]:
                now: dict[int, str] = dict(connection.execute(sessions).fetchall())
                return now if {"jobq worker", "jobq listener"} <= set(now.values()) else {}

            before = await until_async(are_there, "for its sessions")
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where pid = any(%s)",
                [list(before)],
            )

            async def are_back(gone: dict[int, str] = before) -> bool:
                now: dict[int, str] = dict(connection.execute(sessions).fetchall())
                listening = "listener" in str(now.values())
                return listening and not now.keys() & gone.keys()

            await until_async(are_back, "for the listener to come back")


async def test_a_request_to_cancel_that_the_listener_missed_is_heard_when_it_comes_back(
    cluster: Cluster, database: str, connect: Callable[[], Connection]
) -> None:
    """The lease is so long that no heartbeat is due."""
    connection = connect()
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    listeners = "from pg_stat_activity where application_name = 'jobq listener' and datname = %s"
    registry = Registry()
    has_started = asyncio.Event()

    @registry.handler("a", lease=3600)
    async def handler(context: JobContext) -> None:
        has_started.set()
        while True:
            context.check_cancelled()
            await asyncio.sleep(0.005)

    async def is_gone() -> bool:
        return connection.execute(f"select {listeners}", [name]).fetchall() == []

    async with AsyncClient(database) as client, Worker(database, registry, grace=0):
        job = await client.enqueue("a")
        await asyncio.wait_for(has_started.wait(), 30)
        with psycopg.connect(cluster.server.url, autocommit=True) as admin:
            admin.execute(f"alter database {name} allow_connections false")
            admin.execute(f"select pg_terminate_backend(pid) {listeners}", [name])
            await until_async(is_gone, "for the listener to go")
            cancelled = connection.execute("select jobq.cancel(%s)", [job.job_id])
            assert cancelled.fetchall() == [("cancel_requested",)]
            admin.execute(f"alter database {name} allow_connections true")
        with pytest.raises(JobCancelled):
            await client.result(job.job_id, timeout=30)


class Proxy:
    """A TCP proxy that can go silent: it keeps connections open and passes nothing on.

    Attributes:
        noticed: for each silent connection that the client closed while it waited for an
            answer, how many seconds after its question.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._silent = threading.Event()
        self._sockets: deque[socket.socket] = deque()
        self.noticed: list[float] = []
        self.bytes_per_second: float | None = None
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def go_silent(self) -> None:
        """Pass nothing on from now on, for the connections that are open."""
        self._silent.set()

    def recover(self) -> None:
        """Serve new connections; those that went silent stay so."""
        self._silent = threading.Event()

    def close(self) -> None:
        self._server.close()
        for end in self._sockets:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            self._sockets += [near, far]
            silent = self._silent
            asked: deque[float] = deque()
            for pump, ends in ((self._ask, (near, far)), (self._answer, (far, near))):
                threading.Thread(target=pump, args=(*ends, silent, asked), daemon=True).start()

    def _ask(
        self, near: socket.socket, far: socket.socket, silent: threading.Event, asked: deque[float]
    ) -> None:
        with suppress(OSError):
            while data := near.recv(65536):
                asked.append(time.monotonic())
                if self.bytes_per_second:
                    time.sleep(len(data) / self.bytes_per_second)
                if not silent.is_set():
                    far.sendall(data)
        if silent.is_set() and asked:
            self.noticed.append(time.monotonic() - asked[0])
        with suppress(OSError):
            far.shutdown(socket.SHUT_WR)

    def _answer(
        self, far: socket.socket, near: socket.socket, silent: threading.Event, asked: deque[float]
    ) -> None:
        with suppress(OSError):
            while data := far.recv(65536):
                if self.bytes_per_second:
                    time.sleep(len(data) / self.bytes_per_second)
                if not silent.is_set():
                    asked.clear()
                    near.sendall(data)
            near.shutdown(socket.SHUT_WR)


@contextmanager
def proxied(database: str) -> Iterator[tuple[Proxy, str]]:
    info = psycopg.conninfo.conninfo_to_dict(database)
    proxy = Proxy((str(info["host"]), int(info["port"] or 5432)))
    try:
        yield proxy, psycopg.conninfo.make_conninfo(database, port=proxy.port)
    finally:
        proxy.close()


async def test_a_silent_network_is_noticed_within_ten_seconds(database: str) -> None:
    with proxied(database) as (proxy, url):
        async with (
            AsyncClient(database) as client,
            Worker(url, noops(), poll=1.0),
        ):
            first = await client.enqueue("noop")
            await client.result(first.job_id, timeout=30)
            proxy.go_silent()
            proxy.recover()
            second = await client.enqueue("noop")
            await client.result(second.job_id, timeout=60)

            async def is_noticed() -> bool:
                return bool(proxy.noticed)

            await until_async(is_noticed, "for a connection to be given up")
    # A call's deadline of 10 s, and as much for a loaded machine.
    assert max(proxy.noticed) < 20, proxy.noticed


async def test_a_call_without_an_answer_speaks_for_the_other_connections(database: str) -> None:
    with proxied(database) as (proxy, url):
        peers: list[Link] = []
        one, two = (Link(url, "test", deadline=2, peers=peers) for _ in range(2))
        try:
            for link in (one, two):
                await link.call("select")
            proxy.go_silent()
            proxy.recover()
            with pytest.raises(DatabaseUnavailable):
                await one.call("select")
            await two.call("select")
        finally:
            await one.close()
            await two.close()


async def test_a_call_without_an_answer_ends_no_other_that_is_under_way(database: str) -> None:
    peers: list[Link] = []
    one, two = (Link(database, "test", deadline=60, peers=peers) for _ in range(2))
    try:
        for link in (one, two):
            await link.call("select")
        one._deadline = 0.5
        unanswered = asyncio.create_task(one.call("select pg_sleep(60)"))
        await asyncio.sleep(0)
        other = asyncio.create_task(two.call("select pg_sleep(2)"))
        with pytest.raises(DatabaseUnavailable):
            await unanswered
        assert len(await other) == 1
    finally:
        await one.close()
        await two.close()


async def test_a_listener_comes_back_when_the_network_fell_silent(
    database: str, connect: Callable[[], Connection]
) -> None:
    connection = connect()
    query = "select pid from pg_stat_activity where application_name = 'jobq listener'"
    with proxied(database) as (proxy, url):
        peers: list[Link] = []
        link = Link(url, "test", deadline=2, peers=peers)
        listener = Listener(url, ["default"], Wakeups(), peers)
        listening = asyncio.create_task(listener.run())
        try:
            await link.call("select")

            async def pid() -> int | None:
                [row] = connection.execute(query).fetchall() or [(None,)]
                return row[0] if listener.is_listening else None

            before = await until_async(pid, "for the listener")
            proxy.go_silent()
            proxy.recover()
            with pytest.raises(DatabaseUnavailable):
                await link.call("select")

            async def is_another() -> bool:
                now = {row[0] for row in connection.execute(query).fetchall()}
                return listener.is_listening and bool(now - {before})

            await until_async(is_another, "for the listener to come back")
        finally:
            await listener.close()
            await listening
            await link.close()


async def test_a_listener_whose_connection_another_call_has_cut_listens_again(
    database: str,
) -> None:
    """Even if the producer uses it before the listener has noticed."""
    peers: list[Link] = []
    link, wakeups = Link(database, "test", peers=peers), Wakeups()
    listener = Listener(database, ["default"], wakeups, peers)
    listening = asyncio.create_task(listener.run())

    async def hears() -> bool:
        return listener.is_listening

    try:
        await link.call("select")
        await until_async(hears, "for the listener")
        link._cut(time.monotonic())  # as the deadline of a call does
        assert not await listener.begin_wait()
        with suppress(DatabaseUnavailable):  # its own was cut, too
            await link.call("select")
        await until_async(hears, "for the listener to come back")
        wakeups.has_jobs = False
        await link.call("select pg_notify('jobq', 'default')")

        async def is_woken() -> bool:
            return wakeups.has_jobs

        await until_async(is_woken, "for the notification")
    finally:
        await listener.close()
        await listening
        await link.close()


async def test_upkeep_that_hangs_holds_up_no_heartbeat(
    database: str, connect: Callable[[], Connection]
) -> None:
    registry = Registry()

    @registry.handler("a")
    async def handler() -> None:
        await asyncio.Event().wait()

    connection, locker = connect(), connect()
    waiting = (
        "select count(*) from pg_stat_activity"
        " where query ~ 'maintain' and wait_event_type = 'Lock'"
    )
    beat = "select lease_expires_at from jobq_private.job where state = 'running'"
    async with AsyncClient(database) as client, Worker(database, registry, grace=0):
        await client.configure(lease="2 s")
        await client.enqueue("a")
        locker.execute("begin; lock table jobq_private.failed_task")

        async def hangs() -> bool:
            return connection.execute(waiting).fetchone() == (1,)

        await until_async(hangs, "for upkeep to hang")
        moments: set[Any] = set()

        async def has_beaten() -> bool:
            # maintain() waits a second for a lock, and is called again. What counts is seen
            # meanwhile.
            if await hangs():
                found = connection.execute(beat).fetchall()
                moments.update(found if await hangs() else ())
            return len(moments) > 3

        await until_async(has_beaten, "for three heartbeats")
        locker.execute("rollback")


async def test_a_host_that_takes_calls_and_says_nothing_is_passed_over(database: str) -> None:
    info = psycopg.conninfo.conninfo_to_dict(database)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        ports = f"{mute.getsockname()[1]},{mute.getsockname()[1]},{info['port']}"
        hosts = f"127.0.0.1,127.0.0.1,{info['host']}"
        url = psycopg.conninfo.make_conninfo(database, host=hosts, port=ports, connect_timeout=2)
        link = Link(url, "test", deadline=3)  # shorter than the wait for both
        try:
            assert await link.call("select 1") == [(1,)]
        finally:
            await link.close()


async def test_both_ends_look_after_an_idle_connection(database: str) -> None:
    """Keepalives and the user timeout: six seconds of silence, eight with data under way."""
    names = "keepalives_idle", "keepalives_interval", "keepalives_count", "user_timeout"
    link = Link(database, "test")
    try:
        shown = [await link.call("select current_setting(%s)", [f"tcp_{n}"]) for n in names]
        connection = await link.connection()
        with socket.socket(fileno=os.dup(connection.fileno())) as near:
            options = socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT
            assert [near.getsockopt(socket.IPPROTO_TCP, o) for o in options] == [4, 2, 2]
            assert near.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 8000
    finally:
        await link.close()
    assert [int(row[0][0]) for row in shown] == [4, 2, 2, 8000]


def find_pgbouncer() -> str | None:
    return shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")


@pytest.mark.skipif(find_pgbouncer() is None, reason="pgbouncer is not installed")
async def test_a_pooler_in_transaction_mode_is_enough_for_all_but_the_listener(
    database: str, tmp_path: Path
) -> None:
    with pgbouncer(database, tmp_path) as pooled:
        async with AsyncClient(database) as client:
            await client.configure(lease="6 s")
            registry = noops()

            @registry.handler("slow")
            async def slow() -> None:
                await asyncio.sleep(7)  # longer than its lease

            async with Worker(pooled, registry, listen_database=database, poll=3600):
                slow_job = await client.enqueue("slow")
                for _ in range(20):
                    job = await client.enqueue("noop")
                    await client.result(job.job_id, timeout=30)
                await client.result(slow_job.job_id, timeout=30)
                assert (await client.get(slow_job.job_id)).attempt == 1
            async with Worker(pooled, registry, is_pooled=True, listen=False):
                job = await client.enqueue("noop")
                await client.result(job.job_id, timeout=30)


@pytest.mark.skipif(find_pgbouncer() is None, reason="pgbouncer is not installed")
async def test_clients_work_through_a_pooler(database: str, tmp_path: Path) -> None:
    """Calls of many kinds on few server connections, so that no session keeps its statements."""
    with pgbouncer(database, tmp_path) as pooled:

        def call(client: Client) -> None:
            for n in range(10):
                job = client.enqueue("a", {"n": n}, idempotency_key=f"{threading.get_ident()}-{n}")
                assert client.get(job.job_id).payload == {"n": n}
                client.queue_stats()
                client.cancel(job.job_id)

        with Client(pooled, is_pooled=True) as client:
            async with asyncio.TaskGroup() as group:
                for _ in range(8):
                    group.create_task(asyncio.to_thread(call, client))
        async with AsyncClient(pooled, is_pooled=True) as other:
            jobs = await asyncio.gather(*(other.enqueue("a", {"n": n}) for n in range(80)))
            found = await asyncio.gather(*(other.get(job.job_id) for job in jobs))
            assert [job.payload["n"] for job in found] == list(range(80))


@pytest.mark.prove
@pytest.mark.skipif(find_pgbouncer() is None, reason="pgbouncer is not installed")
async def test_a_client_that_does_not_know_of_its_pooler_says_what_to_do(
    database: str, tmp_path: Path
) -> None:
    with pgbouncer(database, tmp_path) as pooled:
        with Client(pooled) as client, pytest.raises(DatabaseUnavailable) as caught:
            await asyncio.to_thread(client.enqueue, "a")
        assert "unsupported startup parameter" in str(caught.value)
        assert "is_pooled=True" in caught.value.hint
        assert "give a direct URL" in caught.value.hint  # of most commands, the only remedy
        async with AsyncClient(pooled) as other:
            with pytest.raises(DatabaseUnavailable, match="unsupported startup parameter"):
                await other.enqueue("a")


@pytest.mark.skipif(find_pgbouncer() is None, reason="pgbouncer is not installed")
async def test_a_pooled_worker_reads_intervals_as_the_database_writes_them(
    database: str, connect: Callable[[], Connection], tmp_path: Path
) -> None:
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    connect().execute(f"alter database {name} set intervalstyle = iso_8601")
    with pgbouncer(database, tmp_path) as pooled:
        async with (
            AsyncClient(database) as client,
            Worker(pooled, noops(), is_pooled=True, listen=False),
        ):
            job = await client.enqueue("noop")
            assert await client.result(job.job_id, timeout=30) is None


async def test_nobodys_settings_change_what_a_worker_reads(
    database: str, connect: Callable[[], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    for setting in ("intervalstyle = sql_standard", "standard_conforming_strings = off"):
        connect().execute(f"alter database {name} set {setting}")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    registry = Registry()

    @registry.handler("say")
    async def say(payload: str, context: JobContext) -> str:
        await context.log("INFO", payload)
        return payload

    text = "\\ ' → 🎈"
    async with AsyncClient(database) as client, Worker(database, registry):
        job = await client.enqueue("say", text)
        assert await client.result(job.job_id, timeout=30) == text
        assert [line.message for line in await client.logs(job.job_id)] == [text]


async def test_no_backend_outlives_its_client(
    database: str, connect: Callable[[], Connection]
) -> None:
    """It waits for a lock when its client goes; the server looks every 5 s."""
    connection = connect()
    connect().execute("begin; lock table jobq_private.worker")
    link = Link(database, "doomed", deadline=0.5)
    with pytest.raises(DatabaseUnavailable):
        await link.call("select from jobq.heartbeat('me', '{}', '{}')")
    query = "select count(*) from pg_stat_activity where application_name = 'doomed'"

    async def is_gone() -> bool:
        return connection.execute(query).fetchone() == (0,)

    await until_async(is_gone, "for the backend to go")


@pytest.mark.prove
async def test_a_claim_that_takes_too_long_asks_for_less(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer of more than a few jobs is cut off by the deadline."""
    monkeypatch.setattr(tuning, "CALL_SECONDS", 2.0)
    with proxied(database) as (proxy, url):
        proxy.bytes_per_second = 400_000
        async with AsyncClient(database) as client:
            payload = {"kind": "noop", "payload": {"text": "x" * 100_000}}
            for _ in range(6):
                await client.enqueue_many([payload] * 10)
            async with Worker(url, noops(), concurrency=60, grace=0):

                async def some_ran() -> bool:
                    return sum(q.finished_last_minute for q in await client.queue_stats()) > 5

                await until_async(some_ran, "for jobs to end")


async def test_a_database_that_may_only_be_read_is_waited_for(
    database: str, connect: Callable[[], Connection], caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()
    begun, gate = asyncio.Event(), asyncio.Event()

    @registry.handler("a")
    async def handler() -> None:
        begun.set()
        await gate.wait()

    connection = connect()
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    others = (
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
    async with AsyncClient(database) as client, Worker(database, registry) as worker:
        job_id = (await client.enqueue("a")).job_id
        await begun.wait()
        connection.execute(f"alter database {name} set default_transaction_read_only = on")
        connection.execute(others)

        async def is_refused() -> bool:
            with pytest.raises(DatabaseUnavailable) as refused:
                await client.enqueue("b")
            return refused.value.sqlstate == "25006"

        await until_async(is_refused, "for a session that may only read")
        gate.set()

        async def is_told() -> bool:
            return any("read-only" in r.message for r in caplog.records)

        await until_async(is_told, "for the worker to see it")
        assert worker.health()["alive"] is True
        connection.execute(f"alter database {name} reset default_transaction_read_only")

        async def has_succeeded() -> bool:
            return (await client.get(job_id)).state == "succeeded"

        await until_async(has_succeeded, "for the result to be kept until it could be written")
        assert (await client.get(job_id)).attempts == 1

        async def is_taken() -> bool:
            with suppress(DatabaseUnavailable):
                return (await client.enqueue("b")).created
            return False

        await until_async(is_taken, "for a connection that may write")


@pytest.mark.prove
async def test_an_outage_is_told_and_does_not_fill_the_log(
    own_server: tuple[Server, str], caplog: pytest.LogCaptureFixture
) -> None:
    server, url = own_server
    async with Worker(url, noops()) as worker:
        server._pg_ctl("stop", "-m", "immediate")
        await asyncio.sleep(4)  # the length of the measurement, not a wait for something
        assert worker.health()["alive"] is True
        server._launch()
    about = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert 1 <= len(about) <= 8, about


@contextmanager
def pgbouncer(database: str, folder: Path, mode: str = "transaction") -> Iterator[str]:
    """Run PgBouncer in a mode before a database; yield the URL through it."""
    info = psycopg.conninfo.conninfo_to_dict(database)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = find_pgbouncer()
    assert program is not None
    users = folder / "users.txt"
    users.write_text(f'"{info["user"]}" "{info["password"]}"\n')
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n* = host={info['host']} port={info['port']}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"auth_type = plain\nauth_file = {users}\npool_mode = {mode}\n"
        "default_pool_size = 3\nunix_socket_dir =\n"
    )
    folder.chmod(0o755)
    for file in (users, config):
        file.chmod(0o644)
    command = [program, str(config)]
    if os.geteuid() == 0:
        command = [program, "-u", "nobody", str(config)]
    with (folder / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = psycopg.conninfo.make_conninfo(database, port=port)
    try:

        def answers() -> bool:
            try:
                psycopg.connect(url, connect_timeout=2).close()
            except psycopg.OperationalError:
                return False
            return True

        until(answers, "for pgbouncer")
        yield url
    finally:
        process.terminate()
        process.wait(60)
