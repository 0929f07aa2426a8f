"""Faults put in on purpose, each of which a run must find: else it proves nothing."""

import inspect
from collections.abc import Sequence
from typing import Any

from dataplane.changes import RequestRecord
from dataplane.model import SYSTEM_SCOPE, Scope
from tests.leak.runner import Spoil

ANYWHERE = Scope(("anywhere",))


class Rescoped:
    """A port some of whose methods pass over the scope that they are given."""

    def __init__(self, inner: Any, methods: Sequence[str], scope: Scope):
        self._inner = inner
        self._methods = methods
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "reads":
            return self._reads
        if name not in self._methods or not inspect.iscoroutinefunction(found):
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            widened = [self._scope if isinstance(each, Scope) else each for each in arguments]
            return await found(*widened, **named)

        return call

    async def _reads(self, at_least: int, deadline_s: float) -> Any:
        found = await self._inner.reads(at_least, deadline_s)
        return self if found is self._inner else found


class SharedRequests:
    """A record store that finds the first answer to a request_id, whoever asked."""

    def __init__(self, inner: Any, names: Sequence[str]):
        self._inner = inner
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def find_requests(
        self, scope: Scope, _principal_id: str, request_ids: Sequence[str], now_us: int, deadline_s: float
    ) -> list[RequestRecord]:
        """See the port, which says otherwise."""
        found: dict[str, RequestRecord] = {}
        for name in self._names:
            for record in await self._inner.find_requests(scope, name, request_ids, now_us, deadline_s):
                found.setdefault(record.request_id, record)
        return list(found.values())


def forgetful(**methods: Sequence[str]) -> Spoil:
    """Ports, by name, whose methods forget the scope."""

    def spoil(ports: dict[str, Any]) -> None:
        for name, forgotten in methods.items():
            scope = ANYWHERE if name == "cache" else SYSTEM_SCOPE
            ports[name] = Rescoped(ports[name], forgotten, scope)

    return spoil


def without_principal(names: Sequence[str]) -> Spoil:
    """Answers to request_ids are found without asking whose they are."""

    def spoil(ports: dict[str, Any]) -> None:
        ports["records"] = SharedRequests(ports["records"], names)

    return spoil


ONE_ADAPTER: dict[str, Spoil] = {
    "vector search": forgetful(vectors=("search",)),
    "text search": forgetful(texts=("search",)),
    "rows by id": forgetful(records=("fetch",), vectors=("search",)),
    "one memory": forgetful(records=("get",)),
    "lists": forgetful(records=("list_memories",)),
    "versions": forgetful(records=("list_versions", "get_version", "get")),
    "rows not projected yet": forgetful(records=("pending",)),
    "the past": forgetful(records=("history",)),
    "cached answers": forgetful(cache=("get", "put", "stamp")),
    "the same content": forgetful(records=("find_same_content", "find_contents", "find_fact")),
}
"""A scope condition dropped in one adapter each; `rows by id` needs an index that proposes them, too."""

ALL_READS = (
    "fetch",
    "neighbours",
    "get",
    "list_memories",
    "list_versions",
    "get_version",
    "pending",
    "history",
    "most_used",
)
SEEN_IN_ANSWERS: dict[str, Spoil] = {
    "every adapter": forgetful(records=ALL_READS, vectors=("search", "rows"), texts=("search", "rows")),
    "lists": ONE_ADAPTER["lists"],
    "one memory": ONE_ADAPTER["one memory"],
    "the past": ONE_ADAPTER["the past"],
    "the same content": ONE_ADAPTER["the same content"],
}
"""Of these the answers alone tell, with nobody at the ports. Cached answers have the namespaces in their key, too."""
