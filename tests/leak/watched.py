"""Ports under watch: whatever an adapter hands out must lie in the scope that it was asked with.

So a scope that one adapter forgets is found although another one, or the pipeline, catches what comes of it.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dataplane.changes import Commit, Erasure, MemoryVersion
from dataplane.model import Candidate, Memory, Pool, Scope, StoredCandidate
from dataplane.ports.reads import Pending
from dataplane.row_codec import unpack_memory
from tests.leak.truth import Truth

Report = Callable[[str, str], None]
"""Hears of a fault: its sort, and what it is."""


class WatchedPort:
    """Stands for a port; tells `truth` of what is stored, and `report` of what leaves its scope."""

    def __init__(self, inner: Any, name: str, truth: Truth, report: Report):
        self.inner = inner
        self._name = name
        self._truth = truth
        self._report = report
        self.checked = 0
        self._put: dict[bytes, set[Scope]] = defaultdict(set)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not inspect.iscoroutinefunction(found) or name == "close":
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            scope = next((each for each in arguments if isinstance(each, Scope)), None)
            if scope is not None and self._name == "cache":
                self._note_values(scope, arguments[1])  # beforehand: what is not answered may be kept all the same
            answer = await found(*arguments, **named)
            self._learn(name, arguments, answer)
            if scope is not None and self._name == "cache":
                self._check_values(scope, answer)
            elif scope is not None:
                self._check(name, scope, answer)
            return self if answer is self.inner else answer

        return call

    def _learn(self, name: str, arguments: Sequence[Any], answer: Any) -> None:
        if name == "commit":
            for commit, result in zip(arguments[0], answer, strict=True):
                if result.error is None:
                    self._learn_commit(commit)
        elif name == "erase" and isinstance(arguments[0], Erasure):
            self._truth.forgotten(arguments[0].memory_id, "HARD")

    def _learn_commit(self, commit: Commit) -> None:
        if commit.memory is None:
            return
        memory = commit.memory
        if memory.namespace != commit.namespace or not commit.scope.covers(memory.namespace, memory.pool):
            self._report("scope", f"{self._name}.commit: a memory of {memory.namespace} under {commit.namespace}")
        self._truth.stored(memory.namespace, memory.pool is Pool.SHARED, memory.body, commit.reason)
        if commit.change.name == "FORGOTTEN":
            self._truth.forgotten(memory.memory_id, "SOFT")

    def _note_values(self, scope: Scope, values: Any) -> None:
        if isinstance(values, dict):
            for value in values.values():
                self._put[value].add(scope)

    def _check_values(self, scope: Scope, answer: Any) -> None:
        """What is kept under one scope is not found under another."""
        for value in answer if isinstance(answer, list) else ():
            self.checked += 1
            if value in self._put and scope not in self._put[value]:
                self._report("scope", f"cache.get: a value put under {self._put[value]} under {scope}")

    def _check(self, name: str, scope: Scope, answer: Any) -> None:
        for memory_id, namespace, is_shared in _places(answer, self._truth):
            self.checked += 1
            if not scope.covers(namespace, Pool.SHARED if is_shared else Pool.PRIVATE):
                self._report("scope", f"{self._name}.{name}: {memory_id} of {namespace} under {scope}")


def _places(answer: Any, truth: Truth) -> Iterator[tuple[str, str, bool]]:
    """The id, namespace and pool of every memory in an answer of a port."""
    for each in _parts(answer):
        match each:
            case Memory():
                yield each.memory_id, each.namespace, each.pool is Pool.SHARED
            case StoredCandidate() | MemoryVersion():
                yield from _places(each.memory, truth)
            case bytes():
                memory = unpack_memory(each)
                if memory is not None:
                    yield from _places(memory, truth)
            case Candidate() if each.memory_id in truth.memories:
                entry = truth.memories[each.memory_id]
                yield each.memory_id, entry.namespace, entry.is_shared
            case str() if each in truth.memories:
                yield each, truth.memories[each].namespace, truth.memories[each].is_shared


def _parts(answer: Any) -> Sequence[Any]:
    match answer:
        case None:
            return ()
        case Pending():
            return answer.candidates
        case dict():
            return (*answer, *answer.values())
        case list() | set() | tuple() | frozenset():
            return tuple(answer)
        case _:
            return (answer,)
