"""A service that keeps its promises, in a few lines, and a history of clients that call it all at once.

Each call takes effect at one instant between its start and its end; some answers are lost on the way, some calls before
they took effect.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.chaos.history import SHARED_WRITER, Entry, FinalMemory, FinalState, marker
from tests.chaos.reads import SETTLED_S

LOST_ANSWERS, LOST_CALLS = 0.1, 0.1
CLIENTS, TENANTS = 6, 2


@dataclass
class Stored:
    id: str
    tenant: int
    namespace: str
    subject: str
    marker: str
    fact_key: str = ""
    state: str = "ACTIVE"
    version: int = 1

    def final(self) -> FinalMemory:
        return FinalMemory(
            id=self.id, tenant=self.tenant, namespace=self.namespace, subject=self.subject, kind="FACT",
            state=self.state, version=self.version, marker=self.marker, fact_key=self.fact_key,
        )  # fmt: skip


@dataclass
class Planned:
    """A call to come; `asked` is filled when it takes effect."""

    client: int
    intent: int
    method: str
    start_s: float
    effect_s: float
    end_s: float
    asked: dict[str, Any] = field(default_factory=dict)


class Imagined:
    """The service and its clients. `memories` is the truth, `entries` what the clients saw."""

    def __init__(self, seed: int, calls: int = 120):
        self._random = random.Random(seed)
        self._counter = 0
        self.memories: dict[str, Stored] = {}
        self.entries: list[Entry] = []
        self._calls = calls
        self._heard: set[str] = set()

    def run(self) -> FinalState:
        """All calls in the order of their effects; the truth at the end."""
        planned = [call for client in range(CLIENTS) for call in self._plan(client)]
        for call in sorted(planned, key=lambda call: call.effect_s):
            self._carry_out(call)
        return FinalState(memories=tuple(memory.final() for memory in self.memories.values()))

    def _plan(self, client: int) -> list[Planned]:
        now_s, calls = 0.0, []
        for intent in range(self._calls // CLIENTS):
            start_s = now_s + self._random.random() * SETTLED_S / 2
            span_s = self._random.choice((0.01, 0.5, 2.0)) * self._random.random()
            effect_s = start_s + span_s * self._random.random()
            method = self._random.choices(
                ("write", "shared", "fact", "update", "forget", "search", "get", "list"), (4, 3, 3, 3, 3, 6, 2, 1)
            )[0]
            calls.append(Planned(client, intent, method, start_s, effect_s, start_s + span_s))
            now_s = start_s + span_s
        return calls

    def _carry_out(self, call: Planned) -> None:
        does: dict[str, Callable[[Planned], dict[str, Any] | None]] = {
            "write": self._write, "shared": self._write, "fact": self._write, "update": self._update,
            "forget": self._forget, "search": self._search, "get": self._get, "list": self._list,
        }  # fmt: skip
        chance = self._random.random()
        was_lost = chance < LOST_ANSWERS + LOST_CALLS
        before = {key: replace(memory) for key, memory in self.memories.items()}
        told = does[call.method](call)
        if not call.asked:
            return
        if chance < LOST_CALLS:
            self.memories = before
        if told is not None and not was_lost:
            self._heard.update({told.get("id", ""), *(hit[0] for hit in told.get("hits", ()))})
        code = "UNAVAILABLE" if was_lost else "OK" if told is not None else "NOT_FOUND"
        self.entries.append(
            Entry(
                client=call.client, tenant=call.client % TENANTS, intent=call.intent,
                method="write" if call.method in {"shared", "fact"} else call.method,
                start_s=call.start_s, end_s=call.end_s, deadline_s=5.0, code=code, asked=call.asked,
                told=told if told is not None and not was_lost else {},
            )
        )  # fmt: skip

    def _write(self, call: Planned) -> dict[str, Any]:
        tenant, number = call.client % TENANTS, call.client * 1_000 + call.intent
        word = marker(tenant, call.client, number)
        if call.method == "shared":
            word = marker(tenant, SHARED_WRITER, self._random.randrange(3))
        fact_key = f"k{self._random.randrange(3)}" if call.method == "fact" else ""
        call.asked = {
            "ns": f"tenant-{tenant}.common", "subject": "s", "kind": "FACT", "marker": word, "fact_key": fact_key,
        }  # fmt: skip
        same = [memory for memory in self._of(tenant) if memory.marker == word]
        if same:
            return self._receipt(same[0], "MERGED")
        replaced = [memory for memory in self._of(tenant) if fact_key and memory.fact_key == fact_key]
        for memory in replaced:
            memory.state = "SUPERSEDED"
        stored = self._store(tenant, word, fact_key)
        return self._receipt(stored, "CREATED") | {"superseded": [memory.id for memory in replaced]}

    def _store(self, tenant: int, word: str, fact_key: str) -> Stored:
        self._counter += 1
        stored = Stored(f"m{self._counter}", tenant, f"tenant-{tenant}.common", "s", word, fact_key)
        self.memories[stored.id] = stored
        return stored

    def _receipt(self, memory: Stored, action: str) -> dict[str, Any]:
        token = f"c{self._counter}-{memory.id}-{memory.version}"
        return {"action": action, "id": memory.id, "state": memory.state, "version": memory.version, "token": token}

    def _of(self, tenant: int, states: tuple[str, ...] = ("ACTIVE",)) -> list[Stored]:
        return [memory for memory in self.memories.values() if memory.tenant == tenant and memory.state in states]

    def _target(self, call: Planned) -> Stored | None:
        """A memory that some client has heard of, as it needs its id; a search only guesses the words."""
        every = ("ACTIVE", "SUPERSEDED", "SOFT_DELETED")
        stored = self._of(call.client % TENANTS, every)
        known = stored if call.method == "search" else [memory for memory in stored if memory.id in self._heard]
        return self._random.choice(known) if known else None

    def _update(self, call: Planned) -> dict[str, Any] | None:
        memory, tenant = self._target(call), call.client % TENANTS
        if memory is None:
            return None
        word = marker(tenant, call.client, call.client * 1_000 + call.intent)
        call.asked = {"ns": memory.namespace, "id": memory.id, "marker": word}
        if memory.state != "ACTIVE":
            return None
        memory.version += 1
        memory.marker = word
        return self._receipt(memory, "UPDATED")

    def _forget(self, call: Planned) -> dict[str, Any] | None:
        memory = self._target(call)
        if memory is None:
            return None
        is_hard = self._random.random() < 0.5
        call.asked = {"ns": memory.namespace, "id": memory.id, "mode": "HARD" if is_hard else "SOFT"}
        if memory.state == "SOFT_DELETED" and not is_hard:
            return None
        memory.state = "SOFT_DELETED"
        if is_hard:
            del self.memories[memory.id]
        return {"id": memory.id}

    def _search(self, call: Planned) -> dict[str, Any] | None:
        memory, tenant = self._target(call), call.client % TENANTS
        if memory is None:
            return None
        call.asked = {"ns": memory.namespace, "marker": memory.marker, "token": ""}
        hits = [found for found in self._of(tenant) if found.marker == memory.marker]
        return self._shown(hits) | {"degraded": []}

    def _get(self, call: Planned) -> dict[str, Any] | None:
        memory = self._target(call)
        if memory is None:
            return None
        call.asked = {"ns": memory.namespace, "id": memory.id}
        return None if memory.state == "SOFT_DELETED" else self._shown([memory]) | {"version": memory.version}

    def _list(self, call: Planned) -> dict[str, Any]:
        tenant = call.client % TENANTS
        call.asked = {"ns": f"tenant-{tenant}.common", "subject": "s"}
        return self._shown(self._of(tenant)) | {"last": True}

    def _shown(self, memories: list[Stored]) -> dict[str, Any]:
        hits = [(memory.id, memory.version, memory.marker, memory.namespace) for memory in memories]
        return {"hits": hits, "markers": [memory.marker for memory in memories]}
