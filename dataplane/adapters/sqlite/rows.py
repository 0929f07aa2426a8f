"""The fields that filters see, as JSON."""

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

from dataplane.model import FieldValue

_encode = json.JSONEncoder(separators=(",", ":")).encode


@lru_cache(maxsize=1_024)
def field_key(name: str) -> str:
    """A field's key in the JSON column: quoted so that it needs no escape within a JSON path."""
    return quote(name, safe="", errors="surrogatepass")


def fields_to_json(values: Mapping[str, FieldValue]) -> str:
    """The fields that are present (filters take None, "" and () for absent), keyed by `field_key`."""
    present = {field_key(name): value for name, value in values.items() if _is_present(value)}
    return _encode(present)


def _is_present(value: FieldValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is not None and value not in ("", ())
