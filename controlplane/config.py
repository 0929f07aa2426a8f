"""The control plane's configuration: flags, else `MEMPLANE_CONTROL_…`, else the file, else defaults."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memplane.authentication.token_settings import SETTINGS as TOKENS
from memplane.authentication.token_settings import TokenSettings
from memplane.config_file import read_config_file
from memplane.rpc.lifetime import SETTINGS as LIFETIME
from memplane.rpc.lifetime import Lifetime
from memplane.rpc.tls_settings import SERVER_SETTINGS as TLS
from memplane.rpc.tls_settings import ServerTls, refuse_clear
from memplane.settings import (
    ANNOUNCEMENTS,
    METRICS_HELP,
    PARENT,
    PARENT_HELP,
    BadConfig,
    Secret,
    Setting,
    Settings,
    config_file_of,
    read_settings,
)

PREFIX = "MEMPLANE_CONTROL_"
MAX_HEARTBEAT_S = 5.0
"""Data planes give a control plane up after three missed heartbeats, and after 15 s at most."""


@dataclass(frozen=True, slots=True)
class ControlPlaneConfig:
    """Everything that the control plane takes from outside.

    `revisions_dsn` None: revisions are in `revisions_file`.
    `listen` is `host:port`, port 0 for any free one; so is `metrics_listen`, "" for no metrics. `policy_folder` None:
    policy comes by RPC only. The two hashes are SHA-256 in hex; None: nobody is the bootstrap administrator, no data
    plane is let in. `ready_file` gets `{"address", "pid"}` as JSON once calls are answered; `announce` (`none`, `text`
    or `json`) is said on stdout then. `tls` None: calls travel in clear. `revisions_dsn` None: revisions lie in
    `revisions_file`.
    """

    listen: str
    data_dir: Path
    policy_folder: Path | None
    bootstrap_admin_sha256: Secret | None
    node_key_sha256: Secret | None
    revisions_file: Path
    revisions_dsn: Secret | None
    signing_key_file: Path
    heartbeat_s: float
    metrics_listen: str
    ready_file: Path | None
    announce: str
    parent_pid: int
    lifetime: Lifetime
    tls: ServerTls | None
    tokens: TokenSettings | None


SETTINGS = (
    Setting("config", "", "configuration file (TOML); its section [control] has these settings"),
    Setting("listen", "127.0.0.1:7700", "address to serve on, HOST:PORT; port 0 takes any free one"),
    Setting("data-dir", "./.memplane/control", "folder of the revisions and the signing key"),
    Setting("policy-folder", "", "folder of policy YAML to load and watch; empty: policy comes by RPC only"),
    Setting("bootstrap-admin-sha256", "", "SHA-256 (hex) of the API key that may do everything"),
    Setting("node-key-sha256", "", "SHA-256 (hex) of the key that data planes present"),
    Setting(
        "signing-key-file", "", "Ed25519 private key, PEM; empty: signing_key.pem in the data folder, made if missing"
    ),
    Setting(
        "revisions-file",
        "",
        "SQLite file of the revisions, which control planes of one machine may share; empty: in the data folder",
    ),
    Setting(
        "revisions-dsn",
        "",
        "PostgreSQL for the revisions instead, which control planes of any machine may share; better given in the "
        "environment",
    ),
    Setting("metrics-listen", "127.0.0.1:9470", METRICS_HELP),
    Setting("heartbeat-s", "5", "seconds between heartbeats to data planes, 0.1 to 5"),
    Setting("ready-file", "", "file to write {address, pid} to once calls are answered"),
    Setting("announce", "none", "what to say on stdout once calls are answered: none, text or json"),
    Setting(PARENT, "0", PARENT_HELP),
    *TLS,
    *TOKENS,
    *LIFETIME,
)


def read_config(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> ControlPlaneConfig:
    """The configuration. Raises BadConfig; `--help` and unknown flags end the process as argparse does."""
    values = os.environ if environment is None else environment  # noqa: TID251 - config.py is the one that may
    program = ("memplane control", "The MemPlane control plane.", PREFIX)
    path = config_file_of(arguments, values, PREFIX)
    sections = read_config_file(path, values, ("control",)) if path else {}
    given = read_settings(program, SETTINGS, arguments, values, ("control", sections.get("control", {})))
    data_dir, tls = given.required_path("data-dir"), ServerTls.of(given)
    refuse_clear(given, "listen", tls)
    return ControlPlaneConfig(
        listen=given.address("listen"),
        data_dir=data_dir,
        policy_folder=given.path("policy-folder"),
        bootstrap_admin_sha256=given.sha256("bootstrap-admin-sha256"),
        node_key_sha256=given.sha256("node-key-sha256"),
        revisions_file=given.path("revisions-file") or data_dir / "revisions.sqlite3",
        revisions_dsn=_dsn(given),
        signing_key_file=given.path("signing-key-file") or data_dir / "signing_key.pem",
        metrics_listen=given.optional_address("metrics-listen"),
        heartbeat_s=given.number("heartbeat-s", 0.1, MAX_HEARTBEAT_S),
        ready_file=given.path("ready-file"),
        announce=given.choice("announce", ANNOUNCEMENTS),
        parent_pid=int(given.number(PARENT, 0, 2**31)),
        lifetime=Lifetime.of(given),
        tls=tls,
        tokens=TokenSettings.of(given),
    )


def _dsn(given: Settings) -> Secret | None:
    dsn = given.text("revisions-dsn")
    if dsn and given.text("revisions-file"):
        raise BadConfig("revisions-dsn: revisions-file is given, too; keep one of the two")
    return Secret(dsn) if dsn else None
