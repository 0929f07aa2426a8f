import pytest

from memplane.builtin import policies_folder

PROFILES = [f"examples/profiles/{name}" for name in ("balanced", "orchestrated", "companion")]


@pytest.mark.parametrize("name", [*PROFILES, "default", "examples/minimal", "examples/rbac", "examples/evaluation"])
def test_a_shipped_folder_is_found(name: str) -> None:
    assert list(policies_folder(name).glob("*.yaml"))


def test_a_folder_that_is_not_shipped_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="'gone'"):
        policies_folder("gone")
