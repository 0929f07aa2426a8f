"""The embedded record store: SQLite in WAL mode, one writer thread with group commit, read-only connections."""
