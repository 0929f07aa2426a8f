import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "deploy" / "compose"
TEXT = (COMPOSE / "compose.yaml").read_text()
FILE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
JOBS = {"migrate", "trust"}
SECRET = re.compile(r"PASSWORD|API_KEY|NODE_KEY$|SHA256")


def names_in(text: str) -> set[str]:
    return set(re.findall(r"(?<!\$)\$\{(\w+)", text))


def test_the_four_stores_both_planes_the_balancer_and_the_jobs_are_there() -> None:
    stores = {"postgres", "qdrant", "elasticsearch", "redis"}
    assert set(SERVICES) == {*stores, *JOBS, "control", "data", "balancer"}


def test_every_image_has_a_tag_that_names_a_version() -> None:
    for name, service in SERVICES.items():
        image = re.sub(r"\$\{\w+:-([^}]+)\}", r"\1", service["image"])
        assert re.search(r":v?\d+\.\d+", image), f"{name}: {image}"


def test_ports_are_published_on_the_loopback_and_by_two_services_only() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert set(published) == {"control", "balancer"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_no_network_with_stores_reaches_the_outside() -> None:
    assert FILE["networks"]["stores"]["internal"]
    assert FILE["networks"]["planes"]["internal"]
    for name in ("postgres", "qdrant", "elasticsearch", "redis"):
        assert SERVICES[name]["networks"] == ["stores"]
    assert "stores" not in SERVICES["control"]["networks"]
    assert "stores" not in SERVICES["balancer"]["networks"]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - JOBS))
def test_what_keeps_running_is_checked_limited_and_started_again(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_dependencies_are_awaited_and_lead_to_no_circle(name: str) -> None:
    for dependency, how in SERVICES[name].get("depends_on", {}).items():
        wanted = "service_completed_successfully" if dependency in JOBS else "service_healthy"
        assert how["condition"] == wanted, f"{name} -> {dependency}"
    waiting, seen = [name], set()
    while waiting:
        for dependency in SERVICES[waiting.pop()].get("depends_on", {}):
            assert dependency != name
            if dependency not in seen:
                seen.add(dependency)
                waiting.append(dependency)


@pytest.mark.parametrize("name", ["migrate", "control", "trust", "data", "balancer"])
def test_our_containers_may_write_nowhere_and_do_nothing_special(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_every_volume_is_declared_and_every_mounted_file_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = re.sub(r"\$\{\w+:-([^}]+)\}", r"\1", volume).split(":")[0]
            assert (COMPOSE / source).exists() if source.startswith(".") else source in FILE["volumes"]


def test_redis_appends_to_its_file_and_evicts_nothing() -> None:
    command = SERVICES["redis"]["command"][-1]
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_secrets_come_from_the_environment_alone() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if SECRET.search(variable):
                assert names_in(str(value)), f"{name}: {variable}"


def test_only_migrate_knows_the_owner_of_the_tables() -> None:
    holders = {name for name, service in SERVICES.items() if "MEMPLANE_OWNER_PASSWORD" in str(service)}
    assert holders == {"migrate", "postgres"}


def test_the_control_plane_knows_no_secret_of_a_store() -> None:
    assert names_in(str(SERVICES["control"]["environment"])) == {
        "MEMPLANE_ADMIN_KEY_SHA256",
        "MEMPLANE_NODE_KEY_SHA256",
    }


def test_each_service_has_the_variables_of_its_part_of_the_configuration() -> None:
    text = (COMPOSE / "memplane.toml").read_text()
    before, data = text.split("[data]")
    given = {name: set(SERVICES[name]["environment"]) for name in ("control", "data", "migrate")}
    assert names_in(before.partition("[control]")[2]) <= given["control"]
    # Docker gives every container its HOSTNAME.
    assert names_in(data) - {"HOSTNAME"} <= given["data"]
    assert names_in(data.partition("[record_store]")[2].partition("[vector_index]")[0]) <= given["migrate"]


def test_the_balancer_asks_for_reads_and_repeats_nothing_that_may_have_happened() -> None:
    [cluster] = yaml.safe_load((COMPOSE / "envoy.yaml").read_text())["static_resources"]["clusters"]
    assert cluster["health_checks"][0]["grpc_health_check"] == {"service_name": "memplane.v1.MemoryService"}
    found = re.findall(r"retry_on: (\S+)", (COMPOSE / "envoy.yaml").read_text())
    assert found == ["connect-failure,refused-stream,unavailable"]
