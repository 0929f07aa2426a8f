"""What every test can ask for."""

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.alone", "tests.servers.fixtures", "tests.peers.qdrant.fixtures", "tests.postgres")


def pytest_configure() -> None:
    """Examples take as long as a busy machine makes them."""
    settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("unhurried")
