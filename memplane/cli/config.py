"""Where the command line gets its settings: the only place of it that reads the environment."""

import os
from collections.abc import Mapping
from pathlib import Path

TARGET_VARIABLE = "MEMPLANE_TARGET"
CONTROL_VARIABLE = "MEMPLANE_CONTROL"
API_KEY_VARIABLE = "MEMPLANE_API_KEY"
TLS_CA_VARIABLE = "MEMPLANE_TLS_CA"
TLS_CERT_VARIABLE = "MEMPLANE_TLS_CERT"
TLS_KEY_VARIABLE = "MEMPLANE_TLS_KEY"
TLS_SERVER_NAME_VARIABLE = "MEMPLANE_TLS_SERVER_NAME"
DATA_VARIABLE = "MEMPLANE_EVAL_DATA"

DEFAULT_TARGET = "127.0.0.1:7701"
DEFAULT_CONTROL = "127.0.0.1:7700"
DEFAULT_FOLDER = Path(".memplane")


def plane_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a plane's process: ours, one OpenMP thread, and `extra` on top."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **extra}  # noqa: TID251 - this is config.py


def evaluation_data() -> Path | None:
    """The folder of the evaluation data, or None where there is none."""
    folder = os.environ.get(DATA_VARIABLE)  # noqa: TID251 - this is config.py
    return Path(folder) if folder and Path(folder).is_dir() else None
