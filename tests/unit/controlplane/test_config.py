from pathlib import Path

import pytest

from controlplane.config import read_config
from memplane.settings import BadConfig

HASH = "a" * 64


def test_without_settings_the_defaults_hold() -> None:
    config = read_config([], {})
    assert config.listen == "127.0.0.1:7700"
    assert config.signing_key_file == Path(".memplane/control/signing_key.pem")
    assert (config.policy_folder, config.bootstrap_admin_sha256, config.node_key_sha256) == (None, None, None)
    assert config.heartbeat_s == 5.0


def test_a_flag_beats_the_environment_which_beats_the_default() -> None:
    environment = {"MEMPLANE_CONTROL_LISTEN": "0.0.0.0:1", "MEMPLANE_CONTROL_POLICY_FOLDER": "/p"}
    config = read_config(["--listen", "[::1]:2"], environment)
    assert config.listen == "[::1]:2"
    assert config.policy_folder == Path("/p")


def test_secrets_print_as_stars() -> None:
    config = read_config(["--bootstrap-admin-sha256", HASH, "--node-key-sha256", HASH], {})
    assert config.node_key_sha256 == HASH
    assert HASH not in repr(config)
    assert "***" in repr(config)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("listen", "7700"),
        ("listen", "host:99999"),
        ("listen", "a b:1"),
        ("node-key-sha256", "the-key-itself"),
        ("bootstrap-admin-sha256", HASH.upper()),
        ("heartbeat-s", "often"),
        ("heartbeat-s", "0"),
        ("heartbeat-s", "6"),
        ("heartbeat-s", "nan"),
    ],
)
def test_a_wrong_setting_is_named_and_a_key_not_repeated(flag: str, value: str) -> None:
    with pytest.raises(BadConfig, match=flag) as raised:
        read_config([f"--{flag}", value], {})
    assert "the-key-itself" not in str(raised.value)


def test_an_unknown_flag_ends_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_config(["--polcy-folder", "x"], {})
    assert "--polcy-folder" in capsys.readouterr().err


def test_revisions_lie_in_the_data_folder_in_a_file_or_in_a_database() -> None:
    assert read_config(["--data-dir", "/d"], {}).revisions_file == Path("/d/revisions.sqlite3")
    assert read_config(["--revisions-file", "/r"], {}).revisions_file == Path("/r")
    config = read_config([], {"MEMPLANE_CONTROL_REVISIONS_DSN": "postgresql://ann:secret@db/policy"})
    assert config.revisions_dsn == "postgresql://ann:secret@db/policy"
    assert "secret@" not in repr(config)
    with pytest.raises(BadConfig, match="revisions-file is given, too"):
        read_config(["--revisions-file", "/r", "--revisions-dsn", "postgresql://db/policy"], {})
