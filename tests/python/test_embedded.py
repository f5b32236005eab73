"""The private server: starting, finding, recovering and stopping it."""

from __future__ import annotations

import os
import stat
import subprocess
from typing import TYPE_CHECKING

import psycopg
import pytest

import jobq_embedded as embedded
from jobq_embedded import Server, ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("embedded")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder in one that only this user may enter."""
    closed = tmp_path_factory.mktemp("closed")
    closed.chmod(0o700)
    yield closed / "data"
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def server(folder: Path) -> Server:
    return Server(folder, durable=False, settings={"fsync": "off", "work_mem": "7MB"})


def ask(server: Server, query: str) -> object:
    with psycopg.connect(server.url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def test_it_starts_and_stops(folder: Path) -> None:
    with server(folder) as running:
        assert ask(running, "show work_mem") == "7MB"
        assert ask(running, "show server_encoding") == "UTF8"
        assert ask(running, "show listen_addresses") == "127.0.0.1"
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(running.url)


def test_it_keeps_data_port_and_password(folder: Path) -> None:
    with server(folder) as first, psycopg.connect(first.url) as connection:
        connection.execute("create table kept as select 42 as answer")
    with server(folder) as second:
        assert second.url == first.url
        assert ask(second, "select answer from kept") == 42


def test_it_wants_the_password(folder: Path) -> None:
    with server(folder) as running:
        url = running.url.replace("postgres:", "postgres:x", 1)
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(url)
        mode = (folder / "password").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


def test_a_running_server_is_used_and_left_running(folder: Path) -> None:
    with server(folder) as owner:
        with server(folder) as guest:
            assert guest.url == owner.url
        assert ask(owner, "select 1") == 1


def test_a_server_whose_starter_died_is_stopped(folder: Path) -> None:
    server(folder).start()
    dead = subprocess.Popen(["true"])
    dead.wait()
    (folder / "owner").write_text(f"{dead.pid}\n")
    with server(folder) as heir:
        assert ask(heir, "select 1") == 1
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(heir.url)


def test_a_stale_pid_file_with_the_pid_of_another_program(folder: Path) -> None:
    with server(folder) as running:
        port = running.port
    stale = f"{os.getpid()}\n{folder}/cluster\n0\n{port}\n\n127.0.0.1\n"
    (folder / "cluster" / "postmaster.pid").write_text(stale)
    with server(folder) as running:
        assert ask(running, "select 1") == 1


def test_a_folder_in_use_by_another_container_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "SECONDS_TO_END", 0.1)
    with server(folder) as running:
        pid_file = folder / "cluster" / "postmaster.pid"
        before = pid_file.read_text()
        pid_file.write_text(before.replace(before.split()[0], "1", 1))  # as in another container
        with pytest.raises(ServerError, match="another container"):
            server(folder).start()
        pid_file.write_text(before)
        assert ask(running, "select 1") == 1


def test_a_half_made_folder_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "data" / "cluster" / "base").mkdir(parents=True)
    with server(tmp_path / "data") as running:
        assert ask(running, "select 1") == 1


def test_a_failure_shows_the_log(folder: Path) -> None:
    broken = Server(folder, durable=False, settings={"shared_buffers": "nonsense"})
    with pytest.raises(ServerError, match="shared_buffers"):
        broken.start()


def test_an_unknown_version_names_the_remedy() -> None:
    with pytest.raises(ServerError, match="pip install") as raised:
        embedded.find_bin_dir("7")
    assert "DATABASE_URL" in raised.value.remedy
