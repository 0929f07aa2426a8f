"""The ports of the vector and the text index."""

from collections.abc import Sequence
from typing import Protocol

from dataplane.model import Candidate, Filter, Held, IndexEntry, IndexKey, Scope, Vector
from dataplane.ports.backend import Backend


class Index(Backend, Protocol):
    """What vector and text index share. An index is a projection: late, repeatable, rebuildable."""

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """Brings the index to these entries; the last one of an id wins. Idempotent.

        Visible to searches when it returns or, in a server's index, when `flush` has returned. An older version never
        replaces a newer one where the engine can tell. Raises EntriesRefused after all others were taken.
        """
        ...

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """Removes entries; unknown ones are passed over. Gone from searches as `upsert` is visible to them."""
        ...

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """Everything in the index, by memory id, with fingerprints. Slow for a large one."""
        ...

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """What the index holds of these memories, by id, with fingerprints; those it does not hold are missing."""
        ...

    async def count(self, deadline_s: float) -> int:
        """How many memories are in the index."""
        ...

    async def rows(self, scope: Scope, memory_ids: Sequence[str], deadline_s: float) -> dict[str, bytes]:
        """The packed rows of these memories, by id: those that the index holds in the scope and has a row of.

        Scope as in `search`. For answers without the record store. An index that lies in the record store's own
        database keeps none, for it is down with it.
        """
        ...

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """The numbers kept in the index by name; none in one that was wiped, older ones in one that was set back."""
        ...

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """Keeps a number in the index, durably, where its memories lie: `clear` and whoever wipes it take it along.

        It is no memory: searches, counts and versions pass over it. Where the engine can compare, a number that comes
        late does not replace a higher one. 0 takes the name out.
        """
        ...

    async def flush(self, deadline_s: float) -> None:
        """Makes everything upserted or deleted so far durable and visible."""
        ...

    async def purge(self, deadline_s: float) -> None:
        """Removes from disk what deleted and replaced entries left behind. Searches go on meanwhile; writes may wait.

        Slow: it may copy the whole index. When it fails nothing is lost, and it can be called again. A server that
        rewrites its segments when it sees fit is asked to, where it can be.

        NotYet where a server still keeps what was deleted lately. A call after one that raised may go on with what that
        one began: it removes what was deleted before the first call since one returned, and may leave later deletes.
        """
        ...

    async def clear(self, deadline_s: float) -> None:
        """Removes everything."""
        ...


class VectorIndex(Index, Protocol):
    """Nearest neighbours by cosine among embeddings of one model and dimension.

    Indexes of different models lie side by side; searches everywhere use the active one.
    """

    async def search(
        self, scope: Scope, vector: Vector, filter: Filter, top_k: int, ef: int, deadline_s: float
    ) -> list[Candidate]:
        """The `top_k` entries in the scope that pass the filter, by cosine descending; ties in any order.

        `ef` is how many neighbours an approximate (HNSW) search keeps in view, at least `top_k` are; an exact one
        passes over it. A filter drops no hit: there are `top_k` whenever so many pass, up to the recall of HNSW.
        """
        ...

    async def active_model(self, deadline_s: float) -> str:
        """The model whose index is active; "" before the first was activated."""
        ...

    async def activate(self, deadline_s: float) -> None:
        """Makes this index the active one, in one step for every process. Idempotent."""
        ...


class TextIndex(Index, Protocol):
    """Full text over tokens that we make (`logic.tokens`); BM25."""

    async def search(
        self, scope: Scope, tokens: Sequence[str], filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """The `top_k` entries that hold at least one of the tokens, by BM25 descending; none for no tokens."""
        ...
