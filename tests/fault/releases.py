"""Faults of deployments: one that is killed and repeated, and an upgrade under load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from released import releases, sqitch

from catalog import catalog
from servers import copy_project

if TYPE_CHECKING:
    from rig import Rig

DEPLOYER = Path(__file__).with_name("deployer.py")


def deploy_killed(rig: Rig) -> None:
    """SIGKILL for a deployment at any moment, again and again, until one gets to the end.

    It hits the whole group of processes, or Sqitch alone, whose psql then goes on. What
    comes of it must be the schema that one undisturbed load makes.
    """
    rig.create()
    rig.load()
    whole = catalog(rig.url)
    with psycopg.connect(rig.server.url, autocommit=True) as admin:
        admin.execute(f'drop database "{rig.name}"')
        admin.execute(f'create database "{rig.name}"')
    project = copy_project(made(rig.folder / f"{rig.name}-project"))
    end = time.monotonic() + rig.duration
    while time.monotonic() < end:
        deployment = start(project, rig)
        try:
            deployment.wait(rig.random.uniform(0.5, rig.duration / 3))
        except subprocess.TimeoutExpired:
            kill(deployment, rig)
    finish(project, rig)
    assert catalog(rig.url) == whole, "the schema is not that of an undisturbed load"
    rig.configure()
    rig.start()


def upgrade(rig: Rig) -> None:
    """Back and forth between two releases, under old workers and producers.

    The newer one has a column more in the busiest tables and reworks functions and a
    trigger that all of them call; its deployments are killed, too.
    """
    rig.is_cut_off = True
    old, new = releases(made(rig.folder / f"{rig.name}-releases"))
    rig.create()
    finish(old, rig)
    rig.configure()
    rig.start()
    end = time.monotonic() + rig.duration
    while time.monotonic() < end:
        deployment = start(new, rig)
        time.sleep(rig.random.uniform(0.5, 3.0))
        kill(deployment, rig)
        finish(new, rig)
        rig.add_worker()
        sqitch(new, "revert", "-y", "--to", "@v0.1.0", target=rig.url)
        rig.faults += 1
    finish(new, rig)


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def start(project: Path, rig: Rig) -> subprocess.Popen[str]:
    """Start a deployment as the leader of a group of processes."""
    deployment = subprocess.Popen(
        [sys.executable, str(DEPLOYER), str(project), rig.url],
        start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    rig.groups.append(deployment)
    return deployment


def kill(deployment: subprocess.Popen[str], rig: Rig) -> None:
    """Kill a deployment: all its processes, or those between ours and psql."""
    if rig.random.random() < 0.5:
        os.killpg(deployment.pid, signal.SIGKILL)
    else:
        children = Path(f"/proc/{deployment.pid}/task/{deployment.pid}/children")
        for pid in (*map(int, children.read_text().split()), deployment.pid):
            os.kill(pid, signal.SIGKILL)
    deployment.communicate()
    rig.faults += 1


def finish(project: Path, rig: Rig) -> None:
    """Deploy to the end, as an operator who repeats the command would."""
    deployment = start(project, rig)
    words, _ = deployment.communicate(timeout=300)
    assert deployment.returncode == 0, words
