"""docker-compose.yml fits the Compose schema and names commands that exist.

No Docker engine is needed: the same commands run in other tests without a container.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
import yaml

from jobq import cli
from servers import ROOT

SCHEMA = Path(__file__).parent / "compose_spec" / "compose_spec.json"


FAILOVER = ROOT / "docs" / "failover"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """docker-compose.yml, parsed."""
    parsed: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return parsed


@pytest.mark.parametrize("folder", [ROOT, FAILOVER], ids=["one server", "failover"])
def test_it_fits_the_schema(folder: Path) -> None:
    schema = json.loads(SCHEMA.read_text())
    parsed = yaml.safe_load((folder / "docker-compose.yml").read_text())
    jsonschema.Draft7Validator(schema).validate(parsed)


def test_the_schema_refuses_a_misspelt_field(compose: dict[str, Any]) -> None:
    schema = json.loads(SCHEMA.read_text())
    service = compose["services"]["api"] | {"comand": ["jobq", "http"]}
    with pytest.raises(jsonschema.ValidationError, match="comand"):
        jsonschema.Draft7Validator(schema).validate({"services": {"api": service}})


def test_it_has_the_four_services(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"database", "migrate", "api", "worker"}


def test_services_depend_on_services_that_exist(compose: dict[str, Any]) -> None:
    services = compose["services"]
    needed = {n for service in services.values() for n in service.get("depends_on", {})}
    assert needed <= set(services)
    for name, condition in services["api"]["depends_on"].items():
        if condition["condition"] == "service_healthy":
            assert "healthcheck" in services[name]


@pytest.mark.parametrize("service", ["migrate", "api", "worker"])
def test_its_image_is_a_stage_of_the_dockerfile(compose: dict[str, Any], service: str) -> None:
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert compose["services"][service]["build"]["target"] in stages


@pytest.mark.parametrize("service", ["migrate", "api", "worker"])
def test_its_command_is_one_of_the_cli(
    compose: dict[str, Any], service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in compose["services"][service]["environment"].items():
        monkeypatch.setenv(variable, value)
    program, name, *arguments = compose["services"][service]["command"]
    assert program == "jobq"
    assert isinstance(cli.main, click.Group)
    command = cli.main.commands[name]
    # Parses the arguments, raising click.UsageError, and runs nothing.
    command.make_context(name, list(arguments))


def test_health_is_asked_of_every_long_lived_service(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert all("healthcheck" in services[name] for name in ("database", "api", "worker"))


def test_failover_has_three_nodes_of_each(compose: dict[str, Any]) -> None:
    services = yaml.safe_load((FAILOVER / "docker-compose.yml").read_text())["services"]
    assert set(services) == {*(f"{n}{i}" for n in ("etcd", "node") for i in (1, 2, 3)),
                             "migrate", "api", "worker"}  # fmt: skip
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {service["build"]["target"] for service in services.values()} <= set(stages)
    for name in ("migrate", "api", "worker"):
        assert services[name]["command"] == compose["services"][name]["command"]
        assert "target_session_attrs=read-write" in services[name]["environment"]["DATABASE_URL"]


def test_failover_waits_for_a_standby() -> None:
    patroni = yaml.safe_load((FAILOVER / "patroni.yml").read_text())["bootstrap"]["dcs"]
    assert patroni["synchronous_mode"] and patroni["synchronous_mode_strict"]
    assert patroni["ttl"] >= patroni["loop_wait"] + 2 * patroni["retry_timeout"]
