"""The manifests in docs/kubernetes: valid, and doing what jobq's programs need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml

from jobq_cli import main
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    Connect = Callable[[], psycopg.Connection[tuple[Any, ...]]]

FOLDER = ROOT / "docs" / "kubernetes"
NEWEST = "1.34"


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


CONTAINERS = [
    (path.name, manifest["spec"]["template"]["spec"])
    for path in sorted(FOLDER.glob("*.yaml"))
    for manifest in manifests(path.name)
    if "template" in manifest.get("spec", {})
]


@pytest.mark.parametrize("name", [path.name for path in sorted(FOLDER.glob("*.yaml"))])
def test_a_manifest_is_valid(name: str) -> None:
    for manifest in manifests(name):
        if manifest["apiVersion"].startswith("keda.sh/"):
            continue  # its schema is KEDA's; see the test of the scaler
        kubernetes_validate.validate(manifest, NEWEST, strict=True)


@pytest.mark.parametrize(("name", "pod"), CONTAINERS)
def test_a_container_runs_a_command_that_exists(name: str, pod: dict[str, Any]) -> None:
    [container] = pod["containers"]
    program, command, *arguments = container["command"]
    assert program == "jobq"
    known = {flag for option in main.commands[command].params for flag in option.opts}
    assert {word for word in arguments if word.startswith("--")} <= known
    for probe in ("livenessProbe", "readinessProbe"):
        if probe in container:
            assert container[probe]["httpGet"]["port"] in {p["name"] for p in container["ports"]}


def test_a_worker_has_time_to_finish_its_jobs() -> None:
    [manifest] = manifests("worker.yaml")
    pod = manifest["spec"]["template"]["spec"]
    words = pod["containers"][0]["command"]
    assert pod["terminationGracePeriodSeconds"] > int(words[words.index("--grace") + 1])


def test_the_scaler_counts_what_workers_have_to_do(connect: Connect) -> None:
    authentication, scaler = manifests("scaler.yaml")
    [worker] = manifests("worker.yaml")
    spec = scaler["spec"]
    assert spec["scaleTargetRef"]["name"] == worker["metadata"]["name"]
    [trigger] = spec["triggers"]
    assert trigger["type"] == "postgresql"
    assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
    query = trigger["metadata"]["query"]
    with connect() as connection:
        assert connection.execute(query).fetchone() == (0,)
        connection.execute("select jobq.enqueue('a') from generate_series(1, 3)")
        connection.execute("select jobq.enqueue('a', run_at => now() + interval '1 day')")
        connection.execute("select count(*) from jobq.claim('{default}', 'me')")
        connection.execute("set role jobq_reader")
        assert connection.execute(query).fetchone() == (3,)
