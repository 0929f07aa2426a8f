import re
from pathlib import Path

import pytest

from controlplane.config import read_config as read_control_config
from dataplane.config import read_config as read_data_config
from memplane.options import options_from
from tools.generate_config_doc import SECTIONS

ROOT = Path(__file__).parents[3]
FILES = (*sorted((ROOT / "examples" / "config").glob("*.toml")), ROOT / "deploy" / "compose" / "memplane.toml")
# What a URL, an address or a hash must look like; any other variable may be any text.
LIKE = {
    "MEMPLANE_ADMIN_KEY_SHA256": "0" * 64,
    "MEMPLANE_NODE_KEY_SHA256": "1" * 64,
    "MEMPLANE_QDRANT_URL": "http://qdrant:6334",
    "MEMPLANE_ELASTICSEARCH_URL": "http://elasticsearch:9200",
    "MEMPLANE_REDIS_ADDRESS": "redis:6379",
    "MEMPLANE_CONTROL_ADDRESS": "control:7700",
}


def variables(text: str) -> dict[str, str]:
    return {name: LIKE.get(name, "text") for name in re.findall(r"\$\{(\w+)\}", text)}


def test_there_are_examples() -> None:
    assert {path.name for path in FILES} == {"embedded.toml", "production.toml", "postgres-only.toml", "memplane.toml"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_control_plane_reads_the_file(path: Path) -> None:
    read_control_config(["--config", str(path)], variables(path.read_text()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_data_plane_reads_the_file_and_every_backend_its_options(path: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    local = tmp_path / path.name
    local.write_text(path.read_text().replace("/etc/memplane", str(tmp_path)))
    required = {"MEMPLANE_DATA_NODE_KEY": "key", "MEMPLANE_DATA_TRUSTED_KEY": "signing_key.pub"}
    config = read_data_config(["--config", str(local)], {**required, **variables(path.read_text())})
    kinds = {(section.name, section.adapter): section.options for section in SECTIONS}
    for name, part in config.parts.items():
        options_from(kinds[name, part.adapter], name, part.table)
    options_from(kinds["redis", ""], "redis", config.redis)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_secret_stands_in_the_file(path: Path) -> None:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(" = ")
        if key in {"dsn", "replica_dsn", "migrate_dsn", "password", "api_key", "node_key"}:
            assert "${" in value, line


def test_the_control_plane_needs_no_secret_of_a_store() -> None:
    path = ROOT / "deploy" / "compose" / "memplane.toml"
    control = path.read_text().partition("[data]")[0].rpartition("[control]")[2]
    names = set(variables(control))
    assert names == {"MEMPLANE_HOME", "MEMPLANE_POLICIES", "MEMPLANE_ADMIN_KEY_SHA256", "MEMPLANE_NODE_KEY_SHA256"}
