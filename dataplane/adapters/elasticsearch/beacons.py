"""The numbers kept in the index: one document that is no memory, for it has no namespace.

It goes with its index, whoever deletes that. Whoever writes it says which one it read: the server refuses what comes
late, and a data plane that lost to another begins again.
"""

from typing import Any

from dataplane.adapters.elasticsearch.connection import Connection, IndexMissing, Refused, unavailable
from dataplane.adapters.elasticsearch.layout import BEACONS
from dataplane.logic.beacon import with_saved

DOCUMENT = "#beacons"
"""Its id and its routing; no memory's id begins with `#` (see `bulk.document_id`)."""
TRIES = 20
"""How often it is begun again when others write to it meanwhile. Unmeasured."""
CONFLICT = 409


async def read(connection: Connection, alias: str, deadline_s: float) -> dict[str, int]:
    """All of them, as they are now; none where the index is gone."""
    try:
        found = await _found(connection, alias, deadline_s)
    except IndexMissing:
        return {}
    return _numbers(found)


async def save(connection: Connection, alias: str, name: str, value: int, deadline_s: float) -> None:
    """Keeps one, unless a higher one is there; 0 takes it out. On the server's disk when this returns.

    Raises IndexMissing.
    """
    for tried in range(1, TRIES + 1):
        found = await _found(connection, alias, deadline_s)
        before = _numbers(found)
        later = with_saved(before, name, value)
        if later == before:
            return
        try:
            await _write(connection, alias, later, found, deadline_s)
        except Refused as refused:
            if refused.status != CONFLICT or tried == TRIES:
                raise unavailable(refused.status, refused.kind) from None
        else:
            return


async def _found(connection: Connection, alias: str, deadline_s: float) -> dict[str, Any] | None:
    """The document with its place in the index's history; None: there is none. Raises IndexMissing."""
    try:
        found: dict[str, Any] = await connection.ask(
            lambda client: client.get(index=alias, id=DOCUMENT, routing=DOCUMENT, source_includes=[BEACONS]), deadline_s
        )
    except Refused as refused:
        if refused.status == 404 and not refused.kind:
            return None
        raise unavailable(refused.status, refused.kind) from None
    return found


def _numbers(found: dict[str, Any] | None) -> dict[str, int]:
    kept = found["_source"].get(BEACONS, {}) if found is not None else {}
    return {str(name): int(value) for name, value in kept.items()}


async def _write(
    connection: Connection, alias: str, numbers: dict[str, int], found: dict[str, Any] | None, deadline_s: float
) -> None:
    """Replaces the document that was found, or makes the first one. Raises Refused."""
    place: dict[str, Any] = {"op_type": "create"}
    if found is not None:
        place = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
    await connection.ask(
        lambda client: client.index(
            index=alias, id=DOCUMENT, routing=DOCUMENT, document={BEACONS: numbers}, require_alias=True, **place
        ),
        deadline_s,
    )
