"""What the data plane needs of the world, as promises.

Shared by every port. `scope` bounds what a call may read or change; an adapter enforces it in the store itself.
`deadline_s` is an instant of the event loop's clock (`loop.time()`); past it the call raises BackendUnavailable with
the backend's name. A method raises BackendUnavailable when its backend cannot answer, and never returns less than it
promises instead. Methods may be called concurrently from one event loop.
"""

from dataplane.ports.backend import Backend, Clock, Examination, Problem
from dataplane.ports.cache import Cache
from dataplane.ports.embedder import Embedder
from dataplane.ports.indexes import Index, TextIndex, VectorIndex
from dataplane.ports.outbox import Outbox
from dataplane.ports.queue import WriteQueue
from dataplane.ports.reads import ListQuery, Pending, RecordReads
from dataplane.ports.records import CommitResult, ContentKey, RecordStore

__all__ = [
    "Backend",
    "Cache",
    "Clock",
    "CommitResult",
    "ContentKey",
    "Embedder",
    "Examination",
    "Index",
    "ListQuery",
    "Outbox",
    "Pending",
    "Problem",
    "RecordReads",
    "RecordStore",
    "TextIndex",
    "VectorIndex",
    "WriteQueue",
]
