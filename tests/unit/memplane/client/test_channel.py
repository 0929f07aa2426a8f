import json
from pathlib import Path

from memplane.client.channel import SERVICE_CONFIG

EXAMPLE = Path(__file__).parents[4] / "examples" / "go" / "service_config.json"


def test_the_service_config_for_other_languages_is_that_of_the_python_client() -> None:
    assert json.loads(EXAMPLE.read_text()) == SERVICE_CONFIG
