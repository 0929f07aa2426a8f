"""What policies/ says about itself is what the models say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from memplane.builtin import policies_folder
from memplane.policy.cases import AccessGiven, HitGiven, OrderGiven, WriteExpect, WriteGiven
from memplane.policy.model import PolicySet
from memplane.policy.rbac import Grant
from memplane.policy.write_rules import WriteRule
from tools.generate_schema import CASES_SCHEMA, SCHEMA, cases_schema_text, schema_text

README = (policies_folder("default").parent / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)`(?: †)? \|.*?\| ([^|]+) \|[^|]*\|$", README, re.MULTILINE)
LIMITS = {
    backend: limits
    for backend, limits in PolicySet().degradation_policy.model_dump(mode="json").items()
    if isinstance(limits, dict) and backend != "admission"
}
"""What each backend may take; the reference has one row for all of them."""
DEFAULTS = PolicySet().model_dump(
    mode="json", exclude={"rbac": True, "write_policy": {"rules"}, "degradation_policy": set(LIMITS)}
)


def leaves(value: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        leaf
        for key, below in value.items()
        for leaf in (leaves(below) if isinstance(below, dict) and below else [(key, below)])
    ]


def test_the_schemas_are_current() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text()
    assert CASES_SCHEMA.read_text(encoding="utf-8") == cases_schema_text()


@pytest.mark.parametrize("file", sorted(policies_folder("default").parent.rglob("*.test.yaml")), ids=str)
def test_every_file_of_cases_names_its_schema(file: Path) -> None:
    first = file.read_text(encoding="utf-8").splitlines()[0]
    named = first.removeprefix("# yaml-language-server: $schema=")
    assert (file.parent / named).resolve() == CASES_SCHEMA


def test_the_schema_checks_overrides_as_sections() -> None:
    overrides = json.loads(schema_text())["$defs"]["SectionOverrides"]["properties"]
    assert overrides["write_policy"] == {"$ref": "#/$defs/WritePolicy"}


@pytest.mark.parametrize(("key", "default"), leaves(DEFAULTS), ids=lambda value: str(value)[:40])
def test_the_reference_tells_every_key_and_its_default(key: str, default: Any) -> None:
    shown = {"sales_data": "{sales_data: 1/24}"}.get(key) or as_written(default)
    assert (key.replace("sales_data", "by_category"), shown) in ROWS


@pytest.mark.parametrize("key", next(iter(LIMITS.values())))
def test_the_reference_tells_the_limits_of_every_backend(key: str) -> None:
    row = re.search(rf"^\| `<backend>\.{key}` \|[^|]*\| ([^|]+) \|", README, re.MULTILINE)
    assert row is not None
    usual, _, others = row[1].partition(";")
    told = dict.fromkeys(LIMITS, float(usual))
    for names, value in re.findall(r"((?:`\w+`(?: and |, )?)+) ([\d.]+)", others):
        told |= dict.fromkeys(re.findall(r"`(\w+)`", names), float(value))
    assert told == {backend: float(limits[key]) for backend, limits in LIMITS.items()}


def as_written(default: Any) -> str:
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, list):
        return f"[{', '.join(default)}]"
    return f"{default:g}" if isinstance(default, float) else str(default)


@pytest.mark.parametrize("key", [*WriteRule.model_fields, *Grant.model_fields])
def test_the_reference_tells_the_keys_of_rules_and_grants(key: str) -> None:
    assert key in dict(ROWS)


@pytest.mark.parametrize("model", [AccessGiven, WriteGiven, WriteExpect, OrderGiven, HitGiven])
def test_the_reference_tells_the_keys_of_golden_cases(model: type[BaseModel]) -> None:
    assert model.model_fields.keys() <= dict(ROWS).keys()
