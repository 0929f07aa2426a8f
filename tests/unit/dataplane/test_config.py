import pytest

from dataplane.config import read_config
from memplane.settings import BadConfig


def test_a_required_setting_is_named_with_its_flag_and_its_variable() -> None:
    with pytest.raises(BadConfig, match="give --node-key, or MEMPLANE_DATA_NODE_KEY in the environment"):
        read_config(["--trusted-key", "key"], {})


def test_an_announcement_is_one_of_three() -> None:
    given = ["--trusted-key", "key", "--node-key", "k"]
    assert read_config(given, {}).announce == "none"
    with pytest.raises(BadConfig, match="none, text, json"):
        read_config([*given, "--announce", "loudly"], {})
