"""Names of collections: no two indexes, and no two dedicated namespaces of one index, ever share one.

Qdrant takes at most 255 characters and no `/`, `:` and the like. The names are for people as far as they can be; a hash
of what they stand for keeps them apart (labels may hold `-` and `_`, and a namespace may be longer than a name).
"""

import re
from dataclasses import dataclass
from hashlib import blake2b

_DEDICATED = "--"
_SHOWN = 48


@dataclass(frozen=True, slots=True)
class CollectionNames:
    """The collections of one embedding model: `{prefix}-{model}-{dimension}-{hash}`, and what follows it with `--`."""

    prefix: str
    model: str
    dimension: int

    @property
    def alias(self) -> str:
        """The alias that names the common collection of the active model."""
        return self.prefix

    @property
    def common(self) -> str:
        """The collection of all namespaces that have none of their own."""
        return f"{self.prefix}-{_slug(self.model)}-{self.dimension}-{_hash(self.model, 6)}"

    def of(self, partition: str) -> str:
        """The collection of a namespace subtree; "" for the common one."""
        if not partition:
            return self.common
        return f"{self.common}{_DEDICATED}{_slug(partition)}-{_hash(partition, 16)}"

    def is_dedicated(self, name: str) -> bool:
        """True for the collection of a subtree of this model."""
        return name.startswith(self.common + _DEDICATED)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[:_SHOWN].strip("_") or "x"


def _hash(text: str, size_bytes: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size_bytes).hexdigest()
