"""What requests are drawn from: names, ids and tokens of one's own, of others, of nobody, and nearly right ones."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import struct_pb2

from memplane.v1 import memory_pb2
from tests.leak.truth import Truth
from tests.leak.words import Words
from tests.leak.world import ABOVE, READ, TENANTS, Principal, World, near_misses

FILTER_FIELDS = ("tags", "category", "kind", "layer", "subject_id", "session_id", "metadata.note", "speaker", "pool")
TOPICS = ("ladder", "pump", "invoice", "contract", "drink", "budget", "password", "holiday", "梯子", "发票")


@dataclass
class Seen:
    """What answers gave to whom: of use to others, if anything were wrong.

    `used`: whose request_ids were taken, by namespace. `pages`: (method, whose, request, token). `made`: changes under
    a request_id, by principal, to be made again. `request_ids`: what each principal sent, borrowed ones too.
    """

    pages: list[tuple[str, str, bytes, str]] = field(default_factory=list)
    made: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    request_ids: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    used: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    operations: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)
    asked: list[tuple[str, bytes]] = field(default_factory=list)


@dataclass
class Draws:
    """Draws for one caller at a time, from one seeded generator."""

    random: random.Random
    world: World
    truth: Truth
    words: Words
    seen: Seen = field(default_factory=Seen)

    def chance(self, part: float) -> bool:
        """True in this part of the cases."""
        return self.random.random() < part

    def of(self, principal: Principal) -> str:
        """A namespace for one of his calls: his own, more often than not."""
        root = principal.tenant or self.random.choice(TENANTS)
        drawn = self.random.random()
        open_ones = [name for name in self.world.namespaces if self.world.may(principal, READ, name)]
        if drawn < 0.5 and open_ones:
            return self.random.choice(open_ones)
        if drawn < 0.8:
            return self.random.choice(self.world.namespaces_of(root))
        if drawn < 0.9:
            other = next(name for name in TENANTS if name != root)
            return self.random.choice(self.world.namespaces_of(other))
        return ABOVE if drawn < 0.93 else near_misses(self.random, self.world.namespaces)

    def memory_id(self, namespace: str) -> str:
        """An id: of this namespace, of somewhere else, of nothing, of something forgotten, or of no form at all."""
        here = [each for each, entry in self.truth.memories.items() if entry.namespace == namespace]
        forgotten = [each for each, entry in self.truth.memories.items() if entry.gone]
        everywhere = list(self.truth.memories)
        drawn = self.random.random()
        for limit, ids in ((0.6, here), (0.75, everywhere), (0.85, forgotten)):
            if drawn < limit and ids:
                return self.random.choice(ids[-200:])
        return self.random.choice((self.words.memory_id(), "", "mem_", "' OR 1=1 --", self.words.memory_id().upper()))

    def query(self) -> str:
        """A question: of everyday words, or of somebody's marker."""
        marks = list(self.truth.holding)
        word = self.random.choice(marks).decode() if marks and self.chance(0.3) else self.words.marker()
        topic = self.random.choice(TOPICS)
        return self.random.choice((topic, f"where is the {topic}", word, f"{topic} {word}"))

    def request_id(self, principal: Principal) -> str:
        """None, a new one, or one of his own or of others."""
        drawn = self.random.random()
        everybody = [each for ids in self.seen.request_ids.values() for each in ids]
        if drawn < 0.4:
            return ""
        if drawn < 0.75 or not everybody:
            made = self.words.marker()
            self.seen.request_ids[principal.name].append(made)
            return made
        borrowed = self.random.choice(everybody)
        self.seen.request_ids[principal.name].append(borrowed)
        return borrowed

    def struct(self) -> struct_pb2.Struct:
        """Metadata with a marker in it."""
        made = struct_pb2.Struct()
        made.update({"note": self.words.marker(), "kept": True, "size": self.random.randrange(9)})
        return made

    def names(self, names: Sequence[int], most: int = 2) -> list[int]:
        """Some numbers of an enum, mostly none."""
        return self.random.sample(list(names), self.random.randrange(1, most + 1)) if self.chance(0.25) else []

    def filter(self, depth: int = 3) -> memory_pb2.Filter:
        """A typed tree of conditions."""
        made, drawn = memory_pb2.Filter(), self.random.random()
        if depth == 0 or drawn < 0.4:
            made.condition.CopyFrom(self._condition())
        elif drawn < 0.6:
            made.negation.CopyFrom(self.filter(depth - 1))
        else:
            group = made.any_of if drawn < 0.85 else made.all_of
            group.filters.extend(self.filter(depth - 1) for _ in range(self.random.randrange(1, 4)))
        return made

    def _condition(self) -> memory_pb2.FilterCondition:
        operators = memory_pb2.FilterOperator
        operator = self.random.choice((1, 2, 3, 4))
        made = memory_pb2.FilterCondition(
            field=self.random.choice(FILTER_FIELDS), operator=operators.ValueType(operator)
        )
        values = {"kind": "FACT", "layer": "LONG_TERM", "pool": "SHARED"}
        for _ in range({1: 1, 2: 1, 3: 2, 4: 0}[operator]):
            marks = list(self.truth.holding)
            word = self.random.choice(marks).decode() if marks and self.chance(0.5) else self.random.choice(TOPICS)
            made.values.add(string_value=values.get(made.field, word))
        return made

    def page_token(self, method: str) -> str:
        """Empty, or a token: of the same method by anybody, of another one, or tampered with."""
        drawn = self.random.random()
        if drawn < 0.6 or not self.seen.pages:
            return ""
        same = [page[-1] for page in self.seen.pages if page[0] == method]
        tokens = same if same and drawn < 0.85 else [page[-1] for page in self.seen.pages]
        token = self.random.choice(tokens)
        if drawn < 0.95:
            return token
        place = self.random.randrange(len(token))
        return token[:place] + self.random.choice("AZaz09_-") + token[place + 1 :]

    def next_page(self, method: str, principal: Principal) -> tuple[bytes, str] | None:
        """Now and then the very query of a page with its token: of his own, or of somebody else's."""
        pages = [page for page in self.seen.pages if page[0] == method]
        own = [page for page in pages if page[1] == principal.name]
        if not pages or not self.chance(0.4):
            return None
        *_, request, token = self.random.choice(own if own and self.chance(0.5) else pages)
        return request, token

    def consistency_token(self) -> str:
        """None, or one that anybody was given, or one that nobody was."""
        drawn = self.random.random()
        if drawn < 0.7 or not self.seen.tokens:
            return ""
        return (
            self.random.choice(self.seen.tokens) if drawn < 0.95 else self.random.choice(("c1.0", "c1.999999999", "c"))
        )

    def operation(self) -> str:
        """A name of an operation, of anybody or of nothing."""
        known = self.seen.operations
        if known and self.chance(0.7):
            return self.random.choice(known)
        made = self.words.operation_like(f"operations/{'0' * 40}")
        return self.random.choice((made, "operations/", "", *known[-1:]))
