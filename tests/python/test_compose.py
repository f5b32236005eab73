"""docker-compose.yml fits the Compose schema and names commands that exist.

No Docker engine is needed: the same commands run in other tests without a container.
"""

from __future__ import annotations

import json
import re
import secrets
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import jsonschema
import psycopg
import pytest
import yaml

import jobq_cli as cli
from servers import ROOT, Cluster

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


def test_the_worker_serves_its_metrics_to_other_containers(compose: dict[str, Any]) -> None:
    command = compose["services"]["worker"]["command"]
    assert command[command.index("--metrics-host") + 1] == "0.0.0.0"


def test_health_is_asked_of_every_long_lived_service(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert all("healthcheck" in services[name] for name in ("database", "api", "worker"))


def test_only_what_deploys_is_a_superuser(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert users_of(services) == {"migrate": {"postgres"}, "api": {"app"}, "worker": {"app"}}
    mounted = services["database"]["volumes"][1].split(":")
    assert (ROOT / mounted[0]).is_file()
    assert mounted[1].startswith("/docker-entrypoint-initdb.d/")


def users_of(services: dict[str, Any]) -> dict[str, set[str]]:
    """Who connects to the database, by service."""
    return {
        name: set(re.findall("//([a-z]+):", url))
        for name, service in services.items()
        if (url := service.get("environment", {}).get("DATABASE_URL")) is not None
    }


def test_with_failover_only_what_deploys_is_a_superuser() -> None:
    services = yaml.safe_load((FAILOVER / "docker-compose.yml").read_text())["services"]
    assert users_of(services) == {
        "migrate": {"postgres"}, "login": {"postgres"}, "api": {"app"}, "worker": {"app"},
    }  # fmt: skip
    mounted, inside, _ = services["login"]["volumes"][0].split(":")
    assert (FAILOVER / mounted).is_file()
    assert inside in services["login"]["command"][-1]
    assert services["login"]["environment"].keys() >= {"APP_PASSWORD"}


def test_the_log_in_of_the_services_may_do_all_and_is_no_superuser(cluster: Cluster) -> None:
    script = (ROOT / "docs" / "compose.sql").read_text()
    template = (files("jobq_cli") / "template" / "database.sql").read_text()
    assert template.partition("\\getenv")[1:] == script.partition("\\getenv")[1:]
    role = f"app_{secrets.token_hex(4)}"
    script = script.replace("{app,", f"{{{role},").replace("role app ", f"role {role} ")
    script = script.replace("to app;", f"to {role};").replace("\\getenv", "\\set", 1)
    with cluster.database() as url:
        for _ in range(2):  # it may be repeated
            cluster.psql(url, script)
        log_in = f"{url}?user={role}&password=APP_PASSWORD"
        with psycopg.connect(log_in, autocommit=True) as connection:
            connection.execute("select jobq.enqueue('k')")
            connection.execute("select jobq.claim('{default}', 'w')")
            connection.execute("select * from jobq.list_jobs()")
            connection.execute("select jobq.pause_queue('default')")
            query = "select rolsuper from pg_roles where rolname = current_user"
            assert connection.execute(query).fetchone() == (False,)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"drop role {role}".encode())


def test_failover_has_three_nodes_of_each(compose: dict[str, Any]) -> None:
    services = yaml.safe_load((FAILOVER / "docker-compose.yml").read_text())["services"]
    assert set(services) == {*(f"{n}{i}" for n in ("etcd", "node") for i in (1, 2, 3)),
                             "migrate", "login", "api", "worker"}  # fmt: skip
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {service["build"]["target"] for service in services.values()} <= set(stages)
    for name in ("migrate", "api", "worker"):
        assert services[name]["command"] == compose["services"][name]["command"]
        assert "target_session_attrs=read-write" in services[name]["environment"]["DATABASE_URL"]


def test_failover_waits_for_a_standby() -> None:
    patroni = yaml.safe_load((FAILOVER / "patroni.yml").read_text())["bootstrap"]["dcs"]
    assert patroni["synchronous_mode"] and patroni["synchronous_mode_strict"]
    assert patroni["ttl"] >= patroni["loop_wait"] + 2 * patroni["retry_timeout"]
