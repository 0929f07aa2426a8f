"""Generates the JSON Schemas with which editors complete and check policy files, from the policy's models.

policies/schema.json is that of policies, policies/cases.schema.json that of golden cases (`*.test.yaml`).

python tools/generate_schema.py           writes them
python tools/generate_schema.py --check   fails when one is not current
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from memplane.policy.cases import CaseFile
from memplane.policy.effective import SECTIONS
from memplane.policy.model import PolicySet

_POLICIES = Path(__file__).resolve().parent.parent / "policies"
SCHEMA = _POLICIES / "schema.json"
CASES_SCHEMA = _POLICIES / "cases.schema.json"


def schema_text() -> str:
    """The JSON Schema of one policy file, as the file holds it."""
    schema: dict[str, Any] = PolicySet.model_json_schema()
    definitions = schema["$defs"]
    overrides = definitions["SectionOverrides"]["properties"]
    for name, model in SECTIONS.items():
        definitions.setdefault(model.__name__, model.model_json_schema())
        overrides[name] = {"$ref": f"#/$defs/{model.__name__}"}
    schema["properties"]["rbac"] = {"$ref": "#/$defs/Rbac"}  # absent, or a mapping: never null
    return _text(schema)


def cases_schema_text() -> str:
    """The JSON Schema of a file of golden cases, as the file holds it."""
    return _text(CaseFile.model_json_schema())


def _text(schema: dict[str, Any]) -> str:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_without_null(schema)}
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _without_null(schema: Any) -> Any:
    """The schema without `null`: a key without a value is refused, absence says the same."""
    if isinstance(schema, list):
        return [_without_null(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_null(each) for key, each in schema.items() if (key, each) != ("default", None)}
    options = [each for each in kept.get("anyOf", ()) if each != {"type": "null"}]
    if "anyOf" in kept and len(options) == 1:
        return {**{key: each for key, each in kept.items() if key != "anyOf"}, **options[0]}
    return {**kept, "anyOf": options} if "anyOf" in kept else kept


def main() -> int:
    """Writes or checks; 1 when a check fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args().check
    files = {SCHEMA: schema_text(), CASES_SCHEMA: cases_schema_text()}
    return max(_current(path, text) if check else _written(path, text) for path, text in files.items())


def _written(path: Path, text: str) -> int:
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path}")
    return 0


def _current(path: Path, text: str) -> int:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"{path} is not current; run tools/generate_schema.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
