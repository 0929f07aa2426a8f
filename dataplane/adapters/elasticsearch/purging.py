"""Removing deleted documents from the server's disk, and telling when they are gone.

Merging drops a deleted document only when it was written before the shard's *retention leases*, which keep the latest
operations for copies that come back. The server renews them every 30 s and no setting makes it hurry
(`index.soft_deletes.retention_lease.sync_interval` is one of its own tests alone). So a purge remembers, when it is
asked for, the last operation and the segments that hold deleted documents. It merges once the leases of every copy are
past that operation and the server's own merges of before have ended, and is done when none of those segments is left.
What is written and deleted meanwhile does not count: so a purge ends on an index that is never at rest.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dataplane.adapters.elasticsearch.connection import BACKEND, Connection
from dataplane.errors import BackendUnavailable, NotYet

KEEPING = "Elasticsearch still keeps what was written in the last half minute, for copies that come back"
MERGING = "Elasticsearch merges segments that may hold what was deleted"

Shard = tuple[str, str]
"""The name of an index and the number of a shard in it."""
Segment = tuple[str, str, str, str]
"""A shard's, the node of its copy, and its name there, which is never given again."""
Merge = tuple[Segment, str]
"""A segment that is read by a merge, and the merge."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What there was when a purge was asked for: segments with deleted documents, and each shard's last operation."""

    segments: frozenset[Segment]
    operations: Mapping[Shard, int]


class Purging:
    """The purge of the index behind an alias. One that raised goes on from where it stood when it is run again."""

    def __init__(self, connection: Connection, alias: str) -> None:
        self._connection = connection
        self._alias = alias
        self._asked: _Asked | None = None
        self._merges: set[Merge] | None = None  # that ran when the leases were found to be past

    async def run(self, deadline_s: float) -> None:
        """Removes what was deleted before the first run since one returned.

        Raises NotYet while the server keeps it, BackendUnavailable when it does not answer or does not let go of it.
        """
        await self._check_whole(deadline_s)
        await self._flush(deadline_s)
        if self._asked is None:
            self._asked = await self._look(deadline_s)
        if self._asked.segments:
            await self._check_leases(self._asked, deadline_s)
            await self._check_merges(deadline_s)
            await self._merge(deadline_s)
            left = self._asked.segments & _with_deletions(await self._segments(deadline_s))
            if left:
                problem = f"Elasticsearch leaves deleted documents in {len(left)} segments; a disk may be full"
                raise BackendUnavailable(BACKEND, problem)
        self._asked = self._merges = None

    async def _check_whole(self, deadline_s: float) -> None:
        """A shard of which no copy can be reached has no segments to be seen, but has files."""
        health = await self._connection.require(lambda client: client.cluster.health(index=self._alias), deadline_s)
        if health["status"] == "red":
            raise BackendUnavailable(BACKEND, "shards of the index lie on no node of Elasticsearch")

    async def _look(self, deadline_s: float) -> _Asked:
        segments = _with_deletions(await self._segments(deadline_s))
        last: dict[Shard, int] = {}
        for shard, copy in await self._copies(deadline_s):  # after the segments: no operation in them is later
            last[shard] = max(last.get(shard, -1), copy["seq_no"]["max_seq_no"])
        return _Asked(segments, last)

    async def _check_leases(self, asked: _Asked, deadline_s: float) -> None:
        """Raises NotYet unless a merge that begins now drops everything that was deleted by then."""
        copies = await self._copies(deadline_s)
        if not all(_lets_go(copy, asked.operations.get(shard, -1)) for shard, copy in copies):
            raise NotYet(BACKEND, KEEPING)

    async def _check_merges(self, deadline_s: float) -> None:
        """Raises NotYet while one runs that began before: it carries what was deleted into a new segment.

        Ours would pass over the segments that it reads. Those that begin later do no harm.
        """
        running = _merges(await self._segments(deadline_s))
        if self._merges is None:
            self._merges = running
        if self._merges & running:
            raise NotYet(BACKEND, MERGING)

    async def _merge(self, deadline_s: float) -> None:
        """Rewrites every segment that has deleted documents, and lets go of the files of those before."""
        answer = await self._connection.require(
            lambda client: client.indices.forcemerge(index=self._alias, only_expunge_deletes=True), deadline_s
        )
        check_shards(answer)
        await self._flush(deadline_s)

    async def _flush(self, deadline_s: float) -> None:
        """Ends the log of operations, which holds them whole; lets searches go on from the segments of now."""
        answer = await self._connection.require(lambda client: client.indices.flush(index=self._alias), deadline_s)
        check_shards(answer)
        answer = await self._connection.require(lambda client: client.indices.refresh(index=self._alias), deadline_s)
        check_shards(answer)

    async def _segments(self, deadline_s: float) -> dict[Segment, Mapping[str, Any]]:
        """Those of every copy. The counts of `_stats` leave out segments in which everything is deleted."""
        answer = await self._connection.require(lambda client: client.indices.segments(index=self._alias), deadline_s)
        check_shards(answer)
        return {
            (*shard, copy["routing"]["node"], name): segment
            for shard, copy in _each_copy(answer)
            for name, segment in copy["segments"].items()
        }

    async def _copies(self, deadline_s: float) -> list[tuple[Shard, Mapping[str, Any]]]:
        """Of every copy of every shard: its operations and leases."""
        answer = await self._connection.require(
            lambda client: client.indices.stats(index=self._alias, metric="merge", level="shards"), deadline_s
        )
        check_shards(answer)
        return list(_each_copy(answer))


def check_shards(answer: Mapping[str, Any]) -> None:
    """Raises BackendUnavailable when a shard could not do what all were asked to."""
    failed = answer["_shards"]["failed"]
    if failed:
        raise BackendUnavailable(BACKEND, f"{failed} shards of Elasticsearch fail")


def _each_copy(answer: Mapping[str, Any]) -> Iterator[tuple[Shard, Mapping[str, Any]]]:
    for index, described in answer["indices"].items():
        for number, copies in described["shards"].items():
            for copy in copies:
                yield (index, number), copy


def _with_deletions(segments: Mapping[Segment, Mapping[str, Any]]) -> frozenset[Segment]:
    return frozenset(segment for segment, described in segments.items() if described["deleted_docs"])


def _merges(segments: Mapping[Segment, Mapping[str, Any]]) -> set[Merge]:
    return {(segment, described["merge_id"]) for segment, described in segments.items() if "merge_id" in described}


def _lets_go(copy: Mapping[str, Any], operation: int) -> bool:
    """Whether a copy of a shard keeps no operation up to this one, neither by a lease nor for its own recovery."""
    leases = copy["retention_leases"]["leases"]
    is_leased = any(lease["retaining_seq_no"] <= operation for lease in leases)
    is_committed = int(copy["commit"]["user_data"].get("local_checkpoint", -1)) >= operation
    return not is_leased and is_committed and bool(copy["seq_no"]["global_checkpoint"] >= operation)
