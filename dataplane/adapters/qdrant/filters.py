"""Scope and filter as a Qdrant server's conditions; what they mean is told in `dataplane.adapters.payload_filters`."""

from collections.abc import Sequence

from qdrant_client.models import FieldCondition, HasIdCondition, MatchAny, MatchValue, Range
from qdrant_client.models import Filter as ServerFilter

from dataplane.adapters.payload_filters import Translation, Translator
from dataplane.model import Filter, Scope

ServerCondition = FieldCondition | ServerFilter


BEACON = "beacon"
"""The one term of a point that is no memory; a memory's terms are JSON lists."""
_IS_BEACON = FieldCondition(key="terms", match=MatchValue(value=BEACON))
BEACONS = ServerFilter(must=[_IS_BEACON])
MEMORIES = ServerFilter(must_not=[_IS_BEACON])


class ServerDialect:
    """Builds the server's conditions."""

    def one_of(self, key: str, values: Sequence[str]) -> ServerCondition:
        """See `Dialect`."""
        match = MatchValue(value=values[0]) if len(values) == 1 else MatchAny(any=list(values))
        return FieldCondition(key=key, match=match)

    def within(self, key: str, bound_name: str, bound: float) -> ServerCondition:
        """See `Dialect`."""
        return FieldCondition(key=key, range=Range(**{bound_name: bound}))

    def all_of(self, conditions: Sequence[ServerCondition]) -> ServerCondition:
        """See `Dialect`."""
        return ServerFilter(must=list(conditions))

    def any_of(self, conditions: Sequence[ServerCondition]) -> ServerCondition:
        """See `Dialect`."""
        return ServerFilter(should=list(conditions))

    def none_of(self, conditions: Sequence[ServerCondition]) -> ServerCondition:
        """See `Dialect`."""
        return ServerFilter(must_not=list(conditions))


def translate(filter: Filter) -> Translation[ServerCondition]:
    """The server's conditions for a filter."""
    return Translator(ServerDialect()).filter(filter)


def scoped(scope: Scope, conditions: Sequence[ServerCondition]) -> ServerFilter:
    """The filter of a search among memories: the scope's conditions and others."""
    inside = Translator(ServerDialect()).scope(scope) or [MEMORIES]  # the system scope alone has none
    return ServerFilter(must=[*inside, *conditions])


def among(scope: Scope, point_ids: Sequence[str]) -> ServerFilter:
    """The points of these ids that lie in the scope."""
    return ServerFilter(must=[HasIdCondition(has_id=list(point_ids)), scoped(scope, ())])


def not_newer(versions: dict[str, int]) -> ServerFilter:
    """Points among these ids that hold at most the version given for each."""
    by_version: dict[int, list[str]] = {}
    for point_id, version in versions.items():
        by_version.setdefault(version, []).append(point_id)
    return ServerFilter(should=[_at_most(version, ids) for version, ids in by_version.items()])


def _at_most(version: int, ids: list[str]) -> ServerFilter:
    return ServerFilter(
        must=[HasIdCondition(has_id=list(ids)), FieldCondition(key="version", range=Range(lte=version))]
    )
