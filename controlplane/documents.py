"""A policy document as a value, and what its name may be. Pure: `controlplane/files.py` reads them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memplane.policy.codec import version_of

MAX_DOCUMENT_BYTES = 1024 * 1024
MAX_DOCUMENTS = 1000
MAX_SET_BYTES = 8 * 1024 * 1024
EXTENSIONS = (".yaml", ".yml")
CASE_EXTENSIONS = (".test.yaml", ".test.yml")
"""Documents named so hold golden cases: they belong to the set and to its version, not to the policy's content."""

_NAME = re.compile(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,250}\.ya?ml")


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML file of a policy set: its name within the folder, and its bytes as read."""

    name: str
    content: bytes

    @property
    def holds_cases(self) -> bool:
        """Whether it holds golden cases instead of policy."""
        return self.name.endswith(CASE_EXTENSIONS)


def version_of_set(documents: Sequence[Document]) -> str:
    """The version of a policy set: the digest of its documents, whatever their order."""
    return version_of([(document.name, document.content) for document in documents])


def name_problem(name: str) -> str | None:
    """Why a document may not be called so, and what would be right; None when it may."""
    if ".." in name or _NAME.fullmatch(name) is None:
        return f"{name[:80]!r} is no document name: a file name ending in .yaml or .yml, no '/', no '..', no dot first"
    return None
