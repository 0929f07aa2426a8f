import hashlib
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

COMPOSE = Path(__file__).parents[3] / "deploy" / "compose"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("new-env.sh", ".env.example"):
        shutil.copy(COMPOSE / name, tmp_path)
    return tmp_path


def run(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["sh", str(folder / "new-env.sh")], capture_output=True, text=True, timeout=30, check=False)


def read(folder: Path) -> dict[str, str]:
    lines = (folder / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_every_secret_is_fresh_and_the_file_is_private(folder: Path) -> None:
    done = run(folder)
    values = read(folder)
    assert done.returncode == 0, done.stderr
    assert all(values.values())
    assert len(set(values.values())) == len(values)
    assert stat.S_IMODE((folder / ".env").stat().st_mode) == 0o600


def test_hashes_are_those_of_the_keys_and_the_administrators_key_is_only_printed(folder: Path) -> None:
    key = run(folder).stdout.strip().removeprefix("export MEMPLANE_API_KEY=")
    values = read(folder)
    assert re.fullmatch(r"mpk_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", key)
    assert values["MEMPLANE_ADMIN_KEY_SHA256"] == hashlib.sha256(key.encode()).hexdigest()
    assert values["MEMPLANE_NODE_KEY_SHA256"] == hashlib.sha256(values["MEMPLANE_NODE_KEY"].encode()).hexdigest()
    assert key not in (folder / ".env").read_text()


def test_a_file_that_is_there_is_kept(folder: Path) -> None:
    (folder / ".env").write_text("MEMPLANE_NODE_KEY=mine\n")
    assert run(folder).returncode == 1
    assert read(folder) == {"MEMPLANE_NODE_KEY": "mine"}


def test_every_variable_that_compose_asks_for_is_made(folder: Path) -> None:
    run(folder)
    asked = set(re.findall(r"\$\{(\w+):\?", (COMPOSE / "compose.yaml").read_text()))
    assert asked == set(read(folder))
