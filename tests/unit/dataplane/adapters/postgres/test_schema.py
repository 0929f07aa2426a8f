from dataplane.adapters.postgres.schema import due, read_migrations


def test_migrations_are_numbered_without_gaps_and_known_by_their_content() -> None:
    migrations = read_migrations()
    assert [migration.version for migration in migrations] == list(range(1, len(migrations) + 1))
    assert [int(migration.name[:4]) for migration in migrations] == [migration.version for migration in migrations]
    assert len({migration.checksum for migration in migrations}) == len(migrations)


def test_what_ran_is_not_due() -> None:
    migrations = read_migrations()
    first = migrations[0]
    assert due(migrations, {}) == migrations
    assert due(migrations, {first.version: first.checksum}) == migrations[1:]
