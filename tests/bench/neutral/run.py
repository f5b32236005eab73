#!/usr/bin/env python3
"""Run cells of the harness hardbyte/postgresql-job-queue-benchmarking without Docker.

    run.py HARNESS [--systems jobq,procrastinate] [--cells chaos,pressure] [--results FILE]
    run.py --table FILE...

HARNESS is a checkout of it; its code, its phases and its summary are used as they are. What it
does with Docker is done here by a private PostgreSQL 18 with the harness's `postgres.conf`, and
adapters run as processes of this machine. Peers come from the environments of `make bench-peers`.
Each phase of a cell becomes a line of FILE; --table prints what its cells have come to.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any, Final

import psycopg

from jobq_embedded import Server

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[2]
PEERS: Final = ROOT / ".jobq" / "peers"
sys.path.insert(0, str(HERE.parent / "peers"))
METRICS: Final = ("enqueue_rate", "completion_rate", "claim_p50_ms", "claim_p99_ms", "queue_depth")
COLUMNS: Final = (
    "system", "cell", "ended", "phase", "type", "seconds", *METRICS, "depth_peak",
    "jobs_lost", "recovery_s", "at",
)  # fmt: skip
LONGEST: Final = 900  # seconds of a cell, as in the harness's own sweep


@dataclass(frozen=True, slots=True)
class Cell:
    """What the harness's published sweep runs as one cell.

    Attributes:
        group: which part of the sweep it is of.
        phases: as the harness reads them.
        rate: jobs per second that each replica offers.
        workers: concurrency of a replica.
        depth: jobs that are kept waiting, instead of a rate.
    """

    group: str
    phases: tuple[str, ...]
    rate: int
    workers: int = 32
    replicas: int = 1
    depth: int | None = None


def chaos(*phases: str, rate: int = 600, replicas: int = 1) -> Cell:
    """Return a cell that begins with the baseline of all of them."""
    return Cell("chaos", ("warmup=warmup:30s", "baseline=clean:60s", *phases,
                          "recovery=clean:60s"), rate, replicas=replicas)  # fmt: skip


def pressure(stress: str, recovery: int, rate: int = 800, workers: int = 32) -> Cell:
    """Return a cell with a long phase of stress."""
    return Cell("pressure", ("warmup=warmup:30s", "clean=clean:60s", f"stress={stress}",
                             f"recovery=clean:{recovery}s"), rate, workers)  # fmt: skip


def throughput(workers: int) -> Cell:
    """Return a cell that has as many jobs done as can be, shorter than the harness has it."""
    return Cell("throughput", ("warmup=warmup:10s", "clean=clean:30s"), 50_000, workers,
                depth=4000)  # fmt: skip


CELLS: Final = {
    "postgres_restart": chaos("restart=postgres-restart:60s"),
    "pg_backend_kill": chaos("kills=pg-backend-kill(rate=2):60s"),
    "pool_exhaustion": chaos("exhaustion=pool-exhaustion(idle_conns=300):60s"),
    "crash_recovery": chaos(
        "kill=kill-worker(instance=0):60s", "restart=start-worker(instance=0):60s",
        rate=300, replicas=2,
    ),
    "repeated_kills": chaos(
        "repeated=repeated-kill(instance=0,period=20s):120s", rate=300, replicas=2
    ),
    "idle_in_tx": pressure("idle-in-tx:240s", 180),
    "sustained_high_load": pressure("high-load:240s", 120),
    "active_readers": pressure("active-readers:240s", 120),
    "event_burst": pressure("high-load:300s", 240, rate=1200, workers=64),
    "throughput_16": throughput(16),
    "throughput_64": throughput(64),
    "throughput_256": throughput(256),
}  # fmt: skip


def main() -> None:
    """Run the cells, or print the table of earlier ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("harness", type=Path, nargs="?")
    parser.add_argument("--systems", default="jobq")
    parser.add_argument("--cells", default="chaos,pressure", help=f"groups, or {', '.join(CELLS)}")
    parser.add_argument("--port", type=int, default=15555)
    parser.add_argument("--scale", type=float, default=1, help="of the length of phases")
    parser.add_argument("--results", type=Path, default=ROOT / ".jobq" / "neutral.csv")
    parser.add_argument("--table", type=Path, nargs="+")
    options = parser.parse_args()
    if options.table:
        print(table([row for file in options.table for row in read(file)]))
        return
    if options.harness is None:
        parser.error("name the folder of the harness")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the server ends too
    wanted = options.cells.split(",")
    cells = [n for n, cell in CELLS.items() if n in wanted or cell.group in wanted]
    harness = Harness(options.harness.resolve(), options.port)
    for name in cells:
        for system in options.systems.split(","):
            rows = harness.run(system, name, CELLS[name], options.scale)
            write(options.results, rows)
            print(table(rows), flush=True)


class Harness:
    """The harness's own code, with what is Docker's replaced.

    Args:
        folder: the checkout.
        port: of the private server.
    """

    def __init__(self, folder: Path, port: int) -> None:
        sys.path.insert(0, str(folder))
        for name in ("plots", "report"):  # they draw, and need packages for it
            drawing: Any = ModuleType(f"bench_harness.{name}")
            drawing.render_all = drawing.write_interactive_report = lambda *_, **__: None
            sys.modules[f"bench_harness.{name}"] = drawing
        from bench_harness import adapters, orchestrator, phases  # type: ignore[import-not-found] # noqa: PLC0415

        self.folder, self.port = folder, port
        self.adapters, self.phases, self.orchestrator = adapters, phases, orchestrator
        self.server: Server | None = None
        self.data = Path(mkdtemp(prefix="jobq-neutral-"))
        self.data.chmod(0o755)
        adapters.PG_PORT = port
        orchestrator.RESULTS_ROOT = self.data / "results"
        orchestrator.start_postgres = lambda _image: self.start()
        orchestrator.stop_postgres = lambda _image: self.forget()
        orchestrator._compose_stop_postgres = lambda _image: self.stop()
        orchestrator._compose_start_postgres = lambda _image: self.start()
        orchestrator.preflight_database = self.prepare
        adapters.ADAPTERS = orchestrator.ADAPTERS = {
            name: adapters.AdapterEntry(folder, lambda _skip: None, launcher)
            for name, folder, launcher in self.systems()
        }

    def systems(self) -> list[tuple[str, Path, Any]]:
        """Return each system's folder and what starts it."""
        peers = str(PEERS / "venv" / "bin" / "python")
        node = PEERS / "node" / "node_modules"
        nodes = sorted(node.glob("node-*/bin/node"))
        found = [("jobq", HERE, self.launcher(sys.executable, HERE / "adapter.py"))]
        for name in ("procrastinate", "pgmq", "absurd"):
            folder = self.folder / f"{name}-bench"
            sql = {"ABSURD_SQL_PATH": str(self.data / "absurd.sql")}
            found.append((name, folder, self.launcher(peers, folder / "main.py", **sql)))
        folder = self.folder / "pgboss-bench"
        program = str(nodes[0]) if nodes else "node"
        launch = self.launcher(program, folder / "main.js", NODE_PATH=str(node))
        return [*found, ("pgboss", folder, launch)]

    def launcher(self, program: str, script: Path, **extra: str) -> Any:
        """Return what starts an adapter as a process of this machine."""

        def launch(manifest: Any, overrides: dict[str, str]) -> Any:
            env = self.adapters._base_env(manifest, overrides)
            return self.adapters.LaunchSpec(argv=[program, str(script)], env={**env, **extra})

        return launch

    # ---- the server, in place of a container

    def start(self) -> None:
        """Start the server, and let in the user that the harness has."""
        if self.server is None:
            folder = Path(mkdtemp(dir=self.data, prefix="server-"))
            folder.chmod(0o755)
            self.server = Server(folder, "18", port=self.port, settings=self.settings())
        self.server.start()
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            if not connection.execute("select 1 from pg_roles where rolname = 'bench'").fetchone():
                connection.execute("create role bench superuser login password 'bench'")

    def stop(self) -> None:
        """Stop the server, as when a container is stopped."""
        if self.server is not None:
            self.server.stop()

    def forget(self) -> None:
        """Stop the server; the next one is new."""
        self.stop()
        self.server = None

    def settings(self) -> dict[str, str]:
        """Return those of the harness's postgres.conf."""
        found = re.findall(
            r"^(\w+) *= *('?)(.*?)\2 *$", (self.folder / "postgres.conf").read_text(), re.MULTILINE
        )
        return {name: value for name, _, value in found if name != "listen_addresses"}

    def prepare(self, manifest: Any, *, recreate: bool = False) -> None:
        """Create a system's database; pgstattuple, which the harness adds, is not in the wheel."""
        assert self.server is not None
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            if recreate:
                connection.execute(f'drop database if exists "{manifest.db_name}" with (force)')
            connection.execute(f'create database "{manifest.db_name}"')
        texts = {
            "pgmq": "from pgmq.install import get_embedded_install_sql as sql; print(sql())",
            "absurd": "from absurdctl import BUNDLED_SCHEMA_SQL as sql; print(sql)",
        }
        if manifest.system not in texts:
            return
        command = [str(PEERS / "venv" / "bin" / "python"), "-c", texts[manifest.system]]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (self.data / f"{manifest.system}.sql").write_text(text)
        if manifest.system == "pgmq":
            with psycopg.connect(self.adapters.pg_url(manifest.db_name)) as connection:
                connection.execute(text.encode())

    # ---- cells

    def run(self, system: str, name: str, cell: Cell, scale: float = 1) -> list[dict[str, object]]:
        """Run a cell, and return a line for each phase of it, or one that says how it failed."""
        if system != "jobq":
            import environments  # noqa: PLC0415
            from systems import SYSTEMS  # noqa: PLC0415

            environments.make(PEERS, SYSTEMS["pg-boss" if system == "pgboss" else system])
        phases = [
            re.sub(r"(\d+)s$", lambda found: f"{float(found[1]) * scale:.0f}s", phase)
            for phase in cell.phases
        ]
        started, ended, folder = time.monotonic(), "", None
        try:
            folder = self.orchestrator.drive(
                systems=[system], scenario=name,
                phases=self.phases.resolve_scenario(None, phases),
                pg_image="", fast=False, skip_build=True, sample_every_s=5,
                producer_rate=cell.rate,
                producer_mode="fixed" if cell.depth is None else "depth-target",
                target_depth=cell.depth or 1000, worker_count=cell.workers,
                high_load_multiplier=1.5, awa_completion_batch_size=None,
                replicas=cell.replicas, cli_args=[],
            )  # fmt: skip
        except Exception as error:
            ended = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        took = time.monotonic() - started
        ended = ended or ("complete" if took < LONGEST else "too long")
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
        head = {"system": system, "cell": name, "ended": ended, "seconds": round(took), "at": at}
        if folder is None:
            return [head]
        summary = json.loads((folder / "summary.json").read_text())
        return [
            {**head, "phase": label, "type": phase["phase_type"], **figures(phase)}
            for label, phase in summary["systems"][system]["phases"].items()
        ]


def figures(phase: dict[str, Any]) -> dict[str, object]:
    """Return what the harness's summary says of a phase."""
    metrics = phase["metrics"]
    found: dict[str, object] = {
        name: round(metrics[name]["median"], 1) for name in METRICS if name in metrics
    }
    found["depth_peak"] = round(metrics.get("queue_depth", {}).get("peak", 0))
    for name, column in (("jobs_lost", "jobs_lost"), ("chaos_recovery_time_s", "recovery_s")):
        value = phase.get(name, metrics.get(name))
        value = value.get("median") if isinstance(value, dict) else value
        found[column] = "" if value is None else round(value, 1)
    return found


def write(file: Path, rows: list[dict[str, object]]) -> None:
    """Add lines to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    is_new = not file.exists()
    with file.open("a", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, restval="", lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def read(file: Path) -> list[dict[str, str]]:
    """Return the lines of a file."""
    with file.open(newline="") as handle:
        return list(csv.DictReader(handle))


def table(rows: list[Any]) -> str:
    """Return a line for each cell: how its last run ended, what was done of what was offered."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["cell"], row["system"]), []).append(row)
    lines = [
        "| cell | system | ended | undisturbed, jobs/s | done of offered: disturbed | afterwards"
        " | lost | recovered after, s | pick-up afterwards, p99 ms | deepest queue |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (cell, system), all_phases in cells.items():
        phases = [row for row in all_phases if row["at"] == all_phases[-1]["at"]]
        end = phases[-1]
        if end.get("completion_rate") in (None, ""):
            lines.append(f"| {cell} | {system} | {end['ended']} | | | | | | | |")
            continue
        deepest = max(float(row["depth_peak"] or 0) for row in phases)
        lines.append(
            f"| {cell} | {system} | {end['ended']} | {float(phases[0]['completion_rate']):,.0f} |"
            f" {share(phases[1:-1])} | {share(phases[-1:])} | {end['jobs_lost']} |"
            f" {end['recovery_s']} | {end['claim_p99_ms']} | {deepest:,.0f} |"
        )
    return "\n".join(lines)


def share(phases: list[dict[str, Any]]) -> str:
    """Return how much of what was offered was done in phases; nothing where there are none."""
    offered, done = (
        sum(float(row[rate]) for row in phases) for rate in ("enqueue_rate", "completion_rate")
    )
    return f"{done / offered:.0%}" if offered else ""


if __name__ == "__main__":
    # Adapters that read tokens of the harness would not follow a phase with a higher rate.
    os.environ["PRODUCER_PACING"] = "adapter"
    main()
