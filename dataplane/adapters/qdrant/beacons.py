"""The numbers kept in the collections: a point for each name, which is no memory.

A beacon lies in the common collection and in each dedicated one, and the common one's tells in which. So it is missing
once any of them was removed, also when that was made anew since. Points cannot be compared as they are written: a
number that comes late replaces a higher one. It has a vector like every point, and in place of a
memory's `terms` one of its own, by which what looks for memories passes over it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from qdrant_client import models

from dataplane.adapters.qdrant.calls import CollectionMissing, Connection
from dataplane.adapters.qdrant.filters import BEACON, BEACONS
from dataplane.adapters.qdrant.points import point_id

MOST = 10_000
"""Beacons read of a collection: one for each data plane there ever was."""

Kept = dict[str, Mapping[str, Any]]


async def read(connection: Connection, collections: Sequence[str], deadline_s: float) -> dict[str, int]:
    """Of each name the smallest number; only names that every collection still has that was named when it was kept."""
    common, *others = await asyncio.gather(*(_kept(connection, each, deadline_s) for each in collections))
    dedicated = dict(zip(collections[1:], others, strict=True))
    found: dict[str, int] = {}
    for name, payload in common.items():
        numbers = [dedicated.get(each, {}).get(name, {}).get("value") for each in payload["collections"]]
        if None not in numbers:
            found[name] = min(map(int, [payload["value"], *numbers]))
    return found


async def save(
    connection: Connection, collections: Sequence[str], point: models.PointStruct, deadline_s: float
) -> None:
    """Keeps a point of `beacon` in all of them, the common one last; removes that of 0. Raises CollectionMissing."""
    if not (point.payload or {})["value"]:
        for collection in collections:
            await connection.call(lambda client, of=collection: client.delete(of, [point.id], wait=True), deadline_s)  # type: ignore[misc]  # bound now
        return
    for collection in (*collections[1:], collections[0]):
        await connection.call(lambda client, into=collection: client.upsert(into, [point], wait=True), deadline_s)  # type: ignore[misc]  # bound now


def beacon(name: str, value: int, dimension: int, dedicated: Sequence[str]) -> models.PointStruct:
    """The point of a number; no memory's id begins as its does."""
    vector = [1.0] + [0.0] * (dimension - 1)
    payload = {"terms": [BEACON], "name": name, "value": value, "collections": list(dedicated)}
    return models.PointStruct(id=point_id(f"\0beacon\0{name}"), vector=vector, payload=payload)


async def _kept(connection: Connection, collection: str, deadline_s: float) -> Kept:
    try:
        points, _ = await connection.call(
            lambda client: client.scroll(collection, scroll_filter=BEACONS, limit=MOST, with_payload=True), deadline_s
        )
    except CollectionMissing:
        return {}
    return {payload["name"]: payload for payload in (point.payload or {} for point in points)}
