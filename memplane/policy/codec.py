"""A policy set as bytes and back, and the version that names its documents' content."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from memplane.policy.model import PolicySet


@dataclass
class InvalidPolicy(Exception):
    """Bytes that are no valid policy; `detail` says the first thing wrong, and how many there are."""

    detail: str

    def __str__(self) -> str:
        return self.detail


def to_json(policy: PolicySet) -> bytes:
    """Canonical JSON: every default filled in, keys sorted, UTF-8, no spaces; equal policies give equal bytes."""
    dump = policy.model_dump(mode="json")
    overrides = dump["namespace_policy"]["overrides"]
    for namespace, sections in overrides.items():
        overrides[namespace] = {name: section for name, section in sections.items() if section}
    return json.dumps(dump, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def from_json(data: bytes) -> PolicySet:
    """The policy that `to_json` wrote.

    Raises:
        InvalidPolicy: It is not JSON, or some value breaks a rule of the model.
    """
    try:
        return PolicySet.model_validate_json(data)
    except ValidationError as error:
        raise InvalidPolicy(first_problem(error)) from error


def first_problem(error: ValidationError) -> str:
    """One line: where and what the first problem is, and how many there are."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{path or 'policy'}: {first['msg']}{more}"


def version_of(documents: Sequence[tuple[str, bytes]]) -> str:
    """`sha256:` and the hex digest over (name, content) in the order of names, each led by its length (8 bytes)."""
    digest = hashlib.sha256()
    for name, content in sorted(documents):
        for part in (name.encode("utf-8", "surrogatepass"), content):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return f"sha256:{digest.hexdigest()}"
