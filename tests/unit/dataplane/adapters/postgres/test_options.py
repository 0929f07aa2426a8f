import pytest

from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.pool import connection_arguments
from memplane.options import options_from
from memplane.settings import BadConfig, Secret


@pytest.mark.parametrize(
    ("key", "value"),
    [("pool_size", 0), ("connect_timeout_s", 1.0), ("batch_size", 0), ("prepare_threshold", -1), ("queue_size", 0)],
)
def test_a_figure_out_of_range_is_named_with_its_range(key: str, value: float) -> None:
    with pytest.raises(BadConfig, match=rf"record_store\.{key}: {value} is not from "):
        options_from(PostgresOptions, "record_store", {"dsn": "postgresql://app@db/memplane", key: value})


@pytest.mark.parametrize(("threshold", "given"), [(0, None), (3, 3)])
def test_statements_are_never_prepared_at_threshold_0(threshold: int, given: int | None) -> None:
    options = PostgresOptions(Secret("postgresql://app@db/memplane"), prepare_threshold=threshold)
    assert connection_arguments(options)["prepare_threshold"] == given


def test_passwords_do_not_show() -> None:
    assert "hunter2" not in repr(PostgresOptions(Secret("postgresql://app:hunter2@db/memplane")))
