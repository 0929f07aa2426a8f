"""Checks of single request fields: each returns the clean value or notes what would be right."""

import math
from collections.abc import Iterable, Sequence

from google.protobuf import struct_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from dataplane.codec import plain, to_us
from dataplane.logic.normalise import normalise_label
from dataplane.model import MAX_STRUCT_BYTES
from memplane.errors import InvalidField, Violation
from memplane.policy.names import is_namespace

MAX_LABEL_BYTES = 256
MIN_TIME_S = -62_135_596_800
MAX_TIME_S = 253_402_300_799
MAX_AHEAD_US = 24 * 3600 * 1_000_000
OWNER_KEYS = frozenset({"namespace", "subject_id", "agent_id", "user_id", "tenant", "id"})
_NAMESPACE_RULE = "must be 1 to 9 labels of [a-z0-9_-], 1 to 63 characters each, joined by dots, such as dept.sales"


class Notes:
    """Collects the violations of one request, so that a caller hears of all of them at once."""

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self._violations: list[Violation] = []

    def add(self, field: str, description: str) -> None:
        """Notes that a field is wrong."""
        self._violations.append(Violation(self._prefix + field, description))

    def merge(self, other: "Notes") -> None:
        """Takes over what another one noted."""
        self._violations.extend(other._violations)

    def close(self) -> None:
        """Raises InvalidField when anything was noted."""
        if self._violations:
            raise InvalidField(self._violations)

    def namespace(self, field: str, value: str) -> str:
        """A legal namespace."""
        if not is_namespace(value):
            self.add(field, _NAMESPACE_RULE)
        return value

    def namespaces(self, field: str, values: Iterable[str], most: int) -> tuple[str, ...]:
        """Legal namespaces, each once, at most `most`."""
        unique = tuple(dict.fromkeys(values))
        if len(unique) > most:
            self.add(field, f"names {len(unique)} namespaces; at most {most} may be searched at once")
        for index, value in enumerate(unique[:most]):
            self.namespace(f"{field}[{index}]", value)
        return unique

    def label(self, field: str, value: str, max_bytes: int = MAX_LABEL_BYTES) -> str:
        """A short single-line text, cleaned."""
        if not value:
            return ""
        if len(value.encode()) > max_bytes:
            self.add(field, f"has {len(value.encode())} bytes; at most {max_bytes} are allowed")
            return ""
        clean = normalise_label(value)
        if not clean:
            self.add(field, "has no visible character; leave it empty or give a name")
        return clean

    def labels(self, field: str, values: Sequence[str], most: int) -> tuple[str, ...]:
        """Short texts, each once, none empty."""
        if len(values) > most:
            self.add(field, f"has {len(values)} items; at most {most} are allowed")
            return ()
        clean = []
        for index, value in enumerate(values):
            if not value:
                self.add(f"{field}[{index}]", "is empty; leave it out or give a label")
            clean.append(self.label(f"{field}[{index}]", value))
        return tuple(dict.fromkeys(clean))

    def unit(self, field: str, value: float) -> float:
        """A number from 0 to 1."""
        if not 0.0 <= value <= 1.0:
            self.add(field, f"is {value}; it must lie between 0 and 1")
        return value

    def integer(self, field: str, value: int, least: int, most: int) -> int:
        """A whole number in a range."""
        if not least <= value <= most:
            self.add(field, f"is {value}; it must lie between {least} and {most}")
        return value

    def enum(self, field: str, value: int, names: Sequence[str]) -> int:
        """A known number of an enum whose values are 0 (unspecified) to len(names)."""
        if not 0 <= value <= len(names):
            self.add(field, f"has no value {value}; known: {', '.join(names)}")
            return 0
        return value

    def time_us(self, field: str, stamp: Timestamp) -> int:
        """An instant of the years 1 to 9999."""
        if not (MIN_TIME_S <= stamp.seconds <= MAX_TIME_S and 0 <= stamp.nanos < 1_000_000_000):
            self.add(field, "is not a valid timestamp (years 1 to 9999, nanos 0 to 999,999,999)")
            return 0
        return to_us(stamp)

    def ordered(self, first: str, first_us: int, last: str, last_us: int) -> None:
        """Two instants of which the last does not lie before the first."""
        if last_us < first_us:
            self.add(last, f"lies before {first}")

    def not_ahead(self, field: str, time_us: int, now_us: int) -> None:
        """An instant at most 24 hours ahead of the server."""
        if time_us > now_us + MAX_AHEAD_US:
            self.add(field, "lies more than 24 hours ahead of the server's clock; set when it happened or was said")

    def struct(
        self, field: str, value: struct_pb2.Struct, forbidden: frozenset[str] = frozenset()
    ) -> dict[str, object]:
        """The plain values of a Struct of at most 16 KiB, all numbers finite, no top key among `forbidden`."""
        if value.ByteSize() > MAX_STRUCT_BYTES:
            self.add(field, f"has {value.ByteSize()} bytes; at most {MAX_STRUCT_BYTES} are allowed")
            return {}
        for key in value.fields:
            if key.lower() in forbidden:
                self.add(f"{field}.{key}", "may not be set here: it decides whose memory it is; use the field itself")
        if not _finite(value, depth=0):
            self.add(field, "holds a number that is not finite, an unset value, or more than 32 levels")
            return {}
        return plain(value)


def _finite(value: struct_pb2.Struct | struct_pb2.ListValue, depth: int) -> bool:
    if depth > 32:
        return False
    items = value.fields.values() if isinstance(value, struct_pb2.Struct) else value.values
    for item in items:
        kind = item.WhichOneof("kind")
        if kind is None or (kind == "number_value" and not math.isfinite(item.number_value)):
            return False
        if kind == "struct_value" and not _finite(item.struct_value, depth + 1):
            return False
        if kind == "list_value" and not _finite(item.list_value, depth + 1):
            return False
    return True
