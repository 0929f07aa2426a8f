"""Names, settings and mapping of the index.

An alias stands before it, named for the tokenizer: `memplane-text-memplane-1`. Behind it lies one generation,
`memplane-text-memplane-1.g000001`; emptying makes the next one and moves the alias in one step. All calls name the
alias, and writes demand that it is one: an index that somebody deleted is never made anew by a write.
"""

import re
from dataclasses import dataclass
from typing import Any

from dataplane.adapters.elasticsearch.filters import NUMBER_FIELDS
from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.terms import FIELD, WEIGHT_FIELD

FORMAT = 2
"""Raise it when what is indexed of a memory changes."""
ROW = "row"
BEACONS = "beacons"
"""What is kept in `_source` alone: nothing searches by it, and no search returns it."""
_KEYWORD = {"type": "keyword"}
_RETURNED_KEYWORD = {"type": "keyword", "index": False}
_MATCHED_KEYWORD = {"type": "keyword", "doc_values": False}


@dataclass(frozen=True, slots=True)
class Layout:
    """What the index is called and made of."""

    alias: str
    tokenizer: str
    shards: int
    replicas: int

    @classmethod
    def of(cls, options: ElasticsearchOptions, tokenizer: str) -> "Layout":
        """The layout for a tokenizer's tokens."""
        slug = re.sub(r"[^a-z0-9]+", "-", tokenizer.lower()).strip("-")
        return cls(f"{options.prefix}-text-{slug}", tokenizer, options.shards, options.replicas)

    def generation(self, number: int) -> str:
        """The name of an index behind the alias."""
        return f"{self.alias}.g{number:06d}"

    @property
    def generations(self) -> str:
        """A pattern for the names of all of them."""
        return f"{self.alias}.g*"

    def number_of(self, index: str) -> int:
        """The generation of an index; 0 for one that is named otherwise."""
        found = re.fullmatch(rf"{re.escape(self.alias)}\.g(\d+)", index)
        return int(found.group(1)) if found else 0

    @property
    def meta(self) -> dict[str, object]:
        """What the mapping says of itself: an index with another one is not ours."""
        return {"memplane_format": FORMAT, "tokenizer": self.tokenizer}

    def template(self) -> dict[str, Any]:
        """The arguments of `put_index_template`."""
        return {
            "name": self.alias,
            "index_patterns": [self.generations],
            "template": {"settings": self._settings(), "mappings": self._mappings()},
        }

    def _settings(self) -> dict[str, object]:
        return {
            "number_of_shards": self.shards,
            "number_of_replicas": self.replicas,
            "refresh_interval": "-1",  # the projector says when
            "merge.policy.expunge_deletes_allowed": 0,  # a purge leaves nothing behind
        }

    def _mappings(self) -> dict[str, object]:
        return {
            "dynamic": "strict",
            "_meta": self.meta,
            "_routing": {"required": True},
            "_source": {
                "includes": ["memory_id", "version", "namespace", "fingerprint", "payload_terms", ROW, BEACONS]
            },
            "properties": {
                FIELD: {
                    "type": "text",
                    "analyzer": "whitespace",
                    "similarity": "boolean",
                    "index_options": "docs",
                    "norms": False,
                },
                WEIGHT_FIELD: {"type": "double", "index": False},
                "namespace": _KEYWORD,
                "shared": _MATCHED_KEYWORD,
                "terms": _MATCHED_KEYWORD,
                "ranges": _MATCHED_KEYWORD,
                "numbers": {"properties": {name: {"type": "double"} for name in NUMBER_FIELDS}},
                "memory_id": _RETURNED_KEYWORD,
                "fingerprint": _RETURNED_KEYWORD,
                "version": {"type": "long", "index": False},
                "payload_terms": {"type": "object", "enabled": False},
                ROW: {"type": "binary"},
                BEACONS: {"type": "object", "enabled": False},
            },
        }
