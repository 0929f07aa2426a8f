"""qdrant-client's own local mode, with what it lacks beside a server made up for."""

from typing import Any

from qdrant_client import AsyncQdrantClient, models


class LocalClient(AsyncQdrantClient):
    """A Qdrant in this process's memory: exact search, no payload indexes, no limits of size.

    It tells of the payload indexes it was asked for, and passes over how to search, both without warnings.
    """

    def __init__(self) -> None:
        super().__init__(":memory:")
        self._fields: dict[str, dict[str, models.PayloadIndexInfo]] = {}

    async def create_payload_index(  # type: ignore[override]  # takes what the adapter gives
        self, collection_name: str, field_name: str, **_: Any
    ) -> models.UpdateResult:
        """Notes the index."""
        index = models.PayloadIndexInfo(data_type=models.PayloadSchemaType.KEYWORD, points=0)
        self._fields.setdefault(collection_name, {})[field_name] = index
        return models.UpdateResult(status=models.UpdateStatus.COMPLETED)

    async def get_collection(self, collection_name: str, **given: Any) -> models.CollectionInfo:
        """With the indexes noted."""
        info = await super().get_collection(collection_name, **given)
        return info.model_copy(update={"payload_schema": self._fields.get(collection_name, {})})

    async def query_points(  # type: ignore[override]  # takes what the adapter gives
        self, collection_name: str, *, search_params: models.SearchParams | None = None, **given: Any
    ) -> models.QueryResponse:
        """Every search is exact."""
        return await super().query_points(collection_name, **given)
