"""The port by which indexes follow the record store."""

from collections.abc import Sequence
from typing import Protocol

from dataplane.changes import DeadLetter, Failure, IndexProgress, Lease, OutboxRow


class Outbox(Protocol):
    """A row for each change of a memory and each registered index, until the index has applied it.

    Several processes may follow it at once: rows are leased, and a memory is never in two hands.
    """

    async def register_index(self, index: str, deadline_s: float) -> bool:
        """Makes every change from now on an outbox row for this index, too; whether it was unknown so far.

        Idempotent. Notes that the index was seen now.
        """
        ...

    async def retire_index(self, index: str, deadline_s: float) -> None:
        """Ends that and drops the rows of the index. Idempotent."""
        ...

    async def retire_unseen(self, seconds: float, deadline_s: float) -> list[str]:
        """Retires the indexes that nobody registered (again) for so long; their names."""
        ...

    async def enqueue_all(self, index: str, after_id: str, page_size: int, deadline_s: float) -> list[str]:
        """Adds an outbox row of this index for the next ACTIVE memories by id above `after_id`; their ids, in order.

        Memories that await this index already may be passed over, but are among the ids.
        """
        ...

    async def lease_outbox(
        self, index: str, lease: Lease, page_size: int, model: str, deadline_s: float
    ) -> list[OutboxRow]:
        """Leases the oldest rows due for an index, by position, with what the store says of each memory now.

        One row a memory at most: its oldest that is not dead, and only when nobody holds it and its wait is over. A
        leased row is offered to nobody, its owner included, until it is settled, postponed, released or
        `lease.seconds` have passed; an erasure leaves it, too, also once it was abandoned. `embedding` is that of
        (memory, its current version, model).
        """
        ...

    async def renew_outbox(self, lease: Lease, deadline_s: float) -> None:
        """Keeps what the owner holds for `lease.seconds` from now; what has two thirds of them left may stay as it is.

        What others have leased by now is passed over.
        """
        ...

    async def settle_outbox(self, index: str, owner: str, rows: Sequence[OutboxRow], deadline_s: float) -> None:
        """Drops what the index has applied durably: of each row's memory all rows up to `covers`, dead ones included.

        Passes over rows that `owner` does not hold any more. Idempotent.
        """
        ...

    async def postpone_outbox(self, index: str, owner: str, failures: Sequence[Failure], deadline_s: float) -> None:
        """Gives leased rows back with one attempt more: due again later, or dead. Passes over rows not held."""
        ...

    async def release_outbox(self, owner: str, deadline_s: float) -> None:
        """Gives back everything that an owner holds, of all indexes, to be leased at once. Idempotent.

        Likewise what those hold whose names begin with `owner` and a slash.
        """
        ...

    async def doubt_outbox(self, index: str, rows: Sequence[OutboxRow], seconds: float, deadline_s: float) -> None:
        """Notes that something old may yet reach an index: `enqueue_doubted` finds these memories after `seconds`.

        Until then they count as undelivered. A memory that is doubted again waits anew.
        """
        ...

    async def enqueue_doubted(self, index: str, page_size: int, deadline_s: float) -> int:
        """Adds an outbox row for each memory whose doubt is old enough, the oldest first; how many."""
        ...

    async def undelivered(self, memory_id: str, deadline_s: float) -> set[str]:
        """The indexes for which a row of this memory is still there, dead ones included, or that may be wrong on it."""
        ...

    async def unapplied_removals(self, after_id: str, page_size: int, deadline_s: float) -> list[str]:
        """Memories that are not ACTIVE any more, or erased, and that an index may still hold: by id above `after_id`.

        That is those with an outbox row of any index, dead ones included, or a doubt.
        """
        ...

    async def progress(self, deadline_s: float) -> list[IndexProgress]:
        """How far each registered index has followed, by name."""
        ...

    async def dead_letters(
        self, index: str, after_position: int, page_size: int, deadline_s: float
    ) -> list[DeadLetter]:
        """Rows of an index ("" for all) that were given up, by position, above `after_position`."""
        ...

    async def replay_dead_letters(self, index: str, positions: Sequence[int], deadline_s: float) -> int:
        """Makes dead rows of an index due at once with 0 attempts; all of them for no positions. How many."""
        ...
