import pytest

from dataplane.adapters.postgres.reach import address, check, unreadable
from dataplane.errors import Misconfigured
from memplane.settings import Secret


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://app:secret@db:6432/memplane", "db:6432"),
        ("postgresql://app:secret@db/memplane", "db:5432"),
        ("postgresql://app:secret@one,two:6000/memplane", "one:5432, two:6000"),
        ("host=one,two port=6000 user=app dbname=memplane", "one:6000, two:6000"),
        ("user=app dbname=memplane", "the local socket:5432"),
    ],
)
def test_an_address_is_host_and_port_alone(dsn: str, shown: str) -> None:
    assert address(Secret(dsn)) == shown


@pytest.mark.parametrize("port", ["notaport", "0", "65536", "-1", "5432:1", "5432,x"])
def test_a_port_that_can_never_be_is_told_with_its_setting_and_no_secret(port: str) -> None:
    with pytest.raises(Misconfigured, match="dsn has a port that is no number from 1 to 65535") as raised:
        check(Secret(f"host=db port={port} user=app password=hidden dbname=memplane"), "dsn")
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("dsn", ["postgresql://app:hidden@[::1/db", "postgres//app:hidden@db/memplane"])
def test_an_url_that_cannot_be_read_is_told_without_a_secret(dsn: str) -> None:
    with pytest.raises(Misconfigured, match="replica_dsn is not a DSN such as") as raised:
        check(Secret(dsn), "replica_dsn")
    assert "hidden" not in str(raised.value)


def test_a_sound_dsn_is_taken() -> None:
    check(Secret("postgresql://app@one:5432,two:6432/memplane"), "dsn")


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ('connection is bad: invalid sslmode value: "bogus"', "sslmode"),
        ('invalid integer value "x" for connection option "keepalives_idle"', "keepalives_idle"),
        ("Connection refused", ""),
    ],
)
def test_an_option_that_libpq_refused_is_known_by_its_words(said: str, option: str) -> None:
    assert unreadable(said) == option
