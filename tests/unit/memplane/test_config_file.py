from pathlib import Path

import pytest

from memplane.config_file import read_config_file
from memplane.settings import BadConfig


def write(folder: Path, text: str) -> Path:
    path = folder / "memplane.toml"
    path.write_text(text)
    return path


def test_variables_are_filled_in_and_a_doubled_dollar_is_one(tmp_path: Path) -> None:
    path = write(tmp_path, '[record_store]\ndsn = "postgresql://app:${PASSWORD}@db/$$x"\nlist = ["${PASSWORD}"]')
    assert read_config_file(path, {"PASSWORD": "s$$ecret"}) == {
        "record_store": {"dsn": "postgresql://app:s$$ecret@db/$x", "list": ["s$$ecret"]}
    }


def test_variables_of_sections_that_are_not_used_need_not_be_set(tmp_path: Path) -> None:
    path = write(tmp_path, '[control]\nlisten = "h:1"\n[record_store]\ndsn = "${PASSWORD}"')
    assert read_config_file(path, {}, ("control",)) == {"control": {"listen": "h:1"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[recordstore]", "no section is called 'recordstore'; did you mean record_store"),
        ("record_store = 3", r"record_store is a section: write \[record_store\]"),
        ("[data]\na = 1\na = 2", "is not TOML: Cannot overwrite"),
        ("[data]\na = yes", "is not TOML.*line 2"),
        ('[data]\na = "${HOME2}"', r"data.a: the environment has no HOME2"),
        ('[data]\na = "${}"', r"data.a: \$\{\} names no variable"),
        ('[data]\na = "${A B}"', "names no variable"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        read_config_file(write(tmp_path, text), {})


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot be read: No such file"):
        read_config_file(tmp_path / "none.toml", {})
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfig, match="is not TOML"):
        read_config_file(tmp_path / "binary.toml", {})
    (tmp_path / "large.toml").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(BadConfig, match="at most 1048576 are read"):
        read_config_file(tmp_path / "large.toml", {})
