"""Generates policies/schema.json, with which editors complete and check policy files, from the policy's models.

python tools/generate_schema.py           writes it
python tools/generate_schema.py --check   fails when it is not current
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from memplane.policy.effective import SECTIONS
from memplane.policy.model import PolicySet

SCHEMA = Path(__file__).resolve().parent.parent / "policies" / "schema.json"


def schema_text() -> str:
    """The JSON Schema of one policy file, as the file holds it."""
    schema: dict[str, Any] = PolicySet.model_json_schema()
    definitions = schema["$defs"]
    overrides = definitions["SectionOverrides"]["properties"]
    for name, model in SECTIONS.items():
        definitions.setdefault(model.__name__, model.model_json_schema())
        overrides[name] = {"$ref": f"#/$defs/{model.__name__}"}
    schema["properties"]["rbac"] = {"$ref": "#/$defs/Rbac"}  # absent, or a mapping: never null
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> int:
    """Writes or checks; 1 when the check fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args().check
    text = schema_text()
    if not check:
        SCHEMA.write_text(text, encoding="utf-8")
        print(f"wrote {SCHEMA}")
        return 0
    if SCHEMA.is_file() and SCHEMA.read_text(encoding="utf-8") == text:
        return 0
    print(f"{SCHEMA} is not current; run tools/generate_schema.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
