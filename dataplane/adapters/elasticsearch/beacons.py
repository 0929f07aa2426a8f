"""The numbers kept in the index: one document that is no memory, for it has no namespace.

It goes with its index, whoever deletes that. The server merges what several data planes write to it at once.
"""

from dataplane.adapters.elasticsearch.connection import Connection, IndexMissing, Refused, unavailable
from dataplane.adapters.elasticsearch.layout import BEACONS

DOCUMENT = "#beacons"
"""Its id and its routing; no memory's id begins with `#` (see `bulk.document_id`)."""
TRIES = 20
"""How often the server begins again when others write to it meanwhile. Unmeasured."""


async def read(connection: Connection, alias: str, deadline_s: float) -> dict[str, int]:
    """All of them, as they are now; none where the index is gone."""
    try:
        found = await connection.ask(
            lambda client: client.get(index=alias, id=DOCUMENT, routing=DOCUMENT, source_includes=[BEACONS]), deadline_s
        )
    except Refused as refused:
        error = unavailable(refused.status, refused.kind)
        if isinstance(error, IndexMissing) or (refused.status == 404 and not refused.kind):
            return {}
        raise error from None
    return {str(name): int(value) for name, value in found["_source"].get(BEACONS, {}).items()}


async def save(connection: Connection, alias: str, name: str, value: int, deadline_s: float) -> None:
    """Keeps one; it is on the server's disk when this returns. Raises IndexMissing."""
    await connection.require(
        lambda client: client.update(
            index=alias,
            id=DOCUMENT,
            routing=DOCUMENT,
            doc={BEACONS: {name: value}},
            doc_as_upsert=True,
            retry_on_conflict=TRIES,
            require_alias=True,
        ),
        deadline_s,
    )
