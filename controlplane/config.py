"""The control plane's configuration: flags, else `MEMPLANE_CONTROL_…` of the environment, else defaults."""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PREFIX = "MEMPLANE_CONTROL_"
MAX_HEARTBEAT_S = 5.0
"""Data planes give a control plane up after three missed heartbeats, and after 15 s at most."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}")


class Secret(str):
    """A text that prints as stars."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class BadConfig(Exception):
    """A setting is missing or wrong; the text names it and what would be right."""


@dataclass(frozen=True, slots=True)
class ControlPlaneConfig:
    """Everything that the control plane takes from outside.

    `listen` is `host:port`, port 0 for any free one. `policy_folder` None: policy comes by RPC only. The two hashes are
    SHA-256 in hex; None: nobody is the bootstrap administrator, no data plane is let in. `ready_file` gets
    `{"address", "pid"}` as JSON once calls are answered.
    """

    listen: str
    data_dir: Path
    policy_folder: Path | None
    bootstrap_admin_sha256: Secret | None
    node_key_sha256: Secret | None
    signing_key_file: Path
    heartbeat_s: float
    ready_file: Path | None


_SETTINGS: Sequence[tuple[str, str, str]] = (
    ("listen", "127.0.0.1:7700", "address to serve on, HOST:PORT; port 0 takes any free one"),
    ("data-dir", "./.memplane/control", "folder of the revisions and the signing key"),
    ("policy-folder", "", "folder of policy YAML to load and watch; empty: policy comes by RPC only"),
    ("bootstrap-admin-sha256", "", "SHA-256 (hex) of the API key that may do everything"),
    ("node-key-sha256", "", "SHA-256 (hex) of the key that data planes present"),
    ("signing-key-file", "", "Ed25519 private key, PEM; empty: signing_key.pem in the data folder, made when missing"),
    ("heartbeat-s", "5", "seconds between heartbeats to data planes, 0.1 to 5"),
    ("ready-file", "", "file to write {address, pid} to once calls are answered"),
)


def read_config(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> ControlPlaneConfig:
    """The configuration. Raises BadConfig; `--help` and unknown flags end the process as argparse does."""
    values = os.environ if environment is None else environment  # noqa: TID251 - config.py is the one that may
    parser = argparse.ArgumentParser(
        prog="python -m controlplane.main",
        description="The MemPlane control plane.",
        epilog=f"Every flag can be given in the environment: --data-dir as {PREFIX}DATA_DIR.",
    )
    for name, default, words in _SETTINGS:
        parser.add_argument(f"--{name}", default=values.get(_variable(name), default), help=f"{words} [{default}]")
    return _checked(parser.parse_args(arguments))


def _variable(name: str) -> str:
    return PREFIX + name.replace("-", "_").upper()


def _checked(given: argparse.Namespace) -> ControlPlaneConfig:
    data_dir = Path(given.data_dir)
    return ControlPlaneConfig(
        listen=_address(given.listen),
        data_dir=data_dir,
        policy_folder=_path(given.policy_folder),
        bootstrap_admin_sha256=_sha256("bootstrap-admin-sha256", given.bootstrap_admin_sha256),
        node_key_sha256=_sha256("node-key-sha256", given.node_key_sha256),
        signing_key_file=_path(given.signing_key_file) or data_dir / "signing_key.pem",
        heartbeat_s=_seconds(given.heartbeat_s),
        ready_file=_path(given.ready_file),
    )


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _address(text: str) -> str:
    if _ADDRESS.fullmatch(text) is None or int(text.rpartition(":")[2]) > 65_535:
        raise BadConfig(f"listen: {text!r} is not HOST:PORT, such as 127.0.0.1:7700")
    return text


def _sha256(name: str, text: str) -> Secret | None:
    if text and _SHA256.fullmatch(text) is None:
        raise BadConfig(f"{name}: not a SHA-256 of 64 hex digits in lower case; give the hash, not the key")
    return Secret(text) if text else None


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= MAX_HEARTBEAT_S:
        raise BadConfig(f"heartbeat-s: {text!r} is not a number of seconds from 0.1 to {MAX_HEARTBEAT_S:.0f}")
    return value
