"""Whoever runs on the embedded stores needs none of the drivers of the extra `stores`."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
MODULES = {
    "elasticsearch": ("elasticsearch", "elastic_transport", "aiohttp"),
    "psycopg": ("psycopg", "psycopg_pool", "psycopg_binary"),
    "qdrant-client": ("qdrant_client",),
    "redis": ("redis", "hiredis"),
}
IMPORTS = """
import sys
sys.modules.update(dict.fromkeys({modules}))  # an import of one of these fails now
import controlplane.main, dataplane.main, dataplane.migrate, dataplane.embed, dataplane.judge
import memplane.cli.main, memplane.client
"""


def test_every_package_of_the_extra_is_known_here() -> None:
    wanted = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]["stores"]
    assert {re.split(r"[\[=]", package)[0] for package in wanted} == set(MODULES)


def test_both_planes_and_the_command_line_load_without_the_drivers() -> None:
    code = IMPORTS.format(modules=[module for modules in MODULES.values() for module in modules])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
