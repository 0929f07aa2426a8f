"""Reading more hits than one answer holds, as of one moment."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from dataplane.adapters.elasticsearch.connection import Connection
from dataplane.errors import BackendUnavailable

KEEP_ALIVE = "1m"
"""How long the server keeps the moment after each page when we never say that we are done."""

Hit = dict[str, Any]


@asynccontextmanager
async def every_hit(
    connection: Connection, index: str, routing: str | None, body: Mapping[str, Any], deadline_s: float
) -> AsyncIterator[AsyncIterator[Hit]]:
    """Every hit of a search in its order. `body` has its query, sort and the size of a page."""
    opened = await connection.require(
        lambda client: client.open_point_in_time(
            index=index, routing=routing, keep_alive=KEEP_ALIVE, allow_partial_search_results=False
        ),
        deadline_s,
    )
    try:
        async with aclosing(_hits(connection, opened["id"], body, deadline_s)) as hits:
            yield hits
    finally:
        with suppress(BackendUnavailable):  # the server lets go by itself
            await connection.require(lambda client: client.close_point_in_time(id=opened["id"]), deadline_s)


async def _hits(
    connection: Connection, moment: str, body: Mapping[str, Any], deadline_s: float
) -> AsyncGenerator[Hit, None]:
    after: list[Any] | None = None
    while True:
        page = await connection.require(
            lambda client, after=after: client.search(  # type: ignore[misc]  # bound now, not at the call
                pit={"id": moment, "keep_alive": KEEP_ALIVE}, search_after=after, track_total_hits=False, **body
            ),
            deadline_s,
        )
        for hit in page["hits"]["hits"]:
            yield hit
        if len(page["hits"]["hits"]) < body["size"]:
            return
        after = page["hits"]["hits"][-1]["sort"]
