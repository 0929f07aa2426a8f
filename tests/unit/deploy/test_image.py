import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
FINAL = DOCKERFILE.rpartition("\nFROM ")[2]


def test_the_last_stage_runs_as_nobody_in_particular_and_stops_on_sigterm() -> None:
    assert "USER 10001:10001" in FINAL
    assert "STOPSIGNAL SIGTERM" in FINAL
    assert "OMP_NUM_THREADS=1" in FINAL
    assert "HEALTHCHECK" in FINAL


def test_the_base_has_a_tag_that_names_a_version() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert set(bases) == {"python:3.12.12-slim-bookworm"}


def test_everything_that_the_wheel_is_built_from_reaches_the_build() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], "pyproject.toml", "LICENSE", "README.md"}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = set(re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE))
    assert needed == allowed == {name for line in copied for name in line.split()}


def test_the_image_names_the_version_of_the_project() -> None:
    version = re.search(r'__version__ = "(.+)"', (ROOT / "memplane" / "__init__.py").read_text())
    assert version
    assert f'image.version="{version[1]}"' in DOCKERFILE
    assert f"memplane:{version[1]}}}" in (ROOT / "deploy" / "compose" / "compose.yaml").read_text()
