"""How PostgreSQL is reached."""

from dataclasses import dataclass

from memplane.options import check_ranges
from memplane.settings import Secret

BACKEND = "record_store"

SCHEMA = "memplane"
"""Where every table lies; statements name it, so that no search_path matters."""

MIN_SERVER_VERSION = 140_000
"""PostgreSQL 14, as `server_version_num` says it."""

MONTHS_AHEAD = 3
"""For how many months partitions are made before they are needed."""


_RANGES = {
    "pool_size": (1, 1_000),
    "connect_timeout_s": (2, 600),
    "acquire_timeout_s": (0.05, 600),
    "statement_timeout_s": (0.01, 3_600),
    "replica_max_lag_s": (0, 3_600),
    "replica_memory_ms": (0, 600_000),
    "batch_size": (1, 10_000),
    "queue_size": (1, 10_000_000),
    "prepare_threshold": (0, 1_000_000),
}


@dataclass(frozen=True, slots=True)
class PostgresOptions:
    """Where the servers are, as whom to log in, and how much to ask of them.

    Raises BadConfig, naming the field, for what cannot be right.

    Figures are unmeasured but for `batch_size` (bench/postgres.py).

    Attributes:
        dsn: The primary, as the role that owns nothing (a libpq URL or key=value text).
        replica_dsn: A streaming replica for reads; None: there is none.
        migrate_dsn: The primary as the owner of the tables, for `memplane migrate` alone.
        app_role: The role of `dsn`.
        system_role: The NOLOGIN role that the app role takes on to see all namespaces.
        pool_size: Most connections of this process to each server.
        connect_timeout_s: For one connection, whole seconds, at least 2.
        acquire_timeout_s: How long a call waits for one of the `pool_size` connections, whatever its deadline.
        statement_timeout_s: Most that one statement may take, whatever the deadline.
        replica_max_lag_s: A replica further behind, or of unknown lag, is not read from.
        replica_memory_ms: For how long what a replica said of its lag is believed.
        batch_size: Commits in one transaction.
        queue_size: Commits that may wait.
        prepare_threshold: Uses of a statement before the server prepares it; 0: never, for a pgBouncer older than 1.21
            in transaction mode.
    """

    dsn: Secret
    replica_dsn: Secret | None = None
    migrate_dsn: Secret | None = None
    app_role: str = "memplane_app"
    system_role: str = "memplane_system"
    pool_size: int = 10
    connect_timeout_s: float = 5.0
    acquire_timeout_s: float = 2.0
    statement_timeout_s: float = 30.0
    replica_max_lag_s: float = 10.0
    replica_memory_ms: float = 500.0
    batch_size: int = 512
    queue_size: int = 20_000
    prepare_threshold: int = 3

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
