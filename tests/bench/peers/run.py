"""Measure jobq and other queues side by side, on one PostgreSQL, in interleaved rounds.

Usage: python tests/bench/peers/run.py [--systems a,b] [--measures a,b] [--rounds 3] ...

The peers are installed at pinned versions into .jobq/peers. Every measure runs in a fresh
database of one private server per major version, with fsync on and the same settings for
all. Figures go to a JSON file and, as medians and ranges, to a table.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import environments
import figures
import psycopg
from measures import MEANINGS, MEASURES, ONCE, Sizes
from rig import SETTINGS, AgentError, Rig
from systems import SYSTEMS, System

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / ".jobq" / "peers"


def main() -> None:
    """Set up, measure, print and write."""
    options = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sizes = Sizes(**{f.name: getattr(options, f.name) for f in dataclasses.fields(Sizes)})
    report = earlier(options.json) if options.add else {"figures": [], "versions": {}}
    not_run: dict[str, str] = {}
    systems = available([SYSTEMS[name] for name in options.systems], not_run)
    with Rig(PEERS) as rig:
        try:
            measure(rig, systems, options, sizes, report["figures"])
        finally:
            report |= about(rig, sizes, systems, not_run)
            report["versions"] = {**report["versions"], **rig.versions}
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    print()
    print(figures.table(report["figures"], report["versions"], report["calls"]))
    print()
    print(figures.LEGEND)
    for line in figures.failures(report["figures"]):
        print(line)
    for name, reason in not_run.items():
        print(f"not run: {name}: {reason}")
    print(f"figures: {options.json}")


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="\n\n".join(
            (
                listed("systems", {system.name: system.note for system in SYSTEMS.values()}),
                listed("measures, each of the systems that can", MEANINGS),
            )
        ),
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    some = "all by default, with commas between them; listed below"
    add("--systems", metavar="A,B", type=names_of(SYSTEMS), default=list(SYSTEMS), help=some)
    add("--measures", metavar="A,B", type=names_of(MEASURES), default=list(MEASURES), help=some)
    add("--rounds", type=int, default=3, help="%(default)s; what is measured once has one")
    add("--json", type=Path, default=ROOT / ".jobq" / "bench-peers.json", help="where figures go")
    add("--add", action="store_true", help="keep the figures of earlier runs")
    meanings = dict(re.findall(r"^ +(\w+): (.+)$", Sizes.__doc__ or "", re.MULTILINE))
    for field in dataclasses.fields(Sizes):
        name = f"--{field.name.replace('_', '-')}"
        said = f"{meanings[field.name].rstrip('.')}: %(default)s by default"
        add(name, metavar="N", type=type(field.default), default=field.default, help=said)
    return parser.parse_args()


def listed(title: str, meanings: dict[str, str]) -> str:
    """Return names with what they mean, a line for each."""
    width = max(map(len, meanings))
    return "\n".join((f"{title}:", *(f"  {n:<{width}}  {m}" for n, m in meanings.items())))


def names_of(known: dict[str, Any]) -> Any:
    """Make a reader of names with commas between them."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return names

    return read


def earlier(path: Path) -> dict[str, Any]:
    """Return the report of earlier runs, if there is one."""
    if not path.is_file():
        return {"figures": [], "versions": {}}
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def available(systems: Sequence[System], not_run: dict[str, str]) -> list[System]:
    """Return the systems whose environment is there; note why others are not run."""
    found = []
    for system in systems:
        try:
            environments.make(PEERS, system)
        except environments.MissingError as reason:
            not_run[system.name] = str(reason)
        else:
            found.append(system)
    return found


def measure(
    rig: Rig,
    systems: Sequence[System],
    options: argparse.Namespace,
    sizes: Sizes,
    raw: list[figures.Raw],
) -> None:
    """Take every measure of every system in turn, round by round; add to the raw figures."""
    for number in range(options.rounds):
        for name in options.measures:
            for system in systems:
                if not is_due(name, system, number):
                    continue
                entry: figures.Raw = {"system": system.name, "measure": name, "round": number + 1}
                begin = time.monotonic()
                try:
                    entry["figures"] = MEASURES[name](rig, system, sizes)
                    said = ", ".join(f"{k} {v:,.4g}" for k, v in entry["figures"].items())
                except (AgentError, TimeoutError, psycopg.Error) as error:
                    entry["failed"] = said = str(error)
                raw.append(entry)
                seconds = time.monotonic() - begin
                print(
                    f"{number + 1} {name:<15}{system.name:<17}{said}  [{seconds:.0f} s]", flush=True
                )


def is_due(name: str, system: System, number: int) -> bool:
    """Tell whether a round takes a measure of a system."""
    if name == "drain2" and system.max_workers < 2:
        return False
    return name in system.measures and (number == 0 or name not in ONCE)


def about(
    rig: Rig, sizes: Sizes, systems: Sequence[System], not_run: dict[str, str]
) -> dict[str, Any]:
    """Return what a reader of the figures must know of the run."""
    return {
        "machine": {"cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
        "postgres": {
            version: rig.admin(version, "show server_version")[0][0]
            for version in sorted({system.postgres for system in systems})
        },
        "settings": {**SETTINGS, "fsync": "on", "synchronous_commit": "on"},
        "sizes": dataclasses.asdict(sizes),
        "calls": {system.name: system.call for system in SYSTEMS.values()},
        "notes": {system.name: system.note for system in SYSTEMS.values()},
        "not_run": not_run,
    }


if __name__ == "__main__":
    main()
